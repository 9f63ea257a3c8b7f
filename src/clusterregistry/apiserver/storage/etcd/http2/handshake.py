"""How a server greets: what HTTP/2 begins with, and what else may come."""

from __future__ import annotations

import ssl

from clusterregistry.apiserver.storage.etcd.http2 import frames
from clusterregistry.apiserver.storage.etcd.http2.streams import RpcError, unavailable

SPEAKS_TLS = "it speaks TLS, and we do not"
SPEAKS_HTTP1 = "it speaks HTTP/1.1 and no gRPC"
HUNG_UP = "it has closed the connection"
REFUSED_BY_TLS = "TLS was ended by the other side"

_TLS_ALERT = b"\x15\x03"
_SHOWN = 24
"""Bytes of nonsense that are worth showing."""


def is_greeting(data: bytes) -> bool:
    """Whether a server speaks HTTP/2, by the first head of a frame: that has to be the server's settings."""
    high, low, kind, flags, stream = frames.HEAD.unpack_from(data)
    size = high << 8 | low
    return kind == frames.SETTINGS and not flags and not stream and size <= frames.SMALLEST_MAX_FRAME


def strange_greeting(data: bytes, lost: Exception | None) -> RpcError:
    """What is to be said of a server that began with something else, or ended the connection at once."""
    return unavailable(_described(data, lost), reached=False)


def _described(data: bytes, lost: Exception | None) -> str:
    if data.startswith(_TLS_ALERT):
        return SPEAKS_TLS
    if data.startswith(b"HTTP/1"):
        return SPEAKS_HTTP1
    if data:
        return f"it does not speak HTTP/2, but begins with {data[:_SHOWN]!r}"
    if isinstance(lost, ssl.SSLError):
        # With TLS 1.3 the handshake is over for us before the server says what it thinks of our certificate.
        return f"{REFUSED_BY_TLS}: {lost}"
    return f"{HUNG_UP}: {lost}" if lost else HUNG_UP
