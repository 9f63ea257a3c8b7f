"""The certificates that the client of a connection has shown."""

from __future__ import annotations

import ssl
from typing import Any

MAX_REMEMBERED = 4096
"""Clients whose intermediate certificates are remembered. Few have any."""

_sent_before: dict[bytes, tuple[bytes, ...]] = {}
"""What came with a certificate. A session that is resumed has the certificate only, not those sent along with it."""


def shown_by(connection: ssl.SSLObject | None) -> tuple[bytes, ...]:
    """The client's certificate and those that it sent along, as DER; empty when it showed none.

    The first one is certain: TLS has verified it. The others are only what the client sent, now or, for a session that
    is resumed, before.
    """
    own = connection.getpeercert(binary_form=True) if connection is not None else None
    if connection is None or own is None:
        return ()
    if connection.session_reused:
        return (own, *_sent_before.get(own, ()))
    sent = tuple(each for each in _chain(connection) if each != own)
    if sent:
        _remember(own, sent)
    return (own, *sent)


def _remember(own: bytes, sent: tuple[bytes, ...]) -> None:
    _sent_before.pop(own, None)
    _sent_before[own] = sent
    if len(_sent_before) > MAX_REMEMBERED:
        del _sent_before[next(iter(_sent_before))]  # the oldest


def _chain(connection: ssl.SSLObject) -> list[bytes]:
    # Public only from Python 3.13 on; it has answered objects before, and bytes since.
    source: Any = connection if hasattr(connection, "get_unverified_chain") else getattr(connection, "_sslobj", None)
    return [_der(each) for each in source.get_unverified_chain() or ()]


def _der(certificate: Any) -> bytes:
    if isinstance(certificate, bytes):
        return certificate
    return ssl.PEM_cert_to_DER_cert(certificate.public_bytes())
