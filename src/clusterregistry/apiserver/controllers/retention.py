"""Retention: removes objects that were not written for as long as their resource keeps them, such as events.

No object has an entry of its own, and a write pays nothing. Each sweep records the revision of the storage: an object
whose revision is not newer than one that was recorded so long ago was not written since. For the objects that a start
finds, the times in their metadata say when they were last written; without any it counts from the start.

Objects are removed as the expiry of a lease in etcd removes events for kube-apiserver: whatever finalizers they have.
Docs: docs/decisions/0020-controllers.md, with the figures.
"""

from __future__ import annotations

import asyncio
import logging
import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import TypeVar

from clusterregistry.apimachinery.meta import times
from clusterregistry.apiserver.registry.store import Store
from clusterregistry.apiserver.storage.compaction import Clock, MonotonicClock, Retention
from clusterregistry.apiserver.storage.errors import KeyNotFound, RevisionConflict, StorageError
from clusterregistry.apiserver.storage.interface import Event, KeyValue
from clusterregistry.apiserver.storage.object_bytes import newest_write_time

_SWEEPS = 60
_SHORTEST_INTERVAL, _LONGEST_INTERVAL = 0.2, 60.0
"""Sweeps within a retention, and the bounds of the seconds between two of them: so much later an object goes."""

_OTHERS_LATER = 2
"""Sweeps by which a replica without the writer lease is later: the one that holds it should not lose it."""

_AT_ONCE = 20
"""Objects that are removed at the same time: about as much work as ten requests."""

_LEAST_PAUSE = 0.005
"""Seconds of pause after them. It is as long as the removal took, so that at most half of the time is spent on it."""

_SLICE = 2000
"""Objects whose revisions are compared without a pause: a tenth of a millisecond."""

_TIMES_SLICE = 200
"""Objects whose times are read without a pause: half a millisecond."""

_log = logging.getLogger(__name__)

T = TypeVar("T")


class RetentionController:
    """Keeps to the retention of one resource. ``close`` ends its subscription."""

    def __init__(self, store: Store, *, clock: Clock | None = None, wall: Callable[[], float] = time.time) -> None:
        """``wall`` gives the seconds since 1970. The resource must have a retention."""
        if store.resource.retention is None:
            raise ValueError(f"{store.resource.qualified_name} has no retention")
        self._store, self._storage = store, store.storage
        self._clock, self._wall = clock or MonotonicClock(), wall
        self._seconds = store.resource.retention
        self.interval = min(max(self._seconds / _SWEEPS, _SHORTEST_INTERVAL), _LONGEST_INTERVAL)
        self._subscription = self._storage.subscribe(store.prefix, _ignore, interrupted=self._reset)
        self._reset()

    def close(self) -> None:
        self._subscription.close()

    def _reset(self) -> None:
        """Begins again: revisions may belong to another history."""
        observe = partial(Retention, most_revisions=sys.maxsize)
        later = _OTHERS_LATER * self.interval
        self._expired, self._expired_later = observe(seconds=self._seconds), observe(seconds=self._seconds + later)
        self._found_at, self._begun = -1, 0.0
        """The revision that a start has found, and when; -1 before it."""
        self._due: dict[int, list[str]] = {}
        """The keys of the objects that a start has found, by the intervals after which they are due."""

    async def run(self) -> None:
        """Sweeps until it is cancelled."""
        while True:
            try:
                await self.sweep()
            except StorageError as error:
                _log.warning("expired %s cannot be removed now: %s", self._store.resource.qualified_name, error)
            except Exception:  # noqa: BLE001 - the next sweep makes up for it
                _log.exception("removing expired %s failed", self._store.resource.qualified_name)
            await self._clock.sleep(self.interval)

    async def sweep(self) -> None:
        """Removes what has expired by now. Raises StorageError."""
        if self._found_at < 0:
            await self._find()
            return
        now, revision = self._clock.now(), self._storage.revision
        soon, late = self._expired.observe(revision, now=now), self._expired_later.observe(revision, now=now)
        is_first = self._storage.sole_writer or self._storage.known_revision() is not None
        passed = int((now - self._begun) / self.interval)
        await self._remove_found(passed if is_first else passed - _OTHERS_LATER)
        if expired := soon if is_first else late:
            await self._remove(await self._keys_up_to(expired), up_to=expired)

    # What a start finds

    async def _find(self) -> None:
        """Sorts the objects by the time at which they are due."""
        history, revision, now, begun = self._expired, self._storage.revision, self._wall(), self._clock.now()
        self._expired.observe(revision, now=begun)
        self._expired_later.observe(revision, now=begun)
        page = await self._storage.list(self._store.prefix, revision=revision)
        latest = math.ceil(self._seconds / self.interval)
        due: dict[int, list[str]] = {}
        for kvs in _slices(page.items, _TIMES_SLICE):
            for kv in kvs:
                written = newest_write_time(kv)
                seconds = self._seconds - (now - _seconds_of(written)) if written else self._seconds
                intervals = min(max(math.ceil(seconds / self.interval), 0), latest)
                due.setdefault(intervals, []).append(kv.key)
            await asyncio.sleep(0)
        if history is self._expired:  # no reset meanwhile
            self._due, self._found_at, self._begun = due, revision, begun

    async def _remove_found(self, intervals: int) -> None:
        """Removes the objects that are due after so many intervals, unless they were written since the start."""
        due = self._due
        for each in [each for each in due if each <= intervals]:
            await self._remove(due[each], up_to=self._found_at)
            del due[each]

    # What has expired

    async def _keys_up_to(self, revision: int) -> list[str]:
        """The objects that were not written after a revision: their keys, since a long removal must keep no values."""
        page = await self._storage.list(self._store.prefix, revision=self._storage.revision)
        expired: list[str] = []
        for kvs in _slices(page.items, _SLICE):
            expired += [kv.key for kv in kvs if kv.revision <= revision]
            await asyncio.sleep(0)
        return expired

    async def _remove(self, keys: Sequence[str], *, up_to: int) -> None:
        """Removes objects that were not written after a revision. Another replica may do the same."""
        history = self._expired
        for batch in _slices(keys, _AT_ONCE):
            if history is not self._expired:  # reset: the revision is one of another history
                return
            kvs = [kv for kv in map(self._storage.get_stale, batch) if kv is not None and kv.revision <= up_to]
            if kvs:
                begun = time.monotonic()
                await asyncio.gather(*map(self._remove_one, kvs))
                await asyncio.sleep(max(time.monotonic() - begun, _LEAST_PAUSE))

    async def _remove_one(self, kv: KeyValue) -> None:
        """Removes one object, unless it was written or removed meanwhile."""
        with suppress(KeyNotFound, RevisionConflict):
            await self._storage.delete(kv.key, expected=kv.revision, known=kv)


def _ignore(_events: Iterable[Event]) -> None:
    """Only gaps count."""


def _slices(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]


def _seconds_of(written: str) -> float:
    """A time on the wire as seconds since 1970; that of an invalid time is now."""
    try:
        return times.parse(written).timestamp()
    except ValueError:
        return time.time()
