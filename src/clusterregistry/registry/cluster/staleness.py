"""Staleness: a cluster whose observation was not renewed for three intervals gets ``status.state: Stale``.

An observer that has died cannot say so itself. So the server does, by an ordinary write, which watches, lists and field
selectors show. An observation is renewed when ``status.observedAt`` changes. The time counts from the event of that
change, by the server's own clock: the clock of an observer does not matter.

Observers must have been able to write. So the time begins again, for all clusters, with a start of the server, after
events were lost, after the storage did not answer, and after the process itself stood still.

No cluster has a timer. An event is noted by its key, and a sweep each second looks at the noted ones and at those that
were renewed first. Docs: docs/decisions/0023-staleness.md, with the figures.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterator, Sequence
from functools import partial
from http import HTTPStatus
from typing import Any, NamedTuple, TypeVar

from clusterregistry.apimachinery.meta import times
from clusterregistry.apimachinery.meta.errors import APIError
from clusterregistry.apiserver.registry.rbac.bootstrap import ServerWriter
from clusterregistry.apiserver.registry.strategy import Object
from clusterregistry.apiserver.storage.compaction import Clock, MonotonicClock
from clusterregistry.apiserver.storage.errors import StorageError
from clusterregistry.apiserver.storage.interface import Event, KeyValue
from clusterregistry.apiserver.storage.object_bytes import decoded_to_read, find_property
from clusterregistry.cli.options.value_types import shown_duration

INTERVALS = 3
"""Intervals after which an observation that was not renewed is stale."""

MANAGER = "cluster-staleness"
"""The field manager of its writes: an observer that applies its status with force takes the fields back."""

STALE, NEVER = "Stale", "Never"
_OK, _REASON = "OK", "StatusStale"

_SWEEPS = 30
_SHORTEST_SWEEP, _LONGEST_SWEEP = 0.2, 1.0
"""Sweeps within an interval, and the bounds of the seconds between two of them."""

_OTHERS_LATER = 2.0
"""Seconds by which a replica without the writer lease is later: the one that holds it should not lose it."""

_AT_ONCE = 20
_LEAST_PAUSE = 0.005
"""Clusters that are written at the same time, and the seconds of pause after them. The pause is as long as the writes
took, so that at most half of the time is spent on them."""

_SLICE = 200
"""Clusters that are looked at without a pause: about a millisecond."""

_log = logging.getLogger(__name__)

T = TypeVar("T")


class _Observation(NamedTuple):
    observed_at: str
    """As the observer wrote it."""
    renewed: float
    """When the server saw that it was written, by the server's clock."""


