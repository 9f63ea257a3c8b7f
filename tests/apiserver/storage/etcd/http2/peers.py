"""A server of HTTP/2 that does what a test tells it to, and what etcd never does, on a real socket."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import NamedTuple

from hpack import Decoder, Encoder

from clusterregistry.apiserver.storage.etcd.http2 import frames
from clusterregistry.apiserver.storage.etcd.http2.channel import Channel
from clusterregistry.apiserver.storage.etcd.http2.streams import framed

PATH = "/test.Service/Method"
HEAD = [(":status", "200"), ("content-type", "application/grpc")]
TRAILERS = [("grpc-status", "0"), ("grpc-message", "")]


class Frame(NamedTuple):
    kind: int
    flags: int
    stream: int
    content: bytes


@dataclass
class Request:
    """What a client sent on one stream."""

    stream: int
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""

    @property
    def message(self) -> bytes:
        return self.body[5:]


class Peer:
    """The server's side of one connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._decoder, self._encoder = Decoder(), Encoder()
        self._encoder.header_table_size = 0  # as the client asks for
        self._requests: dict[int, Request] = {}

    async def greet(self, settings: dict[int, int] | None = None) -> None:
        """Begins as HTTP/2 does."""
        assert await self._reader.readexactly(len(frames.PREFACE)) == frames.PREFACE
        self.send(frames.settings(settings or {}))

    def send(self, data: bytes) -> None:
        if not self._writer.is_closing():  # the client may have left
            self._writer.write(data)

    def end(self) -> None:
        self._writer.close()

    async def frame(self, kind: int | None = None) -> Frame:
        """The next one, or the next of a kind. Raises IncompleteReadError when there is none to come."""
        while True:
            high, low, found, flags, stream = frames.HEAD.unpack(await self._reader.readexactly(frames.HEAD_SIZE))
            frame = Frame(found, flags, stream, await self._reader.readexactly(high << 8 | low))
            if kind in {None, found}:
                return frame

    async def request(self) -> Request:
        """The next that is complete."""
        while True:
            frame = await self.frame()
            if frame.kind == frames.HEADERS:
                request = self._requests[frame.stream] = Request(frame.stream)
                request.headers = self.fields(frame.content)
            elif frame.kind == frames.DATA:
                self._requests[frame.stream].body += frame.content
                if frame.flags & frames.END_STREAM:
                    return self._requests.pop(frame.stream)

    def answer(self, stream: int, message: bytes) -> None:
        """As etcd does: headers, the message, trailers."""
        self.send(self.headers(stream, HEAD) + data(stream, framed(message)) + self.trailers(stream))

    def headers(self, stream: int, fields: list[tuple[str, str]], *, flags: int = frames.END_HEADERS) -> bytes:
        block = self.block(fields)
        return frames.head(len(block), kind=frames.HEADERS, flags=flags, stream=stream) + block

    def trailers(self, stream: int, fields: list[tuple[str, str]] | None = None) -> bytes:
        return self.headers(stream, fields or TRAILERS, flags=frames.END_HEADERS | frames.END_STREAM)

    def fields(self, block: bytes) -> dict[str, str]:
        return {str(name): str(value) for name, value in self._decoder.decode(block)}

    def block(self, fields: list[tuple[str, str]]) -> bytes:
        return self._encoder.encode(fields)


def data(stream: int, content: bytes, *, flags: int = 0) -> bytes:
    return frames.head(len(content), kind=frames.DATA, flags=flags, stream=stream) + content


Script = Callable[[Peer], Awaitable[None]]


@asynccontextmanager
async def serving(*scripts: Script) -> AsyncIterator[Channel]:
    """A way to a server that follows a script on each connection, and repeats the last one.

    What goes wrong in a script comes out at the end. A script that has come to its end lets its client hang up.
    """
    left, failed, running = list(scripts), list[BaseException](), set[asyncio.Task[None]]()

    async def follow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        running.add(task)
        try:
            await (left.pop(0) if len(left) > 1 else left[0])(Peer(reader, writer))
            while await reader.read(1 << 16):
                pass
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the client is gone
        except BaseException as error:  # noqa: BLE001 - for the test
            failed.append(error)
        finally:
            running.discard(task)
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    server = await asyncio.start_server(follow, "127.0.0.1", 0)
    channel = Channel(f"127.0.0.1:{server.sockets[0].getsockname()[1]}", None)
    try:
        yield channel
    finally:
        await channel.close()
        server.close()
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running)
        await server.wait_closed()
    assert failed == []


async def call(channel: Channel, message: bytes = b"question", *, seconds: float = 30.0) -> bytes:
    return await channel.call(PATH, message, metadata=(("key", "value"),), seconds=seconds)
