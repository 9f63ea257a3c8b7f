"""What comes in on a connection: frames made of bytes, however they are cut, and blocks of headers made of frames."""

from __future__ import annotations

from typing import Protocol

from clusterregistry.apiserver.storage.etcd.http2 import frames
from clusterregistry.apiserver.storage.etcd.http2.frames import (
    CONTINUATION,
    HEAD_SIZE,
    LAST_STREAM,
    SMALLEST_MAX_FRAME,
    ProtocolError,
)
from clusterregistry.apiserver.storage.etcd.http2.headers import LARGEST_BLOCK

_read_head = frames.HEAD.unpack_from


class Recipient(Protocol):
    """Who deals with frames. Each method may raise ProtocolError."""

    def on_data(self, flags: int, stream: int, content: bytes) -> None: ...

    def on_block(self, flags: int, stream: int, block: bytes) -> None:
        """A whole block of headers, with the flags that it began with."""

    def on_reset(self, flags: int, stream: int, content: bytes) -> None: ...

    def on_settings(self, flags: int, stream: int, content: bytes) -> None: ...

    def on_ping(self, flags: int, stream: int, content: bytes) -> None: ...

    def on_goaway(self, flags: int, stream: int, content: bytes) -> None: ...

    def on_window_update(self, flags: int, stream: int, content: bytes) -> None: ...


class Inlet:
    """The receiving half of a connection."""

    def __init__(self, recipient: Recipient) -> None:
        self.rest = b""
        """What is not yet a frame."""
        self._recipient = recipient
        self._block: tuple[int, int, bytes] | None = None
        self._handlers = (
            recipient.on_data,
            self._on_headers,
            _ignore,  # PRIORITY
            recipient.on_reset,
            recipient.on_settings,
            self._on_push,
            recipient.on_ping,
            recipient.on_goaway,
            recipient.on_window_update,
            self._on_continuation,
        )

    def feed(self, data: bytes) -> None:
        """Hands on all frames that are whole. Raises ProtocolError."""
        at, size, handlers = 0, len(data), self._handlers
        while (begin := at + HEAD_SIZE) <= size:
            high, low, kind, flags, stream = _read_head(data, at)
            length = high << 8 | low
            if length > SMALLEST_MAX_FRAME:
                raise ProtocolError("a frame that is too large", frames.FRAME_SIZE_ERROR)
            if (end := begin + length) > size:
                break
            if self._block is not None and kind != CONTINUATION:
                raise ProtocolError("headers that break off")
            if kind <= CONTINUATION:  # others are to be ignored
                handlers[kind](flags, stream & LAST_STREAM, data[begin:end])
            at = end
        self.rest = data[at:]

    def _on_headers(self, flags: int, stream: int, content: bytes) -> None:
        if flags & (frames.PADDED | frames.WITH_PRIORITY):
            content = frames.without_padding(flags, content, priority=True)
        if flags & frames.END_HEADERS:
            self._recipient.on_block(flags, stream, content)
        else:
            self._block = (flags, stream, content)

    def _on_continuation(self, flags: int, stream: int, content: bytes) -> None:
        if self._block is None or self._block[1] != stream:
            raise ProtocolError("a part of headers that does not belong anywhere")
        first_flags, _, block = self._block
        block += content
        if len(block) > LARGEST_BLOCK:
            raise ProtocolError("headers that are too large", frames.ENHANCE_YOUR_CALM)
        if flags & frames.END_HEADERS:
            self._block = None
            self._recipient.on_block(first_flags, stream, block)
        else:
            self._block = (first_flags, stream, block)

    def _on_push(self, *_: object) -> None:
        raise ProtocolError("a push, which nobody asked for")


def _ignore(flags: int, stream: int, content: bytes) -> None:
    """Frames that say nothing to us."""
