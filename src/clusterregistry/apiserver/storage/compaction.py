"""Compaction in a loop: history is kept for some time, and at most so many revisions of it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from typing import Protocol

from clusterregistry.apiserver.storage.errors import StorageError
from clusterregistry.apiserver.storage.interface import Storage

_log = logging.getLogger(__name__)


class Clock(Protocol):
    """A clock that tests can replace."""

    def now(self) -> float:
        """Seconds since some moment; never decreases."""

    async def sleep(self, seconds: float) -> None:
        """Returns after ``seconds``."""


class MonotonicClock:
    """The machine's monotonic clock."""

    def now(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class Retention:
    """Decides which revision to compact to: the newest one older than ``seconds``, or ``most_revisions`` ago.

    It records when it saw which revision. After a restart it starts with none, so history is kept for up to ``seconds``
    longer, never shorter.
    """

    def __init__(self, *, seconds: float, most_revisions: int) -> None:
        self._seconds, self._most_revisions = seconds, most_revisions
        self._seen: deque[tuple[float, int]] = deque()
        self._expired = 0

    def observe(self, revision: int, *, now: float) -> int:
        """Records the current revision and returns the one to compact to; 0 for none yet."""
        if self._seen and revision < self._seen[-1][1]:  # the store was restored from a backup
            self._seen.clear()
            self._expired = 0
        self._seen.append((now, revision))
        while self._seen and self._seen[0][0] <= now - self._seconds:
            self._expired = self._seen.popleft()[1]
        return max(self._expired, revision - self._most_revisions, 0)


async def keep_compacting(
    storage: Storage,
    clock: Clock,
    *,
    interval: float = 60.0,
    retention: float = 3600.0,
    most_revisions: int = 100_000,
) -> None:
    """Compacts a store in a loop until it is cancelled. Times are in seconds.

    Within one interval more than ``most_revisions`` may be written. A compaction that fails is logged, and the next one
    makes up for it.
    """
    policy = Retention(seconds=retention, most_revisions=most_revisions)
    compacted = 0
    while True:
        target = policy.observe(storage.revision, now=clock.now())
        compacted = min(compacted, storage.revision)
        if target > compacted and await _compact(storage, target):
            compacted = target
        await clock.sleep(interval)


async def _compact(storage: Storage, revision: int) -> bool:
    try:
        await storage.compact(revision)
    except StorageError as error:
        _log.warning("history up to revision %d could not be compacted: %s", revision, error)
        return False
    return True
