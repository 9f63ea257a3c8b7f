"""Takes clients from a listening socket, as many as there are places for.

The loop's own server would take any number of them, and try without a pause when there are no file descriptors left.
Here a client for whom there is no place is closed at once: it learns of it at once, and costs neither a handshake nor
memory. Whoever does not finish its handshake in time loses its place.
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

from clusterregistry.apiserver.http.connection import Connection
from clusterregistry.apiserver.pki.tls import Refusal, on_refusal

_RESERVE = 10
"""One part in so many is kept for addresses that hold little."""


class ConnectionLimit:
    """One place for each connection, from before its handshake to its end.

    Behind a proxy or a gateway all clients have one address, so an address may hold nearly all places. The last tenth
    is only for addresses that hold less than that themselves: no single one can lock out all others.
    """

    __slots__ = ("_held", "_limit", "_small", "taken")

    def __init__(self, limit: int) -> None:
        """``limit`` is at least 1."""
        self._limit = limit
        self._small = max(limit // _RESERVE, 1)
        self._held: dict[str, int] = {}
        self.taken = 0

    def take(self, holder: str) -> bool:
        """Takes a place for a holder, if there is one for it."""
        held = self._held.get(holder, 0)
        free = self._limit - self.taken
        if free <= 0 or (free <= self._small and held >= self._small):
            return False
        self._held[holder] = held + 1
        self.taken += 1
        return True

    def give_back(self, holder: str) -> None:
        """A place that was taken is free again."""
        self.taken -= 1
        held = self._held[holder] - 1
        if held:
            self._held[holder] = held
        else:
            del self._held[holder]  # or else each address that ever came would stay


def holder_of(address: str) -> str:
    """Who an IP address counts as: with IPv6 a whole network of 64 bits, since hosts have as many as they like."""
    if ":" not in address:
        return address
    parsed = ipaddress.IPv6Address(address)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.IPv6Network((parsed, 64), strict=False))


LINGER_SECONDS = 1.0
"""How long a refused client has to read why, and to leave by itself."""

REPEAT_SECONDS = 3600.0
"""The same reason for the same issuer is logged again after so long."""

MAX_REMEMBERED = 256
MAX_LINES = 10
"""Lines a minute, whatever clients do."""

_MINUTE = 60.0

_log = logging.getLogger(__name__)


class HandshakeFailures:
    """Sends farewells, and writes the log without letting strangers fill it or the memory."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._logged: dict[tuple[str, str], float] = {}
        """When it was logged, by issuer and reason; the oldest first."""
        self._lines: deque[float] = deque(maxlen=MAX_LINES)

    def refuse(self, refusal: Refusal, *, client: socket.socket, address: str) -> None:
        """Tells the log and the client. The handshake ends when the client leaves, or after ``LINGER_SECONDS``."""
        if refusal.of_certificate:
            self._note(refusal, address)
        with contextlib.suppress(OSError):  # it left already
            # The client waits for us, so there is room for these few bytes.
            client.send(refusal.farewell)
            client.shutdown(socket.SHUT_WR)
        self._loop.call_later(LINGER_SECONDS, _end_reading, client)

    def _note(self, refusal: Refusal, address: str) -> None:
        now = self._loop.time()
        if len(self._lines) == MAX_LINES and now - self._lines[0] < _MINUTE:
            return
        issuer, reason = refusal.issuer(), refusal.reason
        since = self._logged.get((issuer, reason))
        if since is not None and now - since < REPEAT_SECONDS:
            return
        self._remember((issuer, reason), now)
        _log.warning(
            "refused the client certificate of a client at %s: %s; its issuer is %s. Certificates of users are those "
            "of the authorities that --client-ca-file names and, with --generate-admin, of DATA_DIR/ca.crt",
            address,
            reason,
            ascii(issuer) if issuer else "not known",
        )

    def _remember(self, pair: tuple[str, str], now: float) -> None:
        self._lines.append(now)
        self._logged.pop(pair, None)
        self._logged[pair] = now
        if len(self._logged) > MAX_REMEMBERED:
            del self._logged[next(iter(self._logged))]


def _end_reading(client: socket.socket) -> None:
    """The loop sees the end of the stream, and closes the connection, unless that was done before."""
    with contextlib.suppress(OSError):
        client.shutdown(socket.SHUT_RD)


HANDSHAKE_SECONDS = 10.0
"""How long a client may take for TLS's handshake."""

_AT_ONCE = 64
"""Clients that are taken before others have their turn."""

_PAUSE = 1.0
"""Seconds without trying after the system refused to give us a client."""

