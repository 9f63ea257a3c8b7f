"""Responses: status, headers and body, as a whole or as a stream."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

TEXT = b"text/plain; charset=utf-8"

Header = tuple[bytes, bytes]


class Response:
    """A whole response. The body is in pieces, so that a large one need not be joined."""

    __slots__ = ("body", "content_type", "headers", "length", "status")

    def __init__(self, status: int, content_type: bytes, body: Body, headers: list[Header] | None = None) -> None:
        self.status = status
        self.content_type = content_type
        self.headers = [] if headers is None else headers
        self.set_body(body)

    def set_body(self, body: Body) -> None:
        """Replaces the body, for example by the compressed one."""
        self.body = body
        if isinstance(body, LazyBody):
            self.length = body.length
        else:
            self.length = len(body[0]) if len(body) == 1 else sum(map(len, body))


@dataclass(slots=True)
class StreamResponse:
    """A response of unknown length: a watch."""

    status: int
    content_type: bytes
    stream: Stream
    headers: list[Header] = field(default_factory=list)


@dataclass(slots=True)
class WebSocketResponse(StreamResponse):
    """A stream that is sent as messages of a WebSocket: the connection switches to that protocol.

    Each line is a message. Where ``is_binary``, each message has its length before it instead, in four bytes.
    """

    is_binary: bool = False


Answer = Response | StreamResponse

Reply = Response | Awaitable[Answer]
"""A whole response that is known at once, or an awaitable of one. A stream always comes as an awaitable.

The caller awaits an awaitable at once: otherwise what was begun for it never ends.
"""


async def resolve(reply: Reply) -> Answer:
    """The response of a reply, awaited if it has to be."""
    return reply if isinstance(reply, Response) else await reply


def text_response(text: str, *, status: int = 200) -> Response:
    return Response(status, TEXT, (text.encode(),), [(b"x-content-type-options", b"nosniff")])


class Edition(NamedTuple):
    """Identifies a body that many clients get: all bodies of one name and revision have the same bytes."""

    name: Hashable
    revision: int


class LazyBody:
    """A body whose pieces are made while they are sent, so that a large one is never in memory as a whole.

    Each iteration makes the same pieces again.
    """

    __slots__ = ("_make", "edition", "length")

    def __init__(self, make: Callable[[], Iterator[bytes]], *, length: int, edition: Edition | None = None) -> None:
        self._make = make
        self.length = length
        self.edition = edition

    def __iter__(self) -> Iterator[bytes]:
        return self._make()


Body = Sequence[bytes] | LazyBody


class SharedPiece(Protocol):
    """A piece of a stream that many clients get."""

    data: bytes
    on_the_wire: bytes | None
    """The piece as an HTTP chunk; the first outlet that needs the chunk makes it for all."""
    as_messages: bytes | None
    """The piece as messages of a WebSocket, likewise."""


class Outlet(Protocol):
    """Writes the pieces of one stream to its client."""

    async def send(self, data: bytes) -> None:
        """Waits until the client has read enough, and writes; does nothing after the client has disconnected."""

    def offer(self, batch: SharedPiece) -> bool:
        """Writes at once and returns True; returns False where the write would have to wait."""


Stream = Callable[[Outlet], Awaitable[None]]
"""Writes a body of unknown length, piece by piece, until it returns."""
