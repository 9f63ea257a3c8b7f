"""Frames of HTTP/2 as bytes: made, and taken apart. What they mean is for the connection to say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from struct import Struct

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
