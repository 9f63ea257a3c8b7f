"""All connections of a server: how many there may be, how long they may idle, and how they end."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import time

from clusterregistry.apiserver.filters.interface import Handler
from clusterregistry.apiserver.http.connection import Connection
from clusterregistry.apiserver.http.listener import ConnectionLimit, Listener

_DATE = "date: %a, %d %b %Y %H:%M:%S GMT"
"""In English, as HTTP wants it: nothing sets a locale in this process."""

BACKLOG = 1024
"""Clients that may wait to be accepted."""

MAX_CONNECTIONS = 10_000

_BUFFER = 64 * 1024
"""Bytes that are read from one client before others have their turn."""

_TICK = 1.0

_log = logging.getLogger(__name__)


class HttpServer:
    """Serves a handler on a socket.

    One clock for all: timers for each request would cost more than the date and the idle ones being a second late.
    """

    def __init__(self, handler: Handler, *, max_connections: int = MAX_CONNECTIONS) -> None:
        self.handler = handler
        self.places = ConnectionLimit(max_connections)
        self.stopping = False
        self.buffer = memoryview(bytearray(_BUFFER))
        self.loop = asyncio.get_running_loop()
        self._connections: set[Connection] = set()
        self._empty = asyncio.Event()
        self._tick()

    async def listen(self, listening: socket.socket, context: ssl.SSLContext | None) -> None:
        """Takes clients from a socket that listens already, and closes it at the end."""
        self._accepting = Listener(
            listening,
            context=context,
            places=self.places,
            new_connection=lambda holder: Connection(self, holder),
        )

    async def stop(self, *, patience: float) -> None:
        """Takes nobody new, ends who is idle, and waits so many seconds for those who are being answered."""
        self.stopping = True
        self._accepting.stop()
        for connection in list(self._connections):
            connection.finish()
        self._note_if_empty()
        try:
            async with asyncio.timeout(patience):
                await self._empty.wait()
        except TimeoutError:
            _log.warning("stopping though %d requests are not finished", len(self._connections))
        self.end()

    def end(self) -> None:
        """Ends all connections at once."""
        self._ticking.cancel()
        self._accepting.end()
        for connection in list(self._connections):
            connection.end()
        self._empty.set()

    def joined(self, connection: Connection) -> None:
        self._connections.add(connection)
        if self.stopping:  # its handshake had begun before
            connection.finish()

    def left(self, connection: Connection) -> None:
        self._connections.discard(connection)
        self.places.give_back(connection.holder)
        self._note_if_empty()

    def _note_if_empty(self) -> None:
        if self.stopping and not self._connections:
            self._empty.set()

    def _tick(self) -> None:
        self.now = self.loop.time()
        self.date = time.strftime(_DATE, time.gmtime(time.time())).encode()
        now = self.now
        for connection in [one for one in self._connections if one.deadline < now or one.write_deadline < now]:
            connection.expire()
        self._ticking = self.loop.call_later(_TICK, self._tick)
