"""gRPC calls to one server: connects when a connection is needed, and again when it is lost."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl

from clusterregistry.apimachinery.bounded_cache import BoundedCache
from clusterregistry.apiserver.storage.etcd.http2 import frames
from clusterregistry.apiserver.storage.etcd.http2.connection import CLOSED, Connection
from clusterregistry.apiserver.storage.etcd.http2.frames import Metadata
from clusterregistry.apiserver.storage.etcd.http2.streams import (
    RpcError,
    StatusCode,
    Stream,
    UnaryCall,
    unavailable,
    with_prefix,
)
from clusterregistry.apiserver.tasks import cancel_and_wait

CONNECT_SECONDS = 5.0
"""How long connecting and the handshake may take."""

_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 1.0
"""Seconds before an unreachable server is tried again; doubled each time."""

_MOST_CACHED = 64
"""Requests whose encoded headers are cached. A new token makes new headers."""

HANDSHAKE_FAILED = "the TLS handshake failed"


class Channel:
    """Calls and streams to ``endpoint``, which is HOST:PORT. For one event loop."""

    def __init__(self, endpoint: str, tls: ssl.SSLContext | None) -> None:
        self._endpoint, self._tls = endpoint, tls
        self._blocks = BoundedCache[tuple[str, Metadata, float | None], bytes](_MOST_CACHED)
        self._connection: Connection | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._connecting: asyncio.Future[Connection] | None = None
        self._failure = unavailable("")
        self._pause, self._not_before = _FIRST_PAUSE, 0.0

    async def call(self, path: str, message: bytes, *, metadata: Metadata, seconds: float) -> bytes:
        """Sends a request once and returns the response. Raises RpcError. Can be cancelled at any time."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        connection = self._connection
        if connection is None or not connection.usable:
            connection = await self._connect(seconds)
        future: asyncio.Future[bytes] = loop.create_future()
        block = self._block(path, metadata, seconds)
        call = UnaryCall(block, with_prefix(message), deadline=deadline, future=future)
        connection.open(call)
        try:
            return await future
        except asyncio.CancelledError:
            connection.abandon(call)
            raise

    async def stream(self, path: str, message: bytes, *, metadata: Metadata) -> Stream:
        """Opens a stream with its first message. The caller cancels it. Raises RpcError."""
        connection = self._connection
        if connection is None or not connection.usable:
            connection = await self._connect(CONNECT_SECONDS)
        stream = Stream(connection, self._block(path, metadata, None), message)
        connection.open(stream)
        return stream

    async def close(self) -> None:
        """Ends the connection and everything on it."""
        await cancel_and_wait(self._tasks)

    def _block(self, path: str, metadata: Metadata, seconds: float | None) -> bytes:
        key = (path, metadata, seconds)
        block = self._blocks.get(key)
        if block is None:
            block = frames.encode_request(
                path, authority=self._endpoint, tls=self._tls is not None, metadata=metadata, seconds=seconds
            )
            self._blocks.put(key, block)
        return block

    # Connecting

    async def _connect(self, seconds: float) -> Connection:
        """Returns a usable connection. Concurrent callers share one attempt; soon after a failure it fails at once."""
        loop = asyncio.get_running_loop()
        if self._connecting is None or self._connecting.done():
            if loop.time() < self._not_before:
                raise RpcError(self._failure.code, self._failure.details, reached=False)
            self._connecting = self._start(loop)
        try:
            async with asyncio.timeout(seconds):
                return await asyncio.shield(self._connecting)
        except TimeoutError:
            raise self._timeout_error() from None

    def _start(self, loop: asyncio.AbstractEventLoop) -> asyncio.Future[Connection]:
        connecting: asyncio.Future[Connection] = loop.create_future()
        task = loop.create_task(self._run(connecting))
        self._tasks.add(task)

        def on_done(_: asyncio.Task[None]) -> None:
            self._tasks.discard(task)
            if not connecting.done():  # it was cancelled, perhaps before it began
                _fail(connecting, unavailable("the connection was closed by this side", reached=False))

        task.add_done_callback(on_done)
        return connecting

    async def _run(self, connecting: asyncio.Future[Connection]) -> None:
        """Runs one connection from its beginning to its end. It is a task, so that the end of the loop ends it too."""
        connection = Connection()
        try:
            await self._open(connection)
            self._connection, self._pause = connection, _FIRST_PAUSE
            connecting.set_result(connection)
            await connection.lost.wait()
        except RpcError as error:
            self._note_failure(error)
            _fail(connecting, error)
        finally:
            connection.close()
            await connection.lost.wait()

    async def _open(self, connection: Connection) -> None:
        """Returns after the handshake. Raises RpcError."""
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
            raise self._timeout_error() from None
        except OSError as error:
            raise self._connect_error(self._reason(error)) from None
        except UnicodeError:  # from Python's IDNA encoding
            raise self._connect_error("its name cannot be resolved: a part of it is empty or too long") from None

    def _reason(self, error: OSError) -> str:
        """Why there is no connection, in words that do not depend on the event loop implementation."""
        if isinstance(error, socket.gaierror):
            return f"its name cannot be resolved: {error.strerror}"
        ended = isinstance(error, ConnectionError) and not isinstance(error, ConnectionRefusedError)
        if isinstance(error, ssl.SSLError) or (self._tls and ended):
            return f"{HANDSHAKE_FAILED}: {str(error) or CLOSED}"
        return os.strerror(error.errno) if error.errno else str(error)

    def _timeout_error(self) -> RpcError:
        return RpcError(StatusCode.DEADLINE_EXCEEDED, f"no connection to {self._endpoint} in time", reached=False)

    def _connect_error(self, reason: str) -> RpcError:
        return unavailable(f"failed to connect to {self._endpoint}: {reason}", reached=False)

    def _note_failure(self, error: RpcError) -> None:
        self._failure = error
        self._not_before = asyncio.get_running_loop().time() + self._pause
        self._pause = min(self._pause * 2, _LONGEST_PAUSE)


def _fail(connecting: asyncio.Future[Connection], error: RpcError) -> None:
    connecting.set_exception(error)
    connecting.exception()  # marks it as retrieved: no caller may be waiting any more
