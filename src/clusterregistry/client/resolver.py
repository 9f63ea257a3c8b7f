"""Names to addresses for programs that connect to many servers: a name that cannot be resolved delays no other one.

The system's resolver blocks its thread for up to a minute when the name server of a name is silent, and it cannot be
cancelled. asyncio shares six threads or so among all lookups, so that six such names would stop all others. Here each
lookup has a thread of its own, each name at most one lookup, and a name that was resolved before keeps its addresses
while the new lookup fails or takes long. A server is recognised by its certificate, not by its address.
"""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from aiohttp.abc import AbstractResolver, ResolveResult

FRESH_SECONDS = 60.0
"""For which addresses are used without a lookup: connections are kept, so that few are needed."""

PATIENCE_SECONDS = 2.0
"""For which a name that was resolved before waits for its new addresses."""

MAX_LOOKUPS = 128
"""At a time. Each takes a thread."""

MAX_NAMES = 20_000

Addresses = Sequence[tuple[socket.AddressFamily, str]]
Lookup = Callable[[str], Addresses]


def look_up(name: str) -> Addresses:
    """The addresses of a name, by the resolver of the system. Raises OSError."""
    found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
    return [(family, str(address[0])) for family, _, _, _, address in found]


@dataclass(frozen=True, slots=True)
class _Known:
    addresses: Addresses
    until: float


class Resolver(AbstractResolver):
    """Resolves names for one event loop. Nothing has to be closed: threads end with their lookups."""

    def __init__(self, lookup: Lookup = look_up, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._lookup, self._clock = lookup, clock
        self._known: dict[str, _Known] = {}
        self._running: dict[str, asyncio.Future[Addresses]] = {}

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """All addresses of a name. Raises OSError."""
        return [
            ResolveResult(hostname=host, host=address, port=port, family=found, proto=0, flags=socket.AI_NUMERICHOST)
            for found, address in await self._addresses(host)
            if family in (socket.AF_UNSPEC, found)
        ]

    async def close(self) -> None:
        """Does nothing: a lookup cannot be ended, and what it finds is dropped."""

    async def _addresses(self, host: str) -> Addresses:
        known = self._known.get(host)
        if known is not None and self._clock() < known.until:
            return known.addresses
        lookup = self._running.get(host) or self._start(host)
        if known is None:
            return await asyncio.shield(lookup)
        await asyncio.wait([lookup], timeout=PATIENCE_SECONDS)
        if lookup.done() and lookup.exception() is None:
            return lookup.result()
        return known.addresses

    def _start(self, host: str) -> asyncio.Future[Addresses]:
        if len(self._running) >= MAX_LOOKUPS:
            raise socket.gaierror(socket.EAI_AGAIN, f"{MAX_LOOKUPS} other names are still being resolved")
        loop = asyncio.get_running_loop()
        lookup = self._running[host] = loop.create_future()
        lookup.add_done_callback(_retrieve)
        threading.Thread(target=self._run, args=(loop, host), name="resolver", daemon=True).start()
        return lookup

    def _run(self, loop: asyncio.AbstractEventLoop, host: str) -> None:
        """Runs in a thread."""
        result: Addresses | OSError
        try:
            result = self._lookup(host)
        except OSError as error:
            result = error
        except UnicodeError:  # a label of a name that is too long or empty
            result = socket.gaierror(socket.EAI_NONAME, "not a name of DNS")
        try:
            loop.call_soon_threadsafe(self._finish, host, result)
        except RuntimeError:
            return  # the loop is closed

    def _finish(self, host: str, result: Addresses | OSError) -> None:
        lookup = self._running.pop(host)
        if isinstance(result, OSError):
            lookup.set_exception(result)
            return
        if len(self._known) >= MAX_NAMES:
            self._known.clear()
        self._known[host] = _Known(result, self._clock() + FRESH_SECONDS)
        lookup.set_result(result)


def _retrieve(lookup: asyncio.Future[Addresses]) -> None:
    """The error of a lookup for which no request waits any more is not one to be logged."""
    if not lookup.cancelled():
        lookup.exception()
