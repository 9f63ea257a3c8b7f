"""A small HTTPS server whose responses a test writes byte by byte."""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from clusterregistry.client.rest_config import Pem, RestConfig
from tests.remote_servers import Authority
from tools.ports import free_port

PATIENCE = 30.0
_listening: set[int] = set()
AGENT = "test-client/1.0"


@dataclass(frozen=True)
class Received:
    method: str
    target: str
    headers: list[tuple[str, str]]
    body: bytes
    connection: int
    """The number of the connection: equal for requests on the same one."""

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key == name), None)

    def all(self, name: str) -> list[str]:
        return [value for key, value in self.headers if key == name]

    @property
    def json(self) -> Any:
        return json.loads(self.body)


Writer = asyncio.StreamWriter
Handler = Callable[[Received, Writer], Awaitable[None]]


def response(body: bytes | str = b"{}", *, status: int = 200, **headers: str) -> bytes:
    """A whole response; keywords are headers, with underscores for dashes."""
    content = body.encode() if isinstance(body, str) else body
    given = {"content-length": str(len(content)), "content-type": "application/json"}
    given |= {name.replace("_", "-"): value for name, value in headers.items()}
    head = "".join(f"{name}: {value}\r\n" for name, value in given.items())
    return f"HTTP/1.1 {status} Text\r\n{head}\r\n".encode() + content


def status(code: int, reason: str, message: str = "no", **details: Any) -> bytes:
    """A failure as an API server answers it."""
    headers = {"retry_after": str(details["retryAfterSeconds"])} if "retryAfterSeconds" in details else {}
    document = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "reason": reason}
    return response(json.dumps({**document, "details": details, "code": code}), status=code, **headers)


CHUNKED = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"


def chunk(content: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(content), content)


def event(kind: str, obj: Any) -> bytes:
    return chunk(json.dumps({"type": kind, "object": obj}).encode() + b"\n")


class HostileServer:
    """Calls ``handler`` for each request; ``answers`` are whole responses, one after the other, if there are any."""

    def __init__(self, directory: Path, *, names: tuple[str, ...] = ("127.0.0.1",), tls: bool = True) -> None:
        directory.mkdir(exist_ok=True)
        self.authority = Authority(directory)
        self._tls: ssl.SSLContext | None = None
        if tls:
            self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._tls.load_cert_chain(*self.authority.serving(*names))
        self.port = free_port()
        self.received: list[Received] = []
        self.answers: list[bytes] = []
        self.handler: Handler = self._answer
        self.connections = 0
        self._open: set[Writer] = set()
        self._server: asyncio.Server | None = None

    def require_client_certificate(self) -> None:
        assert self._tls is not None
        self._tls.load_verify_locations(self.authority.file)
        self._tls.verify_mode = ssl.CERT_REQUIRED

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}"

    def config(self, **changes: Any) -> RestConfig:
        given: dict[str, Any] = {
            "server": self.url,
            "user_agent": AGENT,
            "certificate_authority": Pem(data=self.authority.pem),
            "timeout": PATIENCE,
        }
        return RestConfig(**{**given, **changes})

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port, ssl=self._tls)
        _listening.add(self.port)

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
            _listening.discard(self.port)
            self.cut()
            await self._server.wait_closed()
            self._server = None

    def cut(self) -> None:
        """Ends all connections at once."""
        for writer in list(self._open):
            writer.transport.abort()

    async def _answer(self, received: Received, writer: Writer) -> None:
        writer.write(self.answers.pop(0) if self.answers else response(json.dumps({"path": received.target})))

    async def _serve(self, reader: asyncio.StreamReader, writer: Writer) -> None:
        self.connections += 1
        number = self.connections
        self._open.add(writer)
        try:
            while True:
                received = await _request(reader, number)
                self.received.append(received)
                await self.handler(received, writer)
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            self._open.discard(writer)
            writer.transport.abort()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()
        await connections_ended()


async def _request(reader: asyncio.StreamReader, number: int) -> Received:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    line, *lines = head.rstrip().split("\r\n")
    headers = [(name.lower(), value.strip()) for name, _, value in (each.partition(":") for each in lines)]
    length = next((int(value) for name, value in headers if name == "content-length"), 0)
    method, target, _ = line.split(" ")
    return Received(method, target, headers, await reader.readexactly(length), number)


async def connections_ended() -> None:
    """Waits until the loop has only listeners left: a TLS connection that was aborted takes a moment to end."""
    loop: Any = asyncio.get_running_loop()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(1):
            while len(loop._selector.get_map()) > 1 + len(_listening):  # noqa: ASYNC110 - the loop's own pipe stays
                await asyncio.sleep(0.005)
