"""Accepts clients from a listening socket, within a limit on connections.

asyncio's own server would accept any number of clients, and retry without a pause when no file descriptors are left.
Here a client above the limit is closed at once: it learns of that at once, and costs neither a handshake nor memory. A
client that does not finish its handshake in time is closed as well.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import ipaddress
import logging
import os
import socket
import ssl
from collections import deque
from collections.abc import Callable
from typing import Any

from clusterregistry.apiserver.http.connection import Connection
from clusterregistry.apiserver.http.transport import HandshakeFailure, on_handshake_failure

HANDSHAKE_SECONDS = 10.0
"""How long a client may take for the TLS handshake."""

_BATCH = 64
"""Clients that are accepted in one turn of the loop."""

_RETRY_SECONDS = 1.0
"""Seconds without accepting after the system refused to give us a client."""

_WARNING_SECONDS = 60.0
"""Seconds between two warnings about rejected clients."""

_NO_DESCRIPTORS = {errno.EMFILE, errno.ENFILE}

_log = logging.getLogger(__name__)


class Listener:
    """Makes connections of clients, until ``stop``."""

    def __init__(
        self,
        listening: socket.socket,
        *,
        context: ssl.SSLContext | None,
        limit: ConnectionLimit,
        new_connection: Callable[[str], Connection[Any]],
    ) -> None:
        """``new_connection`` is given the holder of the connection's place, and releases the place at its end."""
        self._loop = asyncio.get_running_loop()
        self._listening = listening
        self._context = context
        self._limit = limit
        self._new_connection = new_connection
        self._handshakes: set[asyncio.Task[None]] = set()
        self._failures = HandshakeFailureLog(self._loop)
        self._retry: asyncio.TimerHandle | None = None
        self._rejected = 0
        self._warned_at = -_WARNING_SECONDS
        self._spare = _open_spare()
        listening.setblocking(False)
        self._start()

    def stop(self) -> None:
        """Closes the socket. Handshakes that have begun go on."""
        if self._retry is not None:
            self._retry.cancel()
        if self._listening.fileno() >= 0:
            self._loop.remove_reader(self._listening)
            self._listening.close()
            self._close_spare()

    def abort(self) -> None:
        """Closes the socket and ends the handshakes."""
        self.stop()
        for handshake in self._handshakes:
            handshake.cancel()

    def _start(self) -> None:
        self._retry = None
        self._loop.add_reader(self._listening, self._accept)

    def _accept(self) -> None:
        for _ in range(_BATCH):
            try:
                client, address = self._listening.accept()
            except (BlockingIOError, InterruptedError):
                return
            except ConnectionAbortedError:  # the client left while it waited
                continue
            except OSError as error:
                if error.errno in _NO_DESCRIPTORS and self._reject_next(error):
                    continue
                self._retry_later(error)
                return
            self._connect(client, address[0])

    def _reject_next(self, error: OSError) -> bool:
        """Closes the next client, which would otherwise wait for a descriptor that may never be free.

        Uses the spare descriptor. Returns False if that is not possible.
        """
        if self._spare is None:
            return False
        self._close_spare()
        try:
            client, address = self._listening.accept()
        except BlockingIOError:  # the client left
            return True
        except OSError:
            return False
        else:
            client.close()
        finally:
            self._spare = _open_spare()
        self._warn(address[0], f"cannot accept connections ({error.strerror}, ulimit -n)")
        return True

    def _close_spare(self) -> None:
        if self._spare is not None:
            os.close(self._spare)
            self._spare = None

    def _retry_later(self, error: OSError) -> None:
        """There are no descriptors or there is no memory: an immediate retry would keep us from freeing some."""
        _log.warning("cannot accept connections, retrying in %g s: %s", _RETRY_SECONDS, error.strerror)
        self._loop.remove_reader(self._listening)
        self._retry = self._loop.call_later(_RETRY_SECONDS, self._start)

    def _connect(self, client: socket.socket, address: str) -> None:
        holder = holder_of(address)
        if not self._limit.acquire(holder):
            client.close()
            self._warn(address, f"{self._limit.taken} connections are open")
            return
        client.setblocking(False)
        handshake = self._loop.create_task(self._shake_hands(client, holder))
        self._handshakes.add(handshake)
        handshake.add_done_callback(self._handshakes.discard)

    async def _shake_hands(self, client: socket.socket, holder: str) -> None:
        connection = self._new_connection(holder)
        # A task has a context of its own, and the loop makes the connection in a copy of it.
        on_handshake_failure.set(lambda failure: self._failures.handle(failure, client=client, address=holder))
        try:
            await self._loop.connect_accepted_socket(
                lambda: connection,
                client,
                ssl=self._context,
                ssl_handshake_timeout=HANDSHAKE_SECONDS if self._context else None,
            )
        except OSError as error:
            _log.debug("handshake with a client at %s failed: %s", holder, error)
        finally:
            if not connection.is_connected:
                self._limit.release(holder)
                with contextlib.suppress(OSError):
                    client.close()

    def _warn(self, address: str, why: str) -> None:
        self._rejected += 1
        _log.debug("rejected a client at %s: %s", address, why)
        now = self._loop.time()
        if now - self._warned_at >= _WARNING_SECONDS:
            _log.warning(
                "%s: rejected %d clients, the last one from %s; see --max-connections", why, self._rejected, address
            )
            self._warned_at, self._rejected = now, 0


