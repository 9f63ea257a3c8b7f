"""gRPC on the streams of a connection: unary calls, streams of messages in both directions, and status codes."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable
from enum import IntEnum
from struct import Struct
from typing import Protocol

from clusterregistry.apiserver.storage.etcd.http2.frames import ResponseHead


class StatusCode(IntEnum):
    """gRPC's status codes."""

    OK = 0
    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    DATA_LOSS = 15
    UNAUTHENTICATED = 16


class RpcError(Exception):
    """A call that failed. ``details`` is the server's message, or the failure of the connection."""

    def __init__(self, code: StatusCode, details: str, *, reached: bool = True) -> None:
        super().__init__(code, details)
        self.code, self.details = code, details
        self.reached = reached
        """True if the server can have received the whole request. Otherwise it has not executed the request."""

    def __str__(self) -> str:
        return f"{self.code.name}: {self.details}"


def unavailable(details: str, *, reached: bool = True) -> RpcError:
    """The error of a connection that failed."""
    return RpcError(StatusCode.UNAVAILABLE, details, reached=reached)


_PREFIX = Struct(">BI")
"""The prefix of each message: a byte that is set if it is compressed, and its length."""

PREFIX_SIZE = _PREFIX.size

LARGEST_MESSAGE = 1 << 30
"""Bytes. No response of etcd is nearly as large, since long lists are read in pages."""

_LAST_INFORMATIONAL, _HTTP_OK = 199, 200

_BY_HTTP_STATUS = {
    400: StatusCode.INTERNAL,
    401: StatusCode.UNAUTHENTICATED,
    403: StatusCode.PERMISSION_DENIED,
    404: StatusCode.UNIMPLEMENTED,
    429: StatusCode.UNAVAILABLE,
    502: StatusCode.UNAVAILABLE,
    503: StatusCode.UNAVAILABLE,
    504: StatusCode.UNAVAILABLE,
}
"""gRPC's codes for the responses of a proxy that does not speak gRPC."""


def with_prefix(message: bytes) -> bytes:
    """A message with the prefix that gRPC sends before it."""
    return _PREFIX.pack(0, len(message)) + message


class StreamConnection(Protocol):
    """What a stream needs of its connection."""

    def send(self, stream: Stream, body: bytes) -> None: ...

    def abandon(self, stream: BaseStream) -> None: ...

    def acknowledge(self, stream: BaseStream) -> None: ...


class BaseStream:
    """One HTTP/2 stream with a gRPC request. The connection calls ``receive_head``, ``receive_data`` and ``end``."""

    __slots__ = (
        "_answered",
        "_parts",
        "_size",
        "block",
        "body",
        "deadline",
        "id",
        "is_half_closed",
        "unacknowledged",
        "window",
    )

    def __init__(self, block: bytes, body: bytes, *, half_closed: bool, deadline: float = math.inf) -> None:
        self.block = block
        self.body: bytes | memoryview = body
        """The part of the request that is not sent yet."""
        self.is_half_closed = half_closed
        """True if nothing follows the body."""
        self.deadline = deadline
        """Loop time."""
        self.id = 0
        """The stream ID; 0 until the request is sent."""
        self.window = 0
        """Bytes that the peer accepts on this stream."""
        self.unacknowledged = 0
        """Bytes received that were not acknowledged with a window update."""
        self._answered = False
        self._parts: list[bytes] = []
        self._size = 0

    @property
    def is_sent(self) -> bool:
        """True if the peer may have received the whole request."""
        return self.id > 0 and not self.body

    @property
    def is_full(self) -> bool:
        """True if the peer should not send more yet."""
        return False

    def receive_head(self, head: ResponseHead, *, last: bool) -> RpcError | None:
        """Handles headers or trailers; ``last`` if they end the stream. Returns the error if the call has failed."""
        if self._answered:
            return None if not last else self._outcome(head)
        if head.http_status is not None and head.http_status <= _LAST_INFORMATIONAL and not last:
            return None
        self._answered = True
        if head.http_status != _HTTP_OK or not head.is_grpc:
            code = _BY_HTTP_STATUS.get(head.http_status or 0, StatusCode.UNKNOWN)
            return RpcError(code, f"no gRPC, but HTTP status {head.http_status}")
        return self._outcome(head) if last else None

    def receive_data(self, data: bytes) -> RpcError | None:
        """Handles data. Returns the error if it is invalid."""
        if not self._parts and len(data) >= PREFIX_SIZE:
            compressed, size = _PREFIX.unpack_from(data)
            if len(data) == size + PREFIX_SIZE and not compressed:  # nearly always: one whole message
                self.on_message(data[PREFIX_SIZE:])
                return None
        return self._assemble(data)

    def _assemble(self, data: bytes) -> RpcError | None:
        """Joins parts into whole messages."""
        self._parts.append(data)
        self._size += len(data)
        while self._size >= PREFIX_SIZE:
            if len(self._parts[0]) < PREFIX_SIZE:
                self._parts = [b"".join(self._parts)]
            prefix = self._parts[0][:PREFIX_SIZE]
            end = int.from_bytes(prefix[1:], "big") + PREFIX_SIZE
            if prefix[0]:
                return RpcError(StatusCode.INTERNAL, "a compressed message, which is not supported")
            if end > LARGEST_MESSAGE:
                return RpcError(StatusCode.RESOURCE_EXHAUSTED, f"a response of {end} bytes is too large")
            if self._size < end:
                return None
            whole = b"".join(self._parts)
            self._parts, self._size = [whole[end:]] if len(whole) > end else [], len(whole) - end
            self.on_message(whole[PREFIX_SIZE:end])
        return None

    def _outcome(self, head: ResponseHead) -> RpcError | None:
        if head.grpc_status == StatusCode.OK:
            return None
        if head.grpc_status is None:
            return RpcError(StatusCode.UNKNOWN, "a response without a status")
        try:
            return RpcError(StatusCode(head.grpc_status), head.message)
        except ValueError:
            return RpcError(StatusCode.UNKNOWN, head.message)

    def on_message(self, message: bytes) -> None:
        """Handles a whole message."""
        raise NotImplementedError

    def end(self, error: RpcError | None) -> None:
        """Handles the end of the stream: success if there is no error."""
        raise NotImplementedError


