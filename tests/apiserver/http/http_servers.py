"""The HTTP server alone, over TLS, with whatever handler a test gives it."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import socket
import ssl
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, Self

from clusterregistry.apimachinery import certificates
from clusterregistry.apiserver.http.request import HttpRequest
from clusterregistry.apiserver.http.request_body import IncomingRequest
from clusterregistry.apiserver.http.response import Answer, Reply, Response, StreamResponse, text_response
from clusterregistry.apiserver.http.server import HttpServer
from clusterregistry.apiserver.pki.tls import server_context

Handler = Callable[[IncomingRequest], Reply]

PATIENCE = 60.0
SOON = 0.2
"""Seconds to wait for what must not happen."""


class RawClient:
    """A client that sends exactly the bytes of a test."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    def send(self, text: str | bytes) -> None:
        self._writer.write(text.encode() if isinstance(text, str) else text)

    async def flood(self, size: int, *, patience: float = PATIENCE) -> int:
        """Sends so many bytes, or as many as the server reads; returns how many were left.

        ``patience`` are seconds in which the server has to read some more.
        """
        piece = b"x" * 65536
        while size:
            self.send(piece[:size])
            size -= min(size, len(piece))
            try:
                async with asyncio.timeout(patience):
                    await self._writer.drain()
            except TimeoutError:
                break
        return size

    async def until(self, end: bytes) -> bytes:
        async with asyncio.timeout(PATIENCE):
            return await self._reader.readuntil(end)

    async def everything(self) -> bytes:
        """All bytes until the server closes."""
        received = b""
        async with asyncio.timeout(PATIENCE):
            with contextlib.suppress(ConnectionError):
                while piece := await self._reader.read(65536):
                    received += piece
        return received

    async def answer(self) -> tuple[bytes, bytes]:
        """The head and the body of a response with a length."""
        head = await self.until(b"\r\n\r\n")
        length = int(head.split(b"content-length: ")[1].split(b"\r\n")[0])
        return head, await self._reader.readexactly(length)

    async def receives_nothing(self) -> bool:
        try:
            async with asyncio.timeout(SOON):
                return not await self._reader.read(1)
        except TimeoutError:
            return True

    def abort(self) -> None:
        self._writer.transport.abort()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()


class Served:
    """A server that runs."""

    def __init__(self, server: HttpServer[IncomingRequest], port: int) -> None:
        self.server, self.port = server, port

    async def connect(self) -> RawClient:
        context = contexts()[1]
        return RawClient(*await asyncio.open_connection("127.0.0.1", self.port, ssl=context))

    def stop_clock(self) -> None:
        """From now on no time passes for the deadlines of connections, but by ``pass_seconds``."""
        self.server._ticker.cancel()

    def pass_seconds(self, seconds: float) -> None:
        self.server.expire_connections(self.server.now + seconds)

    async def pass_time_until(self, happens: asyncio.Task[Any]) -> None:
        """A second after the other passes, and the loop has its turns in between."""
        async with asyncio.timeout(PATIENCE):
            while not happens.done():
                self.pass_seconds(1.0)
                await asyncio.sleep(0.001)


@functools.cache
def contexts() -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """The TLS contexts of a server and of its clients."""
    now, key = time.time(), certificates.new_key()
    authority = certificates.new_authority(certificates.new_key(), now=now)
    with tempfile.TemporaryDirectory() as directory:
        certificate = Path(directory) / "both"
        pem = certificates.serving_certificate(authority, key, names=("127.0.0.1",), now=now)
        certificate.write_bytes(pem + certificates.key_pem(key))
        serving_context = server_context(
            certificate=certificate, key=certificate, client_cas=(), minimum="VersionTLS13"
        )
    trusted = certificates.certificate_pem(authority.certificate).decode()
    return serving_context, ssl.create_default_context(cadata=trusted)


@contextlib.asynccontextmanager
async def serving(handler: Handler, *, max_connections: int = 100) -> AsyncIterator[Served]:
    listening = socket.create_server(("127.0.0.1", 0))
    server = HttpServer(handler, IncomingRequest, max_connections=max_connections)
    await server.listen(listening, contexts()[0])
    try:
        yield Served(server, listening.getsockname()[1])
    finally:
        await server.stop(patience=1)


def path(request: IncomingRequest) -> Response:
    """A handler that returns the path, at once."""
    return text_response(request.path)


async def body(request: IncomingRequest) -> Answer:
    """A handler that returns the body."""
    return text_response((await request.body()).decode())


class Gate:
    """A handler that returns the path once the gate is open."""

    def __init__(self) -> None:
        self.open, self._arrived = asyncio.Event(), asyncio.Event()
        self.came: list[str] = []

    async def __call__(self, request: HttpRequest) -> Answer:
        self.came.append(request.path)
        self._arrived.set()
        await self.open.wait()
        return text_response(request.path)

    async def has_seen(self, count: int) -> None:
        while len(self.came) < count:
            self._arrived.clear()
            await within(self._arrived)


class Endless:
    """A handler whose streams last until the client disconnects."""

    def __init__(self) -> None:
        self.begun, self.left = asyncio.Event(), asyncio.Event()

    async def __call__(self, request: IncomingRequest) -> Answer:
        async def stream(send: object) -> None:  # noqa: ARG001 - it sends nothing
            self.begun.set()
            await request.disconnected()
            self.left.set()

        return StreamResponse(200, b"text/plain", stream)


def get(target: str = "/", *headers: str, method: str = "GET", version: str = "1.1") -> str:
    return "\r\n".join([f"{method} {target} HTTP/{version}", "Host: x", *headers, "", ""])


def post(content: str, *headers: str) -> str:
    return get("/", f"Content-Length: {len(content)}", *headers, method="POST") + content


async def within(event: asyncio.Event) -> None:
    async with asyncio.timeout(PATIENCE):
        await event.wait()
