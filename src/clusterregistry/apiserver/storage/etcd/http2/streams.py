"""What goes on on one stream of a connection: a call with one answer, or messages in both directions."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable
from enum import IntEnum
from struct import Struct
from typing import Protocol

from clusterregistry.apiserver.storage.etcd.http2.frames import AnswerHead


class StatusCode(IntEnum):
    """The numbers are gRPC's."""

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
    """A call without an answer. ``details`` is what the server says about it, or what went wrong on the way."""

    def __init__(self, code: StatusCode, details: str, *, reached: bool = True) -> None:
        super().__init__(code, details)
        self.code, self.details = code, details
        self.reached = reached
        """Whether the server can have got the whole of the request. Without that it has not begun with it."""

    def __str__(self) -> str:
        return f"{self.code.name}: {self.details}"


def unavailable(details: str, *, reached: bool = True) -> RpcError:
    """For what goes wrong between the server and us."""
    return RpcError(StatusCode.UNAVAILABLE, details, reached=reached)


def code_of(number: int) -> StatusCode:
    """A number that gRPC does not have counts as unknown."""
    try:
        return StatusCode(number)
    except ValueError:
        return StatusCode.UNKNOWN


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


def code_of_http(status: int) -> StatusCode:
    """What the answer of something in between that knows no gRPC comes to, as gRPC has it."""
    return _BY_HTTP_STATUS.get(status, StatusCode.UNKNOWN)


_PREFIX = Struct(">BI")
"""Before each message: a byte that says whether it is compressed, and its length."""

PREFIX_SIZE = _PREFIX.size

LARGEST_MESSAGE = 1 << 30
"""Bytes. No answer of etcd is nearly as large, since we read long lists in pages; more is taken for nonsense."""

_OK, _INFORMATIONAL, _SUCCESS = 0, 199, 200


def framed(message: bytes) -> bytes:
    """A message as it is sent."""
    return _PREFIX.pack(0, len(message)) + message


class Connected(Protocol):
    """What a stream needs of its connection."""

    def send(self, stream: Stream, body: bytes) -> None: ...

    def abandon(self, exchange: Exchange) -> None: ...

    def let_more_come(self, exchange: Exchange) -> None: ...