class StalenessController:
    """Marks the clusters whose observation is stale. It runs in every replica, and all may act."""

    def __init__(self, writer: ServerWriter, *, interval: float, clock: Clock | None = None) -> None:
        """``writer`` writes the status of clusters; ``interval`` is that of observers, in seconds."""
        self._writer, self._storage, self._prefix = writer, writer.store.storage, writer.store.prefix
        self._clock, self._interval = clock or MonotonicClock(), interval
        self.sweep_interval = min(max(interval / _SWEEPS, _SHORTEST_SWEEP), _LONGEST_SWEEP)
        self._observations: dict[str, _Observation] | None = None
        """By key, the one that was renewed first first; None: to be read from the storage."""
        self._noted: dict[str, float] = {}
        """The keys of events since the last sweep, and when the last event came."""
        self._swept = 0.0
        """When the last sweep ended."""
        self._subscription = self._storage.subscribe(self._prefix, self._note, interrupted=self._reset)

    def close(self) -> None:
        self._subscription.close()

    def _note(self, events: Sequence[Event]) -> None:
        now = self._clock.now()
        for event in events:
            self._noted[event.key] = now

    def _reset(self) -> None:
        """Has the time of all clusters begin again."""
        self._observations = None

    async def run(self) -> None:
        """Sweeps until it is cancelled."""
        while True:
            try:
                await self.sweep()
            except (APIError, StorageError) as error:
                _log.warning("clusters cannot be marked as stale now: %s", error)
                self._reset()
            await self._clock.sleep(self.sweep_interval)

    async def sweep(self) -> None:
        """Marks what is stale by now. Raises APIError and StorageError if the storage does not answer."""
        stood_still = self._clock.now() - self._swept > self._interval + self.sweep_interval
        try:
            if self._storage.problem():
                self._reset()
            elif self._observations is None or stood_still:
                await self._load()
            else:
                await self._look_at_noted(self._observations)
                await self._mark_stale(self._observations)
        finally:
            self._swept = self._clock.now()

    # What observers renew

    async def _load(self) -> None:
        """Begins with all clusters that are stored."""
        self._noted.clear()
        now, found = self._clock.now(), dict[str, _Observation]()
        self._observations = found  # an interruption meanwhile takes it away
        page = await self._storage.list(self._prefix, revision=self._storage.revision)
        for kvs in _slices(page.items, _SLICE):
            for kv in kvs:
                if observed_at := _observed_at(kv):
                    found[kv.key] = _Observation(observed_at, now)
            await asyncio.sleep(0)

    async def _look_at_noted(self, observations: dict[str, _Observation]) -> None:
        noted, self._noted = self._noted, {}
        for keys in _slices(list(noted), _SLICE):
            for key in keys:
                self._look_at(key, observations, now=noted[key])
            await asyncio.sleep(0)

    def _look_at(self, key: str, observations: dict[str, _Observation], *, now: float) -> None:
        kv = self._storage.get_stale(key)
        observed_at, known = _observed_at(kv) if kv else "", observations.get(key)
        if known is not None and known.observed_at == observed_at:
            return
        observations.pop(key, None)  # the new one belongs behind all others
        if observed_at:
            observations[key] = _Observation(observed_at, now)

    # What they have not renewed

    async def _mark_stale(self, observations: dict[str, _Observation]) -> None:
        is_first = self._storage.sole_writer or self._storage.known_revision() is not None
        patience = INTERVALS * self._interval + (0.0 if is_first else _OTHERS_LATER)
        for keys in _slices(_due(observations, before=self._clock.now() - patience), _AT_ONCE):
            if observations is not self._observations:  # the time has begun again
                return
            begun = time.monotonic()
            results = await asyncio.gather(*(self._mark(key, observations) for key in keys), return_exceptions=True)
            for failure in filter(None, results):
                raise failure
            await asyncio.sleep(max(time.monotonic() - begun, _LEAST_PAUSE))

    async def _mark(self, key: str, observations: dict[str, _Observation]) -> None:
        """Writes one cluster, unless its observation was renewed meanwhile. Another replica may do the same."""
        observation = observations[key]
        message = f"The status was not renewed for {shown_duration(INTERVALS * self._interval)}."
        change = partial(marked, observed_at=observation.observed_at, message=message)
        try:
            await self._writer.change(key.removeprefix(self._prefix), change, manager=MANAGER)
        except APIError as error:
            if error.code >= HTTPStatus.INTERNAL_SERVER_ERROR:
                raise
            if error.code != HTTPStatus.NOT_FOUND:
                _log.warning("%s cannot be marked as stale: %s", key, error)
        # Else every sweep would try again until the event comes. A renewal brings one, too.
        if observations.get(key) is observation:
            del observations[key]


def marked(cluster: Object, *, observed_at: str, message: str) -> Object:
    """The cluster with a stale status, or as it is if its observation is another one by now."""
    status = _observed_status(cluster)
    if status.get("observedAt") != observed_at:
        return cluster
    changed = {**status, "state": STALE}
    if isinstance(conditions := status.get("conditions"), list):
        changed["conditions"] = [_unknown(each, message) if _is_ok(each) else each for each in conditions]
    return {**cluster, "status": changed}


def _observed_status(cluster: Object) -> Object:
    """The status of a cluster that was observed and is not stale; else an empty one."""
    status = cluster.get("status")
    if not isinstance(status, dict) or status.get("state") in {NEVER, STALE}:
        return {}
    return status


def _observed_at(kv: KeyValue) -> str:
    """When a cluster was observed, as the observer wrote it; empty if it was not, or is stale."""
    if not find_property(kv, "observedAt"):
        return ""
    found = _observed_status(decoded_to_read(kv)).get("observedAt")
    return found if isinstance(found, str) else ""


def _is_ok(condition: Any) -> bool:
    return isinstance(condition, dict) and condition.get("type") == _OK


def _unknown(condition: Object, message: str) -> Object:
    unknown = {**condition, "status": "Unknown", "reason": _REASON, "message": message}
    if condition.get("status") != "Unknown":
        unknown["lastTransitionTime"] = times.present()
    return unknown


def _due(observations: dict[str, _Observation], *, before: float) -> list[str]:
    """The keys of the observations that were renewed before a time."""
    due: list[str] = []
    for key, observation in observations.items():
        if observation.renewed > before:
            break
        due.append(key)
    return due


def _slices(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]