def _open_spare() -> int | None:
    """A descriptor that can be closed to accept and reject a client; None if there is none."""
    try:
        return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None


_RESERVE = 10
"""One part in so many is reserved for addresses with few connections."""


class ConnectionLimit:
    """Counts connections, from before the handshake to the end.

    Behind a proxy or a gateway all clients have one address, so one address may have nearly all connections. The last
    tenth is only for addresses that have less than that themselves: no single one can lock out all others.
    """

    __slots__ = ("_held", "_limit", "_small", "taken")

    def __init__(self, limit: int) -> None:
        """``limit`` is at least 1."""
        self._limit = limit
        self._small = max(limit // _RESERVE, 1)
        self._held: dict[str, int] = {}
        self.taken = 0

    def acquire(self, holder: str) -> bool:
        """Counts one connection more for a holder; returns False if that is above the limit."""
        held = self._held.get(holder, 0)
        free = self._limit - self.taken
        if free <= 0 or (free <= self._small and held >= self._small):
            return False
        self._held[holder] = held + 1
        self.taken += 1
        return True

    def release(self, holder: str) -> None:
        """Counts one connection less."""
        self.taken -= 1
        held = self._held[holder] - 1
        if held:
            self._held[holder] = held
        else:
            del self._held[holder]  # otherwise each address that ever connected would stay


def holder_of(address: str) -> str:
    """The key under which an IP address is counted: with IPv6 a network of 64 bits, since hosts own whole networks."""
    if ":" not in address:
        return address
    parsed = ipaddress.IPv6Address(address)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.IPv6Network((parsed, 64), strict=False))


LINGER_SECONDS = 1.0
"""How long a rejected client has to read the reason and to disconnect."""

REPEAT_SECONDS = 3600.0
"""The same reason for the same issuer is logged again after so long."""

MAX_LOGGED_PAIRS = 256
MAX_LINES = 10
"""Lines a minute, whatever clients do."""

_MINUTE = 60.0


class HandshakeFailureLog:
    """Sends the reason of a failed handshake to its client and logs it, with bounds on log lines and memory."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._logged: dict[tuple[str, str], float] = {}
        """Loop times by issuer and reason; the oldest first."""
        self._lines: deque[float] = deque(maxlen=MAX_LINES)

    def handle(self, failure: HandshakeFailure, *, client: socket.socket, address: str) -> None:
        """Logs the failure and informs the client.

        The handshake ends when the client disconnects, or after ``LINGER_SECONDS``.
        """
        if failure.is_certificate_error:
            self._log(failure, address)
        with contextlib.suppress(OSError):  # the client left already
            # The client waits for an answer, so the socket has room for these few bytes.
            client.send(failure.farewell)
            client.shutdown(socket.SHUT_WR)
        self._loop.call_later(LINGER_SECONDS, _end_reading, client)

    def _log(self, failure: HandshakeFailure, address: str) -> None:
        now = self._loop.time()
        if len(self._lines) == MAX_LINES and now - self._lines[0] < _MINUTE:
            return
        issuer, reason = failure.issuer(), failure.reason
        since = self._logged.get((issuer, reason))
        if since is not None and now - since < REPEAT_SECONDS:
            return
        self._record((issuer, reason), now)
        _log.warning(
            "refused the client certificate of a client at %s: %s; its issuer is %s. Certificates of users are those "
            "of the authorities that --client-ca-file names and, with --generate-admin, of DATA_DIR/ca.crt",
            address,
            reason,
            ascii(issuer) if issuer else "not known",
        )

    def _record(self, pair: tuple[str, str], now: float) -> None:
        self._lines.append(now)
        self._logged.pop(pair, None)
        self._logged[pair] = now
        if len(self._logged) > MAX_LOGGED_PAIRS:
            del self._logged[next(iter(self._logged))]


def _end_reading(client: socket.socket) -> None:
    """Ends the stream, so that the loop closes the connection, unless it is closed already."""
    with contextlib.suppress(OSError):
        client.shutdown(socket.SHUT_RD)
