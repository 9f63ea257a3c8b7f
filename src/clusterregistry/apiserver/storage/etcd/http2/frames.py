"""What comes in on a connection: frames made of bytes, however they are cut, and blocks of headers made of frames."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from struct import Struct
from typing import NamedTuple, Protocol
from urllib.parse import unquote

from hpack import Decoder
from hpack.exceptions import HPACKError

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
"""Kinds of frames."""

ACK = END_STREAM = 0x1
END_HEADERS = 0x4
PADDED = 0x8
WITH_PRIORITY = 0x20

NO_ERROR, PROTOCOL_ERROR, INTERNAL_ERROR, FLOW_CONTROL_ERROR = range(4)
FRAME_SIZE_ERROR, REFUSED_STREAM, CANCEL, COMPRESSION_ERROR, ENHANCE_YOUR_CALM = 6, 7, 8, 9, 11

HEADER_TABLE_SIZE, ENABLE_PUSH, MAX_CONCURRENT_STREAMS, INITIAL_WINDOW_SIZE, MAX_FRAME_SIZE = 1, 2, 3, 4, 5

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SMALLEST_MAX_FRAME = 16_384
LARGEST_MAX_FRAME = (1 << 24) - 1
LARGEST_WINDOW = (1 << 31) - 1
DEFAULT_WINDOW = 65_535
LAST_STREAM = (1 << 31) - 1

HEAD = Struct(">HBBBI")
"""The head of a frame: the length as its upper two bytes and the lowest one, kind, flags, stream."""

HEAD_SIZE = HEAD.size

_NUMBER = Struct(">I")
_SETTING = Struct(">HI")
_ERROR_NAMES = {
    NO_ERROR: "NO_ERROR",
    PROTOCOL_ERROR: "PROTOCOL_ERROR",
    INTERNAL_ERROR: "INTERNAL_ERROR",
    FLOW_CONTROL_ERROR: "FLOW_CONTROL_ERROR",
    4: "SETTINGS_TIMEOUT",
    5: "STREAM_CLOSED",
    FRAME_SIZE_ERROR: "FRAME_SIZE_ERROR",
    REFUSED_STREAM: "REFUSED_STREAM",
    CANCEL: "CANCEL",
    COMPRESSION_ERROR: "COMPRESSION_ERROR",
    10: "CONNECT_ERROR",
    ENHANCE_YOUR_CALM: "ENHANCE_YOUR_CALM",
    12: "INADEQUATE_SECURITY",
    13: "HTTP_1_1_REQUIRED",
}


class ProtocolError(Exception):
    """The peer does what HTTP/2 does not allow; ``code`` is to be told to it."""

    def __init__(self, text: str, code: int = PROTOCOL_ERROR) -> None:
        super().__init__(text)
        self.code = code


def error_name(code: int) -> str:
    """For a person."""
    return _ERROR_NAMES.get(code, f"error {code}")


def head(size: int, *, kind: int, flags: int = 0, stream: int = 0) -> bytes:
    """What a frame begins with whose content has so many bytes."""
    return HEAD.pack(size >> 8, size & 0xFF, kind, flags, stream)


def header_block(block: bytes, *, stream: int, largest: int) -> bytes:
    """A block of headers, in as many frames as it takes."""
    if len(block) <= largest:
        return head(len(block), kind=HEADERS, flags=END_HEADERS, stream=stream) + block
    parts = [block[at : at + largest] for at in range(0, len(block), largest)]
    made: list[bytes] = []
    for number, part in enumerate(parts):
        kind = CONTINUATION if number else HEADERS
        flags = END_HEADERS if number == len(parts) - 1 else 0
        made += (head(len(part), kind=kind, flags=flags, stream=stream), part)
    return b"".join(made)


def settings(values: Mapping[int, int]) -> bytes:
    content = b"".join(_SETTING.pack(*each) for each in values.items())
    return head(len(content), kind=SETTINGS) + content


SETTINGS_ACK = head(0, kind=SETTINGS, flags=ACK)


def window_update(stream: int, increment: int) -> bytes:
    return head(4, kind=WINDOW_UPDATE, stream=stream) + _NUMBER.pack(increment)


def reset(stream: int, code: int) -> bytes:
    return head(4, kind=RST_STREAM, stream=stream) + _NUMBER.pack(code)


def ping(content: bytes, *, ack: bool = False) -> bytes:
    return head(8, kind=PING, flags=ACK if ack else 0) + content


def goaway(code: int, text: str) -> bytes:
    content = _NUMBER.pack(0) + _NUMBER.pack(code) + text.encode()
    return head(len(content), kind=GOAWAY) + content


def number(content: bytes) -> int:
    """The content of a frame that is one number. Raises ProtocolError."""
    if len(content) != _NUMBER.size:
        raise ProtocolError("a frame of the wrong size", FRAME_SIZE_ERROR)
    return int(_NUMBER.unpack(content)[0])


def read_settings(content: bytes) -> Iterator[tuple[int, int]]:
    """What a peer wants of us, by its number. Raises ProtocolError for a value that is not allowed."""
    if len(content) % _SETTING.size:
        raise ProtocolError("settings of the wrong size", FRAME_SIZE_ERROR)
    for name, value in _SETTING.iter_unpack(content):
        if name == INITIAL_WINDOW_SIZE and value > LARGEST_WINDOW:
            raise ProtocolError("a window that is too large", FLOW_CONTROL_ERROR)
        if name == MAX_FRAME_SIZE and not SMALLEST_MAX_FRAME <= value <= LARGEST_MAX_FRAME:
            raise ProtocolError("a size of frames that is not allowed")
        yield name, value


def read_goaway(content: bytes) -> tuple[int, int, str]:
    """The last stream that is dealt with, why the others are not, and that in words."""
    if len(content) < 2 * _NUMBER.size:
        raise ProtocolError("a frame of the wrong size", FRAME_SIZE_ERROR)
    last, code = number(content[:4]) & LAST_STREAM, number(content[4:8])
    return last, code, content[8:].decode(errors="replace")


def without_padding(flags: int, content: bytes, *, priority: bool = False) -> bytes:
    """What a frame of data or headers holds beside what was put around it. Raises ProtocolError."""
    begin, padding = 0, 0
    if flags & PADDED:
        if not content:
            raise ProtocolError("a frame of the wrong size", FRAME_SIZE_ERROR)
        begin, padding = 1, content[0]
    if priority and flags & WITH_PRIORITY:
        begin += 5
    end = len(content) - padding
    if end < begin:
        raise ProtocolError("more padding than there is")
    return content[begin:end]


Metadata = tuple[tuple[str, str], ...]

LARGEST_BLOCK = 65_536
"""Bytes of headers that a peer may send at once. etcd sends a hundred."""

_REMEMBERED = 256
"""Blocks: far more than etcd has different ones, and not much memory for a peer that never sends the same one."""

_NO_TABLE = b"\x20"
"""Says that we use no table. A peer that allows only a small one has to be told, and may come to that at any time."""

_METHOD_POST, _SCHEME_HTTP, _SCHEME_HTTPS = b"\x83", b"\x86", b"\x87"
_AUTHORITY, _PATH, _CONTENT_TYPE, _USER_AGENT = 1, 4, 31, 58
"""Where these names stand in the table that HPACK begins with."""

_LITERAL, _NEVER_INDEXED = 0x00, 0x10
_NAME_BITS, _LENGTH_BITS = 4, 7
_LONGEST_TIMEOUT = 99_999_999
"""Milliseconds: gRPC writes a timeout with eight digits at most."""


class AnswerHead(NamedTuple):
    """What counts of a block of headers from the peer."""

    http_status: int | None
    is_grpc: bool
    grpc_status: int | None
    message: str


def request_block(path: str, *, authority: str, tls: bool, metadata: Metadata, seconds: float | None) -> bytes:
    """The headers of a request. ``seconds`` is how long it may take, None for a stream that has no end."""
    parts = [
        _NO_TABLE,
        _METHOD_POST,
        _SCHEME_HTTPS if tls else _SCHEME_HTTP,
        _named(_PATH, path),
        _named(_AUTHORITY, authority),
        _named(_CONTENT_TYPE, "application/grpc"),
        _named(_USER_AGENT, "apiserver"),
        _literal("te", "trailers"),
    ]
    if seconds is not None:
        parts.append(_literal("grpc-timeout", f"{min(math.ceil(seconds * 1000), _LONGEST_TIMEOUT)}m"))
    parts += (_literal(name, value, kind=_NEVER_INDEXED) for name, value in metadata)
    return b"".join(parts)


class HeadReader:
    """Understands blocks of headers."""

    def __init__(self) -> None:
        self._known: dict[bytes, AnswerHead] = {}

    def read(self, block: bytes) -> AnswerHead:
        """Raises ProtocolError for what are no headers."""
        known = self._known.get(block)
        if known is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            known = self._known[block] = _understood(block)
        return known


def _understood(block: bytes) -> AnswerHead:
    decoder = Decoder(max_header_list_size=LARGEST_BLOCK)
    # As we have told the peer: there is no table beside the one that everybody has.
    decoder.header_table_size = decoder.max_allowed_table_size = 0
    try:
        fields = {bytes(name): bytes(value) for name, value in decoder.decode(block, raw=True)}
    except (HPACKError, IndexError, ValueError) as error:
        raise ProtocolError(f"headers that cannot be read: {error}", COMPRESSION_ERROR) from None
    return AnswerHead(
        http_status=_number(fields.get(b":status")),
        is_grpc=fields.get(b"content-type", b"").startswith(b"application/grpc"),
        grpc_status=_number(fields.get(b"grpc-status")),
        message=unquote(fields.get(b"grpc-message", b"").decode("latin-1"), errors="replace"),
    )


def _number(value: bytes | None) -> int | None:
    return int(value) if value is not None and value.isdigit() and len(value) <= len("1000") else None


def _named(index: int, value: str) -> bytes:
    """A header whose name is in the table."""
    return _integer(index, bits=_NAME_BITS, first=_LITERAL) + _string(value.encode())


def _literal(name: str, value: str, *, kind: int = _LITERAL) -> bytes:
    return bytes([kind]) + _string(name.encode()) + _string(value.encode())


def _string(value: bytes) -> bytes:
    return _integer(len(value), bits=_LENGTH_BITS, first=0) + value


def _integer(value: int, *, bits: int, first: int) -> bytes:
    """A number as HPACK writes it, in the last bits of a first byte and as many more as it takes."""
    largest = (1 << bits) - 1
    if value < largest:
        return bytes([first | value])
    value -= largest
    made = [first | largest]
    while value >= 0x80:  # noqa: PLR2004 - seven bits a byte
        made.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*made, value])


_read_head = HEAD.unpack_from


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


class FrameReader:
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
                raise ProtocolError("a frame that is too large", FRAME_SIZE_ERROR)
            if (end := begin + length) > size:
                break
            if self._block is not None and kind != CONTINUATION:
                raise ProtocolError("headers that break off")
            if kind <= CONTINUATION:  # others are to be ignored
                handlers[kind](flags, stream & LAST_STREAM, data[begin:end])
            at = end
        self.rest = data[at:]

    def _on_headers(self, flags: int, stream: int, content: bytes) -> None:
        if flags & (PADDED | WITH_PRIORITY):
            content = without_padding(flags, content, priority=True)
        if flags & END_HEADERS:
            self._recipient.on_block(flags, stream, content)
        else:
            self._block = (flags, stream, content)

    def _on_continuation(self, flags: int, stream: int, content: bytes) -> None:
        if self._block is None or self._block[1] != stream:
            raise ProtocolError("a part of headers that does not belong anywhere")
        first_flags, _, block = self._block
        block += content
        if len(block) > LARGEST_BLOCK:
            raise ProtocolError("headers that are too large", ENHANCE_YOUR_CALM)
        if flags & END_HEADERS:
            self._block = None
            self._recipient.on_block(first_flags, stream, block)
        else:
            self._block = (first_flags, stream, block)

    def _on_push(self, *_: object) -> None:
        raise ProtocolError("a push, which nobody asked for")


def _ignore(flags: int, stream: int, content: bytes) -> None:
    """Frames that say nothing to us."""