_COMPLAINT_SECONDS = 60.0
"""Seconds between two warnings of clients that were turned away."""

_NO_DESCRIPTORS = {errno.EMFILE, errno.ENFILE}


class Listener:
    """Makes connections of clients, from the socket on which they come until ``stop``."""

    def __init__(
        self,
        listening: socket.socket,
        *,
        context: ssl.SSLContext | None,
        places: ConnectionLimit,
        new_connection: Callable[[str], Connection],
    ) -> None:
        """``new_connection`` is given the holder of the connection's place; who ends it gives the place back."""
        self._loop = asyncio.get_running_loop()
        self._listening = listening
        self._context = context
        self._places = places
        self._new_connection = new_connection
        self._handshakes: set[asyncio.Task[None]] = set()
        self._refusals = HandshakeFailures(self._loop)
        self._pause: asyncio.TimerHandle | None = None
        self._turned_away = 0
        self._complained_at = -_COMPLAINT_SECONDS
        self._spare = _new_spare()
        listening.setblocking(False)
        self._begin()

    def stop(self) -> None:
        """Takes nobody any more. Handshakes that have begun go on."""
        if self._pause is not None:
            self._pause.cancel()
        if self._listening.fileno() >= 0:
            self._loop.remove_reader(self._listening)
            self._listening.close()
            self._give_up_spare()

    def end(self) -> None:
        """Ends the handshakes, too."""
        self.stop()
        for handshake in self._handshakes:
            handshake.cancel()

    def _begin(self) -> None:
        self._pause = None
        self._loop.add_reader(self._listening, self._take)

    def _take(self) -> None:
        for _ in range(_AT_ONCE):
            try:
                client, address = self._listening.accept()
            except (BlockingIOError, InterruptedError):
                return
            except ConnectionAbortedError:  # it left while it waited
                continue
            except OSError as error:
                if error.errno in _NO_DESCRIPTORS and self._turn_away(error):
                    continue
                self._wait(error)
                return
            self._welcome(client, address[0])

    def _turn_away(self, error: OSError) -> bool:
        """Closes the next client, who would else wait for a descriptor that may never be free. Uses the spare one."""
        if self._spare is None:
            return False
        self._give_up_spare()
        try:
            client, address = self._listening.accept()
        except BlockingIOError:  # it left
            return True
        except OSError:
            return False
        else:
            client.close()
        finally:
            self._spare = _new_spare()
        self._complain(address[0], f"cannot take connections for a moment ({error.strerror}, ulimit -n)")
        return True

    def _give_up_spare(self) -> None:
        if self._spare is not None:
            os.close(self._spare)
            self._spare = None

    def _wait(self, error: OSError) -> None:
        """There are no descriptors or no memory: trying again at once would only keep us from freeing some."""
        _log.warning("cannot take connections for a moment: %s", error.strerror)
        self._loop.remove_reader(self._listening)
        self._pause = self._loop.call_later(_PAUSE, self._begin)

    def _welcome(self, client: socket.socket, address: str) -> None:
        holder = holder_of(address)
        if not self._places.take(holder):
            client.close()
            self._complain(address, f"{self._places.taken} connections are open")
            return
        client.setblocking(False)
        handshake = self._loop.create_task(self._shake_hands(client, holder))
        self._handshakes.add(handshake)
        handshake.add_done_callback(self._handshakes.discard)

    async def _shake_hands(self, client: socket.socket, holder: str) -> None:
        connection = self._new_connection(holder)
        # A task has a context of its own, and the loop makes the connection in a copy of it.
        on_refusal.set(lambda refusal: self._refusals.refuse(refusal, client=client, address=holder))
        try:
            await self._loop.connect_accepted_socket(
                lambda: connection,
                client,
                ssl=self._context,
                ssl_handshake_timeout=HANDSHAKE_SECONDS if self._context else None,
            )
        except OSError as error:
            _log.debug("no handshake with a client at %s: %s", holder, error)
        finally:
            if not connection.begun:
                self._places.give_back(holder)
                with contextlib.suppress(OSError):
                    client.close()

    def _complain(self, address: str, why: str) -> None:
        self._turned_away += 1
        _log.debug("turned away a client at %s: %s", address, why)
        now = self._loop.time()
        if now - self._complained_at >= _COMPLAINT_SECONDS:
            _log.warning(
                "%s: turned away %d, the last one from %s; see --max-connections",
                why,
                self._turned_away,
                address,
            )
            self._complained_at, self._turned_away = now, 0


def _new_spare() -> int | None:
    """A descriptor that can be given up for that of a client who is turned away; None when there is none."""
    try:
        return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
