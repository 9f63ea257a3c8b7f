"""Clients whose handshake fails: they get the reason, and the log gets it once."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections import deque

from clusterregistry.apiserver.pki.handshake import Refusal

LINGER_SECONDS = 1.0
"""How long a refused client has to read why, and to leave by itself."""

REPEAT_SECONDS = 3600.0
"""The same reason for the same issuer is logged again after so long."""

MAX_REMEMBERED = 256
MAX_LINES = 10
"""Lines a minute, whatever clients do."""

_MINUTE = 60.0

_log = logging.getLogger(__name__)


class Refusals:
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