class Exchange:
    """One stream. The connection feeds it, and what it says is final once it has ended."""

    __slots__ = ("_answered", "_parts", "_size", "arrived", "block", "body", "deadline", "ends", "id", "window")

    def __init__(self, block: bytes, body: bytes, *, ends: bool, deadline: float = math.inf) -> None:
        self.block = block
        self.body: bytes | memoryview = body
        """What is still to be sent."""
        self.ends = ends
        """Whether nothing more follows the body."""
        self.deadline = deadline
        """In the time of the loop."""
        self.id = 0
        """0 as long as nothing of it has been sent."""
        self.window = 0
        """Bytes that the peer takes of this stream alone."""
        self.arrived = 0
        """Bytes that have come and that the peer does not know to be read."""
        self._answered = False
        self._parts: list[bytes] = []
        self._size = 0

    @property
    def is_sent(self) -> bool:
        """Whether the peer may have the whole request."""
        return self.id > 0 and not self.body

    @property
    def is_full(self) -> bool:
        """Whether the peer should wait before it sends more."""
        return False

    def take_head(self, head: AnswerHead, *, last: bool) -> RpcError | None:
        """Headers have come. Returns how the exchange has failed, if it has; ``last`` if it is over either way."""
        if self._answered:
            return None if not last else self._outcome(head)
        if head.http_status is not None and head.http_status <= _INFORMATIONAL and not last:
            return None
        self._answered = True
        if head.http_status != _SUCCESS or not head.is_grpc:
            return RpcError(code_of_http(head.http_status or 0), f"no gRPC, but HTTP status {head.http_status}")
        return self._outcome(head) if last else None

    def take(self, data: bytes) -> RpcError | None:
        """Data has come. Returns what is wrong with it."""
        if not self._parts and len(data) >= PREFIX_SIZE:
            compressed, size = _PREFIX.unpack_from(data)
            if len(data) == size + PREFIX_SIZE and not compressed:  # nearly always a whole message
                self.hear(data[PREFIX_SIZE:])
                return None
        return self._gather(data)

    def _gather(self, data: bytes) -> RpcError | None:
        """Makes whole messages of parts."""
        self._parts.append(data)
        self._size += len(data)
        while self._size >= PREFIX_SIZE:
            if len(self._parts[0]) < PREFIX_SIZE:
                self._parts = [b"".join(self._parts)]
            prefix = self._parts[0][:PREFIX_SIZE]
            end = int.from_bytes(prefix[1:], "big") + PREFIX_SIZE
            if prefix[0]:
                return RpcError(StatusCode.INTERNAL, "a compressed message, which nobody asked for")
            if end > LARGEST_MESSAGE:
                return RpcError(StatusCode.RESOURCE_EXHAUSTED, f"an answer of {end} bytes is not read")
            if self._size < end:
                return None
            whole = b"".join(self._parts)
            self._parts, self._size = [whole[end:]] if len(whole) > end else [], len(whole) - end
            self.hear(whole[PREFIX_SIZE:end])
        return None

    def _outcome(self, head: AnswerHead) -> RpcError | None:
        if head.grpc_status == _OK:
            return None
        if head.grpc_status is None:
            return RpcError(StatusCode.UNKNOWN, "an answer without a status")
        return RpcError(code_of(head.grpc_status), head.message)

    def hear(self, message: bytes) -> None:
        """A whole message has come."""
        raise NotImplementedError

    def end(self, error: RpcError | None) -> None:
        """Nothing more will come."""
        raise NotImplementedError


class Call(Exchange):
    """One request and one answer."""

    __slots__ = ("_message", "future")

    def __init__(self, block: bytes, body: bytes, *, deadline: float, future: asyncio.Future[bytes]) -> None:
        super().__init__(block, body, ends=True, deadline=deadline)
        self.future = future
        self._message: bytes | None = None

    def hear(self, message: bytes) -> None:
        self._message = message

    def end(self, error: RpcError | None) -> None:
        if self.future.done():  # who asked has given up
            return
        if error is not None:
            self.future.set_exception(error)
        elif self._message is None:
            self.future.set_exception(unavailable("the answer has nothing in it"))
        else:
            self.future.set_result(self._message)


class Stream(Exchange):
    """Messages in both directions, until one side has enough.

    They are kept until somebody reads them, and then the peer is made to wait; or they go to a ``sink`` at once.
    """

    __slots__ = ("_connection", "_ended", "_error", "_messages", "_reader", "sink")

    def __init__(self, connection: Connected, block: bytes, first: bytes) -> None:
        super().__init__(block, framed(first), ends=False)
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
            self._connection.send(self, framed(message))

    async def read(self) -> bytes:
        """The next message, for one reader. Raises RpcError when there is none to come."""
        while not self._messages:
            if self._ended:
                raise self._error
            self._reader = asyncio.get_running_loop().create_future()
            await self._reader
        message = self._messages.popleft()
        if not self._messages:
            self._connection.let_more_come(self)
        return message

    async def wait_for_end(self) -> Exception:
        """For who has a sink: how it ended."""
        while not self._ended:
            self._reader = asyncio.get_running_loop().create_future()
            await self._reader
        return self._error

    def cancel(self, error: Exception | None = None) -> None:
        """Ends the stream, if it has not ended; ``error`` is what who waits for it is told."""
        if not self._ended:
            self._connection.abandon(self)
            self.end(error or RpcError(StatusCode.CANCELLED, "nobody wants to hear more"))

    def hear(self, message: bytes) -> None:
        if self._ended:  # by its sink, which is not to hear what came along with the message that was enough
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
