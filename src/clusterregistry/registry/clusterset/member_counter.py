"""Keeps the status of cluster sets right: how many members they have, and which of the named clusters do not exist.

The members are those of the library's index, which tells which sets have changed. A set is looked at a moment after
that, and once a second at most: ten thousand clusters that change their labels at once are a write or two of each set,
and not ten thousand. A status that is right is not written.

It runs in every replica, and all may act: each writes what the stored set lacks, by the members of a moment after the
change. A status of an earlier definition is never written, since the stored definition is compared with that of the
index in each attempt.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from http import HTTPStatus
from typing import Any

from clusterregistry.apimachinery.meta import times
from clusterregistry.apimachinery.meta.errors import APIError
from clusterregistry.apiserver.controllers.work_queue import Pace, StoragePace
from clusterregistry.apiserver.registry.group_index import GroupIndex
from clusterregistry.apiserver.registry.rbac.bootstrap import ServerWriter
from clusterregistry.apiserver.registry.strategy import Object
from clusterregistry.apiserver.storage.compaction import Clock, MonotonicClock
from clusterregistry.apiserver.storage.errors import StorageError
from clusterregistry.apiserver.storage.interface import Event
from clusterregistry.apiserver.storage.object_bytes import decoded_to_read
from clusterregistry.apiserver.storage.subscriptions import committed_by_now

MANAGER = "clusterset-members"
"""The field manager of its writes."""

CLUSTERS_FOUND = "ClustersFound"
"""The condition that says whether all clusters exist that a set names."""

_FOUND, _NOT_FOUND = "AllFound", "NameNotFound"
_ALL_EXIST = "All clusters that spec.clusters names exist."
_SHOWN = 10
"""Names in a message."""

SETTLE_SECONDS = 0.1
"""From a change to the look at the sets: what belongs together comes in a burst."""

INTERVAL = 1.0
"""Seconds between two looks, and hence between two writes of one set."""

OTHERS_LATER = 1.0
"""Seconds by which a replica without the writer lease is later, at least: the one that holds it should not lose it."""

_RETRY_SECONDS = 2.0

_AT_ONCE = 20
_LEAST_PAUSE = 0.005
"""Sets that are written at the same time, and the seconds of pause after them. The pause is as long as the writes took,
so that at most half of the time is spent on them."""

_SLICE = 200
"""Sets that are looked at without a pause."""

_log = logging.getLogger(__name__)


class MemberCounter:
    """Writes the status of the sets that the index knows."""

    def __init__(
        self, writer: ServerWriter, index: GroupIndex, *, clock: Clock | None = None, pace: Pace | None = None
    ) -> None:
        """``writer`` writes the status of sets."""
        self._writer, self._index = writer, index
        self._storage, self._prefix = writer.store.storage, writer.store.prefix
        self._clock, self._pace = clock or MonotonicClock(), pace or StoragePace(self._storage)
        self._due: set[str] = set()
        """The names of the sets to look at."""
        self._changed = asyncio.Event()
        self._ends = [
            index.on_members_change(self._add),
            self._storage.subscribe(self._prefix, self._note, interrupted=self._add_all).close,
        ]

    def close(self) -> None:
        for end in self._ends:
            end()

    def _add(self, names: AbstractSet[str]) -> None:
        self._due |= names
        self._changed.set()

    def _add_all(self) -> None:
        self._add(self._index.names)

    def _note(self, events: Sequence[Event]) -> None:
        """A client that writes a set may write its status."""
        self._add({event.key.removeprefix(self._prefix) for event in events if event.current})

    async def run(self) -> None:
        """Counts until it is cancelled, beginning with all sets."""
        self._add_all()
        while True:
            await self._changed.wait()
            await self._clock.sleep(SETTLE_SECONDS + self._later())
            try:
                await self.count_due()
            except (APIError, StorageError) as error:
                _log.warning("the members of sets cannot be counted now: %s", error)
                await self._clock.sleep(_RETRY_SECONDS)
            else:
                await self._clock.sleep(INTERVAL - SETTLE_SECONDS)

    def _later(self) -> float:
        """The seconds by which this replica is later than the one that writes first, if another one does."""
        jitter = self._pace.when_overtaken()
        return OTHERS_LATER + jitter if jitter else 0.0

    @property
    def is_idle(self) -> bool:
        """Whether there is no set to look at."""
        return not self._due

    async def count_due(self) -> None:
        """Brings the sets up to date that have changed. Raises APIError and StorageError if the storage fails."""
        self._changed.clear()
        due, self._due = self._due, set()
        try:
            # Whatever was committed when the work began is counted: another replica may have counted it already.
            await self._index.caught_up(await committed_by_now(self._storage))
            wrong = await self._wrong_among(due)
            while wrong:
                await self._write(wrong[-_AT_ONCE:])
                del wrong[-_AT_ONCE:]
        except BaseException:
            self._add(due)
            raise

    async def _wrong_among(self, names: AbstractSet[str]) -> list[str]:
        """The sets whose status, as the cache has it, is not right."""
        wrong = []
        for number, name in enumerate(names, start=1):
            kv = self._storage.get_stale(self._prefix + name)
            if kv is not None and self._counted(cluster_set := decoded_to_read(kv)) is not cluster_set:
                wrong.append(name)
            if number % _SLICE == 0:
                await asyncio.sleep(0)
        return wrong

    async def _write(self, names: Sequence[str]) -> None:
        begun = time.monotonic()
        results = await asyncio.gather(*map(self._write_one, names), return_exceptions=True)
        for failure in filter(None, results):
            raise failure
        await asyncio.sleep(max(time.monotonic() - begun, _LEAST_PAUSE))

    async def _write_one(self, name: str) -> None:
        try:
            await self._writer.change(name, self._counted, manager=MANAGER)
        except APIError as error:
            if error.code >= HTTPStatus.INTERNAL_SERVER_ERROR:
                raise
            if error.code != HTTPStatus.NOT_FOUND:
                _log.warning("the members of the set %s cannot be written: %s", name, error)

    def _counted(self, cluster_set: Object) -> Object:
        """The set with the status of now; the same object if it is right, or the index has another definition."""
        name = cluster_set["metadata"]["name"]
        if not self._index.has_definition_of(name, cluster_set):
            return cluster_set  # the event of the difference is on its way, and is followed by another look
        return with_status(
            cluster_set, members=self._index.count(name), absent=self._index.absent_names(name), now=times.present
        )


def with_status(cluster_set: Object, *, members: int, absent: Sequence[str], now: Any = times.present) -> Object:
    """The set with a status that says so; the same object if it does already."""
    status = cluster_set.get("status")
    before = status if isinstance(status, dict) else {}
    metadata = cluster_set["metadata"]
    known, generation = _conditions(before), metadata.get("generation", 0)
    condition = _condition(absent, generation=generation, before=known.get(CLUSTERS_FOUND, {}), now=now)
    wanted = {
        **before,
        "clusters": members,
        "observedGeneration": generation,
        "conditions": list((known | {CLUSTERS_FOUND: condition}).values()),
    }
    return cluster_set if wanted == before else {**cluster_set, "status": wanted}


def _conditions(status: Object) -> dict[Any, Object]:
    """The conditions by their types."""
    found = status.get("conditions")
    return {each.get("type"): each for each in found if isinstance(each, dict)} if isinstance(found, list) else {}


def _condition(absent: Sequence[str], *, generation: int, before: Object, now: Any) -> Object:
    """The condition ``ClustersFound``; it keeps its time as long as its status stays."""
    condition = {
        "type": CLUSTERS_FOUND,
        "status": "False" if absent else "True",
        "reason": _NOT_FOUND if absent else _FOUND,
        "message": _missing(absent) if absent else _ALL_EXIST,
        "observedGeneration": generation,
    }
    changed = before.get("status") != condition["status"] or "lastTransitionTime" not in before
    return {**condition, "lastTransitionTime": now() if changed else before["lastTransitionTime"]}


def _missing(absent: Sequence[str]) -> str:
    shown, more = ", ".join(absent[:_SHOWN]), len(absent) - _SHOWN
    return f"spec.clusters names clusters that do not exist: {shown}{f' and {more} more' if more > 0 else ''}."
