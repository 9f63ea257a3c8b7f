"""The connections of a server: their number, their deadlines and their end."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import time
from collections.abc import Callable
from typing import Generic

from clusterregistry.apiserver.http.connection import Connection
from clusterregistry.apiserver.http.listener import ConnectionLimit, Listener
from clusterregistry.apiserver.http.parser import R
from clusterregistry.apiserver.http.response import Reply

_DATE = "date: %a, %d %b %Y %H:%M:%S GMT"
"""In English, as HTTP requires: nothing sets a locale in this process."""

BACKLOG = 1024
"""Clients that may wait to be accepted."""

MAX_CONNECTIONS = 10_000

_BUFFER = 64 * 1024
"""Bytes that are read from one client before others have their turn."""

_TICK_SECONDS = 1.0

_log = logging.getLogger(__name__)


class HttpServer(Generic[R]):
    """Serves a handler on a socket. Each request is an instance of ``request_class``.

    One clock serves all connections: a timer for each request would cost more than deadlines that are a second late.
    """

    def __init__(
        self, handler: Callable[[R], Reply], request_class: type[R], *, max_connections: int = MAX_CONNECTIONS
    ) -> None:
        self.handler = handler
        self.request_class = request_class
        self.limit = ConnectionLimit(max_connections)
        self.is_stopping = False
        self.buffer = memoryview(bytearray(_BUFFER))
        self.loop = asyncio.get_running_loop()
        self._connections: set[Connection[R]] = set()
        self._empty = asyncio.Event()
        self._tick()

    async def listen(self, listening: socket.socket, context: ssl.SSLContext | None) -> None:
        """Accepts clients from a socket that listens already, and closes it at the end."""
        self._listener = Listener(
            listening,
            context=context,
            limit=self.limit,
            new_connection=lambda holder: Connection(self, holder),
        )

    async def stop(self, *, patience: float) -> None:
        """Accepts no more clients, closes idle connections, and waits so many seconds for requests in progress."""
        self.is_stopping = True
        self._listener.stop()
        for connection in list(self._connections):
            connection.finish()
        self._check_empty()
        try:
            async with asyncio.timeout(patience):
                await self._empty.wait()
        except TimeoutError:
            _log.warning("stopping with %d requests in progress", len(self._connections))
        self.abort()

    def abort(self) -> None:
        """Ends all connections at once."""
        self._ticker.cancel()
        self._listener.abort()
        for connection in list(self._connections):
            connection.abort()
        self._empty.set()

    def add(self, connection: Connection[R]) -> None:
        self._connections.add(connection)
        if self.is_stopping:  # its handshake had begun before
            connection.finish()

    def remove(self, connection: Connection[R]) -> None:
        self._connections.discard(connection)
        self.limit.release(connection.holder)
        self._check_empty()

    def _check_empty(self) -> None:
        if self.is_stopping and not self._connections:
            self._empty.set()

    def _tick(self) -> None:
        self.date = time.strftime(_DATE, time.gmtime(time.time())).encode()
        self.expire_connections(self.loop.time())
        self._ticker = self.loop.call_later(_TICK_SECONDS, self._tick)

    def expire_connections(self, now: float) -> None:
        """Ends the connections whose deadlines have passed at ``now``, in loop time."""
        self.now = now
        for connection in [one for one in self._connections if one.deadline < now or one.write_deadline < now]:
            connection.expire()
