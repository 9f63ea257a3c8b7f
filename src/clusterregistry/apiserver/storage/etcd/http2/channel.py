"""The way to one server: a connection when one is needed, and another one when that is lost."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl

from clusterregistry.apiserver.storage.etcd.http2 import frames
from clusterregistry.apiserver.storage.etcd.http2.connection import Connection
from clusterregistry.apiserver.storage.etcd.http2.frames import Metadata
from clusterregistry.apiserver.storage.etcd.http2.handshake import HUNG_UP
from clusterregistry.apiserver.storage.etcd.http2.streams import Call, RpcError, StatusCode, Stream, framed, unavailable

CONNECT_SECONDS = 5.0
"""How long it may take until a server has greeted us."""

_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 1.0
"""Seconds in which a server that could not be reached is not tried again; each time twice as long."""

_MOST_BLOCKS = 64
"""Kinds of requests whose headers are kept. A new token makes new kinds."""

HANDSHAKE_FAILED = "the TLS handshake failed"


class Channel:
    """Calls and streams to ``endpoint``, which is HOST:PORT. For one loop."""

    def __init__(self, endpoint: str, tls: ssl.SSLContext | None) -> None:
        self._endpoint, self._tls = endpoint, tls
        self._blocks: dict[tuple[str, Metadata, float | None], bytes] = {}
        self._connection: Connection | None = None
        self._running: set[asyncio.Task[None]] = set()
        self._connecting: asyncio.Future[Connection] | None = None
        self._failure = unavailable("")
        self._pause, self._not_before = _FIRST_PAUSE, 0.0

    async def call(self, path: str, message: bytes, *, metadata: Metadata, seconds: float) -> bytes:
        """The answer to one request, which is sent once. Raises RpcError. Can be cancelled at any time."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        connection = self._connection
        if connection is None or not connection.usable:
            connection = await self._connected(seconds)
        future: asyncio.Future[bytes] = loop.create_future()
        block = self._block(path, metadata, seconds)
        exchange = Call(block, framed(message), deadline=deadline, future=future)
        connection.begin(exchange)
        try:
            return await future
        except asyncio.CancelledError:
            connection.abandon(exchange)
            raise

    async def stream(self, path: str, message: bytes, *, metadata: Metadata) -> Stream:
        """A stream that begins with a message; to be cancelled by who asked for it. Raises RpcError."""
        connection = self._connection
        if connection is None or not connection.usable:
            connection = await self._connected(CONNECT_SECONDS)
        stream = Stream(connection, self._block(path, metadata, None), message)
        connection.begin(stream)
        return stream

    async def close(self) -> None:
        """Ends everything that is under way."""
        for running in self._running:
            running.cancel()
        if self._running:
            await asyncio.wait(self._running)

    def _block(self, path: str, metadata: Metadata, seconds: float | None) -> bytes:
        kind = (path, metadata, seconds)
        block = self._blocks.get(kind)
        if block is None:
            if len(self._blocks) >= _MOST_BLOCKS:
                self._blocks.clear()
            block = self._blocks[kind] = frames.request_block(
                path, authority=self._endpoint, tls=self._tls is not None, metadata=metadata, seconds=seconds
            )
        return block

    # Connecting

    async def _connected(self, seconds: float) -> Connection:
        """A usable connection. All who need one wait for the same; soon after a failure nobody waits."""
        loop = asyncio.get_running_loop()
        if self._connecting is None or self._connecting.done():
            if loop.time() < self._not_before:
                raise RpcError(self._failure.code, self._failure.details, reached=False)
            self._connecting = self._begin(loop)
        try:
            async with asyncio.timeout(seconds):
                return await asyncio.shield(self._connecting)
        except TimeoutError:
            raise self._late() from None

    def _begin(self, loop: asyncio.AbstractEventLoop) -> asyncio.Future[Connection]:
        connecting: asyncio.Future[Connection] = loop.create_future()
        running = loop.create_task(self._run(connecting))
        self._running.add(running)

        def over(_: asyncio.Task[None]) -> None:
            self._running.discard(running)
            if not connecting.done():  # it was cancelled, perhaps before it began
                _fail(connecting, unavailable("the connection was closed by us", reached=False))

        running.add_done_callback(over)
        return connecting

    async def _run(self, connecting: asyncio.Future[Connection]) -> None:
        """One connection from its beginning to its end. It is a task so that the end of the loop ends it too."""
        connection = Connection()
        try:
            await self._open(connection)
            self._connection, self._pause = connection, _FIRST_PAUSE
            connecting.set_result(connection)
            await connection.lost.wait()
        except RpcError as error:
            self._failed(error)
            _fail(connecting, error)
        finally:
            connection.close()
            await connection.lost.wait()

    async def _open(self, connection: Connection) -> None:
        """Returns when the server has greeted us. Raises RpcError."""
        host, _, port = self._endpoint.rpartition(":")
        host = host.strip("[]")
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                await loop.create_connection(
                    lambda: connection, host, int(port), ssl=self._tls, server_hostname=host if self._tls else None
                )
                await connection.ready
        except TimeoutError:
            raise self._late() from None
        except OSError as error:
            raise self._unreachable(self._explained(error)) from None
        except UnicodeError:  # from Python's own rules for names
            raise self._unreachable("its name cannot be resolved: a part of it is empty or too long") from None

    def _explained(self, error: OSError) -> str:
        """Why there is no connection, in words that do not depend on the loop."""
        if isinstance(error, socket.gaierror):
            return f"its name cannot be resolved: {error.strerror}"
        ended = isinstance(error, ConnectionError) and not isinstance(error, ConnectionRefusedError)
        if isinstance(error, ssl.SSLError) or (self._tls and ended):
            return f"{HANDSHAKE_FAILED}: {str(error) or HUNG_UP}"
        return os.strerror(error.errno) if error.errno else str(error)

    def _late(self) -> RpcError:
        return RpcError(StatusCode.DEADLINE_EXCEEDED, f"no connection to {self._endpoint} in time", reached=False)

    def _unreachable(self, why: str) -> RpcError:
        return unavailable(f"failed to connect to {self._endpoint}: {why}", reached=False)

    def _failed(self, error: RpcError) -> None:
        self._failure = error
        self._not_before = asyncio.get_running_loop().time() + self._pause
        self._pause = min(self._pause * 2, _LONGEST_PAUSE)


def _fail(connecting: asyncio.Future[Connection], error: RpcError) -> None:
    connecting.set_exception(error)
    connecting.exception()  # it may be that nobody waits any longer
