"""The transport of one client: flow control in both directions, the client's certificates, failed handshakes."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import islice
from typing import Any

HIGH_WATER = 64 * 1024
"""Bytes received and not yet used, above which reading from the client pauses."""


class ClientTransport:
    """Writes to one client and paces reading. The connection reports transport events by the ``on_`` methods."""

    __slots__ = (
        "_readable",
        "_transport",
        "_unused",
        "_waiters",
        "address",
        "certificates",
        "is_lost",
        "is_writable",
        "write",
    )

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self.write = transport.write
        peer = transport.get_extra_info("peername")
        self.address: str = peer[0] if isinstance(peer, tuple) else ""
        """The client's IP address."""
        self.certificates = peer_certificates(transport.get_extra_info("ssl_object"))
        self.is_lost = False
        self.is_writable = True
        """Whether the write buffer has room."""
        self._readable = True
        self._unused = 0
        self._waiters: list[asyncio.Future[None]] = []

    @property
    def is_closing(self) -> bool:
        """Whether nothing is read or sent any more: this server closes the connection, or the client has."""
        return self.is_lost or self._transport.is_closing()

    @property
    def has_unsent(self) -> bool:
        """Whether written bytes wait for the client to read."""
        return self._transport.get_write_buffer_size() > 0

    def close(self) -> None:
        """Closes once everything is written. Bytes that still arrive are dropped, so that nothing is reset."""
        if not self._transport.is_closing():  # asyncio's own transport forgets the connection at the second call
            self._transport.close()

    def abort(self) -> None:
        """Ends the connection at once and drops unsent bytes: for clients that do not read."""
        self._transport.abort()

    def hold(self, size: int) -> None:
        """Counts received bytes that are not used yet."""
        self._unused += size
        if self._unused > HIGH_WATER and self._readable and not self.is_closing:
            self._readable = False
            self._transport.pause_reading()

    def release(self, size: int) -> None:
        """Counts held bytes as used."""
        self._unused -= size
        if self._unused <= HIGH_WATER and not self._readable and not self.is_closing:
            self._readable = True
            self._transport.resume_reading()

    def write_at_once(self, data: bytes) -> bool:
        """Writes and returns True; returns False if the write would have to wait or the client has left."""
        if not self.is_writable or self.is_lost or self._transport.is_closing():
            return False
        self.write(data)
        return True

    async def drain(self) -> None:
        """Waits until the write buffer has room or the client has left."""
        while not self.is_writable and not self.is_lost:
            await self.change()

    async def change(self) -> None:
        """Waits for the next event of any kind; the caller checks whether it was the expected one."""
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        await waiter

    def notify(self) -> None:
        """Wakes all callers of ``change``."""
        if self._waiters:
            waiters, self._waiters = self._waiters, []
            for waiter in waiters:
                if not waiter.done():  # it may have been cancelled
                    waiter.set_result(None)

    def on_pause_writing(self) -> None:
        self.is_writable = False

    def on_resume_writing(self) -> None:
        self.is_writable = True
        self.notify()

    def on_lost(self) -> None:
        self.is_lost = True
        # The asyncio transport keeps its protocol, which keeps this object: a cycle that would wait for the collector.
        self._transport = _CLOSED
        self.write = _CLOSED.write
        self.notify()


class _ClosedTransport(asyncio.Transport):
    """The transport of a client that has left."""

    def is_closing(self) -> bool:
        return True

    def write(self, data: object) -> None:
        """Drops the data."""

    def abort(self) -> None:
        """Does nothing: the connection has ended."""

    def get_write_buffer_size(self) -> int:
        return 0


_CLOSED = _ClosedTransport()


MAX_CHAIN = 10
"""Certificates of one client that are used, its own and intermediates."""

MAX_INTERMEDIATE_BYTES = 16 * 1024
"""Of the intermediate certificates of a client, kept while it is connected: a dozen usual ones."""

MAX_CACHED_CHAINS = 1024
"""Clients whose intermediate certificates are cached. Few have any."""

_intermediates: dict[bytes, tuple[bytes, ...]] = {}
"""The intermediates by client certificate. A resumed session has the certificate only, not the intermediates."""


def peer_certificates(connection: ssl.SSLObject | None) -> tuple[bytes, ...]:
    """The client's certificate and the intermediates that it sent, as DER; empty without a client certificate.

    TLS has verified the first one. The others are only what the client sent, now or, for a resumed session, before.
    """
    own = connection.getpeercert(binary_form=True) if connection is not None else None
    if connection is None or own is None:
        return ()
    if connection.session_reused:
        return (own, *_intermediates.get(own, ()))
    sent = _bounded(each for each in _unverified_chain(connection) if each != own)
    if sent:
        sent = _cache(own, sent)
    return (own, *sent)


def _bounded(certificates: Iterable[bytes]) -> tuple[bytes, ...]:
    """The first certificates, within the limits of number and size."""
    kept: list[bytes] = []
    size = 0
    for each in islice(certificates, MAX_CHAIN - 1):
        size += len(each)
        if size > MAX_INTERMEDIATE_BYTES:
            break
        kept.append(each)
    return tuple(kept)


def _cache(own: bytes, sent: tuple[bytes, ...]) -> tuple[bytes, ...]:
    """Caches the intermediates and returns the tuple that all connections of the client share."""
    before = _intermediates.pop(own, None)
    if before == sent:
        sent = before
    _intermediates[own] = sent
    if len(_intermediates) > MAX_CACHED_CHAINS:
        del _intermediates[next(iter(_intermediates))]  # the oldest
    return sent


def _unverified_chain(connection: ssl.SSLObject) -> list[bytes]:
    # Public only from Python 3.13 on. Before that it returns objects, since then bytes.
    source: Any = connection if hasattr(connection, "get_unverified_chain") else getattr(connection, "_sslobj", None)
    return [_der(each) for each in source.get_unverified_chain() or ()]


def _der(certificate: Any) -> bytes:
    if isinstance(certificate, bytes):
        return certificate
    return ssl.PEM_cert_to_DER_cert(certificate.public_bytes())


@dataclass(frozen=True, slots=True)
class HandshakeFailure:
    """A TLS handshake that failed, and the last bytes to send to its client."""

    error: ssl.SSLError
    farewell: bytes
    issuer: Callable[[], str]
    """The issuer of the client's certificate, fit for a log; empty if it is not known."""

    @property
    def is_certificate_error(self) -> bool:
        """Whether the client's certificate is the reason."""
        return isinstance(self.error, ssl.SSLCertVerificationError)

    @property
    def reason(self) -> str:
        if isinstance(self.error, ssl.SSLCertVerificationError):
            return self.error.verify_message
        return self.error.reason or str(self.error)


on_handshake_failure: ContextVar[Callable[[HandshakeFailure], None]] = ContextVar("on_handshake_failure")
"""Called by the TLS context for the connection that is being made. The callback sends the farewell."""
