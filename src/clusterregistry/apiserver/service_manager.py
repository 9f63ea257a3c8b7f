"""Notifies systemd of the state of this process: sd_notify's protocol, as far as a server needs it.

A message is a datagram of ``NAME=value`` lines to the socket that ``NOTIFY_SOCKET`` names. Without that variable
nothing is sent. A message that cannot be sent never keeps the server from starting, serving or stopping.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import MutableMapping
from dataclasses import dataclass, field

_log = logging.getLogger(__name__)

_SEND_SECONDS = 1.0
"""How long a message may take. The manager reads at once, unless it hangs."""

_EXTENSION = 60.0
"""Seconds that a start may still take after each message that asks for more time."""

_MARGIN = 15.0
"""Seconds for closing the storage and the audit log after the last request."""

_MICROSECONDS = 1_000_000
_MOST_DIGITS = 18


@dataclass(slots=True)
class ServiceManager:
    """The manager that has started this process. With no ``address`` there is none, and nothing is sent."""

    address: str = ""
    watchdog: float = 0.0
    """Seconds within which the manager expects a message; 0: it expects none."""
    _ready: asyncio.Event = field(default_factory=asyncio.Event)
    _is_unreachable: bool = False

    def ready(self, status: str) -> None:
        self._ready.set()
        self._send("READY=1", f"STATUS={status}")

    def stopping(self, status: str, *, seconds: float) -> None:
        """The stop has begun; requests may take so many seconds until they are answered."""
        self._send("STOPPING=1", _more_time(seconds + _MARGIN), f"STATUS={status}")

    async def keep_informed(self) -> None:
        """Asks for more time until the server is ready, then sends the messages of the watchdog.

        They come from the event loop that serves, so that a loop that hangs sends none.
        """
        if not self.address:
            return
        while not self._ready.is_set():
            self._send(_more_time(_EXTENSION), "STATUS=Starting: opening the storage")
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._ready.wait(), _EXTENSION / 4)
        while self.watchdog:
            self._send("WATCHDOG=1")
            await asyncio.sleep(self.watchdog / 2)

    def _send(self, *lines: str) -> None:
        if not self.address:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sending:
                sending.settimeout(_SEND_SECONDS)
                sending.sendto("\n".join(lines).encode(), self.address)
        except OSError as error:
            if not self._is_unreachable:
                _log.warning("systemd cannot be notified of %s: %s", lines[0], error.strerror or error)
            self._is_unreachable = True
        else:
            self._is_unreachable = False


def from_environment(environ: MutableMapping[str, str]) -> ServiceManager:
    """Returns the manager that the environment names, and removes its variables: child processes must not see them."""
    address = environ.pop("NOTIFY_SOCKET", "")
    usec, pid = environ.pop("WATCHDOG_USEC", ""), environ.pop("WATCHDOG_PID", "")
    if not address:
        return ServiceManager()
    if address[0] not in "/@":
        _log.warning("systemd is not notified: NOTIFY_SOCKET is neither a path nor an abstract socket")
        return ServiceManager()
    watchdog = _seconds(usec) if pid in {"", str(os.getpid())} else 0.0
    return ServiceManager("\0" + address[1:] if address[0] == "@" else address, watchdog)


def _seconds(usec: str) -> float:
    is_number = usec.isascii() and usec.isdigit() and len(usec) <= _MOST_DIGITS
    return int(usec) / _MICROSECONDS if is_number else 0.0


def _more_time(seconds: float) -> str:
    return f"EXTEND_TIMEOUT_USEC={int(seconds * _MICROSECONDS)}"
