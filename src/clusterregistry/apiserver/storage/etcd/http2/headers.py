"""Headers of requests and answers.

Ours are literals that no table has to know, so a block is the same bytes for each request of a kind and is made once.
The peer is told to keep no table either (``HEADER_TABLE_SIZE``): each of its blocks can be understood by itself, and
since it sends the same few again and again, they are remembered by their bytes.
"""

from __future__ import annotations

import math
from typing import NamedTuple
from urllib.parse import unquote

from hpack import Decoder
from hpack.exceptions import HPACKError

from clusterregistry.apiserver.storage.etcd.http2.frames import COMPRESSION_ERROR, ProtocolError

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
        _named(_USER_AGENT, "clusterregistry"),
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
