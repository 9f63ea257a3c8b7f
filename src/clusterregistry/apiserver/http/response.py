"""Answers: a status, headers and bytes. How they reach the socket is ``serving``'s business."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import orjson

from clusterregistry.apiserver.registry.watcher import Outlet

JSON = b"application/json"
YAML = b"application/yaml"
PROTOBUF = b"application/vnd.kubernetes.protobuf"
TEXT = b"text/plain; charset=utf-8"

Header = tuple[bytes, bytes]
Stream = Callable[[Outlet], Awaitable[None]]
"""Writes a body of unknown length, piece by piece, until it returns."""


class Edition(NamedTuple):
    """What many are answered alike: all bodies of the same name and revision have the same bytes."""

    name: Hashable
    revision: int


class LazyBody:
    """A body whose pieces are made while they are sent, so that a large one never is in memory as a whole.

    Each who goes through it has the same pieces made anew.
    """

    __slots__ = ("_make", "edition", "length")

    def __init__(self, make: Callable[[], Iterator[bytes]], *, length: int, edition: Edition | None = None) -> None:
        self._make = make
        self.length = length
        self.edition = edition

    def __iter__(self) -> Iterator[bytes]:
        return self._make()


Body = Sequence[bytes] | LazyBody


class Response:
    """A complete answer; ``body`` comes in pieces so that large ones need not be joined."""

    __slots__ = ("_body", "content_type", "headers", "length", "status")

    def __init__(self, status: int, content_type: bytes, body: Body, headers: list[Header] | None = None) -> None:
        self.status = status
        self.content_type = content_type
        self.headers = [] if headers is None else headers
        self._body = body
        self.length = _length_of(body)

    @property
    def body(self) -> Body:
        return self._body

    @body.setter
    def body(self, body: Body) -> None:
        """Another body, such as the same one compressed."""
        self._body = body
        self.length = _length_of(body)


def _length_of(body: Body) -> int:
    if isinstance(body, LazyBody):
        return body.length
    return len(body[0]) if len(body) == 1 else sum(map(len, body))


@dataclass(slots=True)
class StreamResponse:
    """An answer that goes on: a watch."""

    status: int
    content_type: bytes
    stream: Stream
    headers: list[Header] = field(default_factory=list)


Answer = Response | StreamResponse

Reply = Response | Awaitable[Answer]
"""A whole answer that is known at once, or one that has to be waited for, as that of a watch always is.

Who is given an awaitable waits for it at once, or else what was begun for it is never ended.
"""


def json_response(value: Any, *, status: int = 200) -> Response:
    """JSON in the order of the dict."""
    return Response(status, JSON, (orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE),))


def protobuf_body(value: dict[str, Any]) -> bytes:
    """An object of a kind of Kubernetes itself in protobuf."""
    from clusterregistry.apimachinery.codecs import protobuf_codec  # noqa: PLC0415 - dear to import, rarely needed

    return protobuf_codec.encode(value)


def text_response(text: str, *, status: int = 200) -> Response:
    return Response(status, TEXT, (text.encode(),), [(b"x-content-type-options", b"nosniff")])


def page_not_found() -> Response:
    """What no handler knows: plain text, not a Status, as kube-apiserver answers."""
    return text_response("404 page not found\n", status=404)
