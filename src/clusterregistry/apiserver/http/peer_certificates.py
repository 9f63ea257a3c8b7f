"""The certificates that the client of a connection has shown."""

from __future__ import annotations

import ssl
from collections.abc import Iterable
from itertools import islice
from typing import Any

from clusterregistry.apiserver.authn.certificates import MAX_CHAIN

MAX_REMEMBERED = 1024
"""Clients whose intermediate certificates are remembered. Few have any."""

MAX_BYTES = 16 * 1024
"""Of the certificates that a client sends along with its own, kept while it is connected: a dozen usual ones."""

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
    sent = _bounded(each for each in _chain(connection) if each != own)
    if sent:
        sent = _remember(own, sent)
    return (own, *sent)


def _bounded(certificates: Iterable[bytes]) -> tuple[bytes, ...]:
    """The first of them, as far as they are looked at and not too much to keep for each connection."""
    kept: list[bytes] = []
    size = 0
    for each in islice(certificates, MAX_CHAIN - 1):
        size += len(each)
        if size > MAX_BYTES:
            break
        kept.append(each)
    return tuple(kept)


def _remember(own: bytes, sent: tuple[bytes, ...]) -> tuple[bytes, ...]:
    """The same certificates, which all connections of a client share."""
    before = _sent_before.pop(own, None)
    if before == sent:
        sent = before
    _sent_before[own] = sent
    if len(_sent_before) > MAX_REMEMBERED:
        del _sent_before[next(iter(_sent_before))]  # the oldest
    return sent


def _chain(connection: ssl.SSLObject) -> list[bytes]:
    # Public only from Python 3.13 on; it has answered objects before, and bytes since.
    source: Any = connection if hasattr(connection, "get_unverified_chain") else getattr(connection, "_sslobj", None)
    return [_der(each) for each in source.get_unverified_chain() or ()]


def _der(certificate: Any) -> bytes:
    if isinstance(certificate, bytes):
        return certificate
    return ssl.PEM_cert_to_DER_cert(certificate.public_bytes())
