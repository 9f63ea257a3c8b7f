"""The transport of one client, with flow control both ways.

Who writes waits for a client that does not read, and a client waits while too much of what it sent is unused.
"""

from __future__ import annotations

import asyncio

from clusterregistry.apiserver.http.peer_certificates import shown_by

HIGH_WATER = 64 * 1024
"""Bytes received and not yet used, above which the client is to pause."""


class Wire:
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
