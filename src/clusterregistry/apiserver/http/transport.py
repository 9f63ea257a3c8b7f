"""The transport of one client, with flow control both ways.

Who writes waits for a client that does not read, and a client waits while too much of what it sent is unused.
"""

from __future__ import annotations

import asyncio
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


HIGH_WATER = 64 * 1024
"""Bytes received and not yet used, above which the client is to pause."""


class ClientTransport:
    """One client, as requests and answers see it. Its connection tells it what happens (the ``on_`` methods)."""

    __slots__ = (
        "_readable",
        "_transport",
        "_unused",
        "_waiters",
        "address",
        "certificates",
        "lost",
        "writable",
        "write",
    )

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self.write = transport.write
        peer = transport.get_extra_info("peername")
        self.address: str = peer[0] if isinstance(peer, tuple) else ""
        """The client's IP address."""
        self.certificates = shown_by(transport.get_extra_info("ssl_object"))
        self.lost = False
        self.writable = True
        """Whether there is room to write."""
        self._readable = True
        self._unused = 0
        self._waiters: list[asyncio.Future[None]] = []

    @property
    def closing(self) -> bool:
        """Whether nothing is read or sent any more: we close it, or the client has said goodbye."""
        return self.lost or self._transport.is_closing()

    @property
    def has_unsent(self) -> bool:
        """Whether something that was written waits for the client to read."""
        return self._transport.get_write_buffer_size() > 0

    def close(self) -> None:
        """Closes once everything is written. Whatever still comes is read and dropped, so that nothing is reset."""
        if not self._transport.is_closing():  # asyncio's own forgets the connection when it is told so twice
            self._transport.close()

    def abort(self) -> None:
        """Ends the connection at once, whatever waits to be written: for clients that do not read."""
        self._transport.abort()

    def hold(self, size: int) -> None:
        """So many bytes more wait to be used."""
        self._unused += size
        if self._unused > HIGH_WATER and self._readable and not self.closing:
            self._readable = False
            self._transport.pause_reading()

    def release(self, size: int) -> None:
        """So many bytes were used."""
        self._unused -= size
        if self._unused <= HIGH_WATER and not self._readable and not self.closing:
            self._readable = True
            self._transport.resume_reading()

    def write_at_once(self, data: bytes) -> bool:
        """Writes unless that would have to wait, or nobody would read it: then says no."""
        if not self.writable or self.lost or self._transport.is_closing():
            return False
        self.write(data)
        return True

    async def drain(self) -> None:
        """Waits until there is room to write, or nobody who would read."""
        while not self.writable and not self.lost:
            await self.change()

    async def change(self) -> None:
        """Waits until something has happened: who calls looks whether it was what it waits for."""
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        await waiter

    def changed(self) -> None:
        if self._waiters:
            waiters, self._waiters = self._waiters, []
            for waiter in waiters:
                if not waiter.done():  # it may have been cancelled
                    waiter.set_result(None)

    def on_full(self) -> None:
        self.writable = False

    def on_room(self) -> None:
        self.writable = True
        self.changed()

    def on_lost(self) -> None:
        self.lost = True
        # The transport knows its protocol for ever, and that knows us: a circle that would wait for the collector.
        self._transport = _NOWHERE
        self.write = _NOWHERE.write
        self.changed()


class _Nowhere(asyncio.Transport):
    """The transport of a client that has left."""

    def is_closing(self) -> bool:
        return True

    def write(self, data: object) -> None:
        """Nobody reads it."""

    def abort(self) -> None:
        """It has ended."""

    def get_write_buffer_size(self) -> int:
        return 0


_NOWHERE = _Nowhere()
