"""A work queue for the controllers of the server: each key once, after a moment, and again later when it failed.

``Pace`` says how long that moment is. On a storage with several replicas each of them has the same work. Which one does
it does not matter, but the others should not do it at the same time, and should not take the writer lease of etcd from
the one that holds it.
"""

from __future__ import annotations

import asyncio
import heapq
import math
from collections.abc import Callable, Hashable
from contextlib import suppress
from itertools import islice
from random import uniform
from typing import Generic, Protocol, TypeVar

from clusterregistry.apiserver.storage.interface import Storage

K = TypeVar("K", bound=Hashable)

_FIRST_RETRY = 0.1
_LONGEST_RETRY = 60.0
"""Seconds until a key that failed is processed again; they double with each failure."""

_SETTLE_SECONDS = 1.0
"""From an event to the work that it causes. Clients that create owner and dependents, or delete and then look, are not
overtaken by the server, and several events of one object are one piece of work. kube-controller-manager is about as
fast, and waits 5 s before it empties a namespace."""

_JITTER_SECONDS = 1.0
"""How much later a replica begins at most that does not hold the writer lease."""


class Pace(Protocol):
    """How long a controller waits."""

    def before_work(self) -> float:
        """Seconds from an event to the work that it causes, unless other work has caused the event."""

    def when_overtaken(self) -> float:
        """Seconds of pause when another replica is seen to do the same work."""


class StoragePace:
    """The pace of a server on a storage."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def before_work(self) -> float:
        return _SETTLE_SECONDS + self.when_overtaken()

    def when_overtaken(self) -> float:
        # Only a replica that holds the writer lease, or writes alone, knows the revision without asking.
        is_first = self._storage.sole_writer or self._storage.known_revision() is not None
        return 0.0 if is_first else uniform(0.0, _JITTER_SECONDS)  # noqa: S311 - no secret


class Unpaced:
    """No waiting, for tests."""

    def before_work(self) -> float:
        return 0.0

    def when_overtaken(self) -> float:
        return 0.0


UNPACED = Unpaced()


class WorkQueue(Generic[K]):
    """Keys to process, for one worker. A key that is added twice before it is taken is processed once."""

    def __init__(self, *, pause: Callable[[], float] = UNPACED.before_work) -> None:
        """``pause`` gives the seconds from a key that is added while no other is worked on to the work on it."""
        self._pause = pause
        self._ready: dict[K, None] = {}
        self._later: list[tuple[float, int, K]] = []
        self._due: dict[K, float] = {}
        """The times of the keys in ``_later``. Other times there are outdated."""
        self._is_working = False
        self._failures: dict[K, int] = {}
        self._wake = asyncio.Event()
        self._count = 0

    def __len__(self) -> int:
        """The keys that wait, those of later included."""
        return len(self._ready) + len(self._due)

    @property
    def is_ready(self) -> bool:
        """Whether a key can be taken now, or failed and is to be processed again."""
        return bool(self._ready or self._failures)

    def add(self, key: K) -> None:
        """Adds a key: at once if the work on another one is likely to have caused it, else after the pause."""
        seconds = 0.0 if self._is_working else self._pause()
        if seconds:
            self.add_after(key, seconds)
        else:
            self.add_now(key)

    def add_now(self, key: K) -> None:
        """Adds a key without a pause, such as one whose event came before a restart."""
        self._ready[key] = None
        self._wake.set()

    def add_after(self, key: K, seconds: float) -> None:
        """Adds a key some seconds from now, unless it comes sooner."""
        at = asyncio.get_running_loop().time() + seconds
        if self._due.get(key, math.inf) <= at:
            return
        self._due[key] = at
        self._count += 1
        heapq.heappush(self._later, (at, self._count, key))
        self._wake.set()

    def retry(self, key: K) -> int:
        """Adds a key that failed again, after a pause that grows with its failures. Returns their number."""
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        self.add_after(key, min(_FIRST_RETRY * 2.0 ** min(failures - 1, 32), _LONGEST_RETRY))
        return failures

    def done(self, key: K) -> None:
        """Forgets the failures of a key."""
        self._failures.pop(key, None)

    async def take(self, most: int) -> list[K]:
        """Returns the next keys, at most so many, as soon as there are some. They are worked on until the next call."""
        self._is_working = False
        self._collect_due()
        if not self._ready:
            await self._wait()
        taken = list(islice(self._ready, most))
        for key in taken:
            del self._ready[key]
        self._is_working = True
        return taken

    async def _wait(self) -> None:
        """Returns once a key is ready."""
        while not self._ready:
            self._wake.clear()
            seconds = self._later[0][0] - asyncio.get_running_loop().time() if self._later else None
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._wake.wait()
            self._collect_due()

    def _collect_due(self) -> None:
        now = asyncio.get_running_loop().time()
        while self._later and self._later[0][0] <= now:
            at, _, key = heapq.heappop(self._later)
            if self._due.get(key) == at:
                del self._due[key]
                self._ready[key] = None
