"""HTTP/1.1 over TLS, as little of it as the workload needs, with an error for each stage of a request.

Nothing is ever sent twice, and no redirect is followed: a request that got no answer may have taken effect, and only
the caller can say what that means. Not ``clusterregistry.client``: it connects as part of a request, and the check of a
history needs the time at which a request is sent on a connection that is open.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Self
from urllib.parse import urlsplit

PATIENCE = 5.0
"""Seconds that a connection may take to open, and an answer to come."""


class UnreachableError(Exception):
    """No connection came about: nothing was sent."""


class LostError(Exception):
    """The connection broke, or no answer came in time, after something may have been sent."""


class Answer(NamedTuple):
    status: int
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One replica: its address, the CA to trust, and the token of an administrator, who may act as another user."""

    url: str
    trust: ssl.SSLContext
    token: str
    acts_as: str = ""

    @classmethod
    def trusting(cls, url: str, *, ca_file: Path, token: str) -> Self:
        return cls(url=url, trust=ssl.create_default_context(cafile=ca_file), token=token)


class Connection:
    """One connection, for one request after the other, or for one stream."""

    def __init__(self, target: Target, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._head = f"Host: {urlsplit(target.url).netloc}\r\nAuthorization: Bearer {target.token}\r\n"
        if target.acts_as:
            self._head += f"Impersonate-User: {target.acts_as}\r\n"
        self._reader, self._writer = reader, writer

    @classmethod
    async def open(cls, target: Target, *, patience: float = PATIENCE) -> Self:
        address = urlsplit(target.url)
        try:
            async with asyncio.timeout(patience):
                streams = await asyncio.open_connection(address.hostname, address.port, ssl=target.trust)
        except OSError as error:  # TimeoutError is one
            raise UnreachableError(f"{target.url}: {str(error) or 'no connection in time'}") from error
        return cls(target, *streams)

    async def exchange(
        self, method: str, path: str, *, body: bytes = b"", content_type: str = "", patience: float = PATIENCE
    ) -> Answer:
        """Sends a request and reads its answer to the end. Raises LostError; the connection is then of no more use."""
        try:
            async with asyncio.timeout(patience):
                self._send(method, path, body=body, content_type=content_type)
                status, headers = await self._read_head()
                return Answer(status, b"".join([piece async for piece in self._pieces(headers)]))
        except (OSError, EOFError, ValueError) as error:
            raise LostError(f"{method} {path}: {str(error) or 'no answer in time'}") from error

    async def lines(self, path: str, *, idle: float) -> AsyncGenerator[bytes, None]:
        """The lines of an endless answer, until it ends or is silent for ``idle`` seconds. Raises LostError.

        Before them comes one with the status alone.
        """
        try:
            self._send("GET", path, body=b"", content_type="")
            async with asyncio.timeout(idle):
                status, headers = await self._read_head()
            yield b"%d" % status
            pieces = self._pieces(headers)
            rest = b""
            while True:
                async with asyncio.timeout(idle):
                    piece = await anext(pieces, b"")
                if not piece:
                    break
                *complete, rest = (rest + piece).split(b"\n")
                for line in complete:
                    yield line
        except (OSError, EOFError, ValueError) as error:
            raise LostError(f"GET {path}: {str(error) or 'silent for too long'}") from error
        if rest:  # an answer that is no stream needs no line break
            yield rest

    def close(self) -> None:
        """Aborts the connection: unsent data is dropped, and the TLS closure of the peer is not awaited."""
        self._writer.transport.abort()

    def _send(self, method: str, path: str, *, body: bytes, content_type: str) -> None:
        head = f"{method} {path} HTTP/1.1\r\n{self._head}Accept: application/json\r\n"
        if body:
            head += f"Content-Type: {content_type}\r\nContent-Length: {len(body)}\r\n"
        self._writer.write(f"{head}\r\n".encode() + body)

    async def _read_head(self) -> tuple[int, dict[str, str]]:
        lines = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        fields = (line.partition(":") for line in lines[1:] if line)
        return int(lines[0].split(" ")[1]), {name.lower(): value.strip() for name, _, value in fields}

    async def _pieces(self, headers: dict[str, str]) -> AsyncIterator[bytes]:
        if headers.get("transfer-encoding") != "chunked":
            yield await self._reader.readexactly(int(headers["content-length"]))
            return
        while size := int(await self._reader.readuntil(b"\r\n"), 16):
            yield (await self._reader.readexactly(size + 2))[:-2]
        await self._reader.readuntil(b"\r\n")