class UnaryCall(BaseStream):
    """A unary call: one request and one response."""

    __slots__ = ("_message", "future")

    def __init__(self, block: bytes, body: bytes, *, deadline: float, future: asyncio.Future[bytes]) -> None:
        super().__init__(block, body, half_closed=True, deadline=deadline)
        self.future = future
        self._message: bytes | None = None

    def on_message(self, message: bytes) -> None:
        self._message = message

    def end(self, error: RpcError | None) -> None:
        if self.future.done():  # its caller was cancelled
            return
        if error is not None:
            self.future.set_exception(error)
        elif self._message is None:
            self.future.set_exception(unavailable("the response is empty"))
        else:
            self.future.set_result(self._message)


class Stream(BaseStream):
    """Messages in both directions until one side ends the stream.

    Messages are queued for ``read``, and the peer waits when the queue is full; or they go to a ``sink`` at once.
    """

    __slots__ = ("_connection", "_ended", "_error", "_messages", "_reader", "sink")

    def __init__(self, connection: StreamConnection, block: bytes, first: bytes) -> None:
        super().__init__(block, with_prefix(first), half_closed=False)
        self._connection = connection
        self._messages: deque[bytes] = deque()
        self._reader: asyncio.Future[None] | None = None
        self._ended = False
        self._error: Exception = RpcError(StatusCode.OK, "")
        self.sink: Callable[[bytes], None] | None = None

    @property
    def is_full(self) -> bool:
        return bool(self._messages)

    def write(self, message: bytes) -> None:
        """Sends one more message; nothing once the stream has ended."""
        if not self._ended:
            self._connection.send(self, with_prefix(message))

    async def read(self) -> bytes:
        """The next message, for one reader. Raises RpcError when the stream has ended."""
        while not self._messages:
            if self._ended:
                raise self._error
            self._reader = asyncio.get_running_loop().create_future()
            await self._reader
        message = self._messages.popleft()
        if not self._messages:
            self._connection.acknowledge(self)
        return message

    async def wait_for_end(self) -> Exception:
        """Returns the error with which the stream ended; for streams with a sink."""
        while not self._ended:
            self._reader = asyncio.get_running_loop().create_future()
            await self._reader
        return self._error

    def cancel(self, error: Exception | None = None) -> None:
        """Ends the stream if it has not ended. ``read`` raises the error, ``wait_for_end`` returns it."""
        if not self._ended:
            self._connection.abandon(self)
            self.end(error or RpcError(StatusCode.CANCELLED, "the stream was cancelled"))

    def on_message(self, message: bytes) -> None:
        if self._ended:  # by its sink, which gets no message after the one on which it ended the stream
            return
        if self.sink is not None:
            self.sink(message)
        else:
            self._messages.append(message)
            self._wake()

    def end(self, error: Exception | None) -> None:
        if self._ended:
            return
        self._ended, self._error = True, error or unavailable("the connection was closed")
        self._wake()

    def _wake(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)
