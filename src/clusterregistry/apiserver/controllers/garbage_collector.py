"""Garbage collection by owner references, as kube-controller-manager's garbage collector does it.

- Background: an object all of whose owners are gone is deleted. An owner counts as gone if a read of the storage, not
  of the cache, does not find it under the name and the uid of the reference.
- Foreground: an object that is deleted with the finalizer ``foregroundDeletion`` goes after those of its dependents
  that block its deletion. Its dependents are deleted at once, those that have dependents in the foreground, too.
- Orphan: of an object that is deleted with the finalizer ``orphan``, the dependents lose their reference to it first.

A reference that cannot be resolved (``DependencyGraph.owner_of``) counts as that of an owner that exists: objects with
such a reference are never collected. References to owners that are gone, or that wait in the foreground, are removed
from objects that have another owner.

Every delete is on the condition of the uid and the resource version on which it was decided, every other write on that
of the stored object. So an action that comes too late, or that another replica did first, has no effect.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from enum import Enum, auto
from functools import cache
from http import HTTPStatus
from random import shuffle
from typing import Any

from clusterregistry.apimachinery.meta.errors import APIError
from clusterregistry.apiserver.controllers.dependency_graph import (
    DependencyGraph,
    Owner,
    OwnerReference,
    Tracked,
    Work,
    waits_for_dependents,
)
from clusterregistry.apiserver.controllers.work_queue import UNPACED, Pace, WorkQueue
from clusterregistry.apiserver.registry.deletion import FOREGROUND, ORPHAN, DeleteOptions, Preconditions
from clusterregistry.apiserver.registry.rbac.bootstrap import ServerWriter
from clusterregistry.apiserver.registry.store import Store
from clusterregistry.apiserver.storage.errors import StorageError
from clusterregistry.apiserver.storage.interface import KeyValue
from clusterregistry.apiserver.storage.object_bytes import is_being_deleted, read_metadata, uid_of

Object = dict[str, Any]

WriterOf = Callable[[Store, str], ServerWriter]
"""Makes the writer of a resource, or of a subresource of it."""

MANAGER = "garbage-collector"
"""The field manager of its writes."""

_AT_ONCE = 20
"""Objects that are worked on at the same time, as many as kube-controller-manager has workers."""

_MOST_ABSENT = 1000
"""Owners that are remembered to be gone."""

_REPORTED_FAILURE = 3
"""The failure of an object in a row that is logged: the first ones may be lost races."""

_LOAD_RETRY = 1.0
"""Seconds until everything is read again after an error."""

_UNAVAILABLE_PAUSE = 5.0
"""Seconds of pause when the storage does not answer: the other objects would fail, too."""

_log = logging.getLogger(__name__)


class _State(Enum):
    """An owner as a dependent sees it."""

    SOLID = auto()
    WAITING = auto()
    """It is deleted in the foreground."""
    GONE = auto()


class GarbageCollector:
    """Collects the objects of some stores. It subscribes to their events until ``close``."""

    def __init__(self, stores: Sequence[Store], *, writer_of: WriterOf, pace: Pace = UNPACED) -> None:
        self._writer_of, self._pace = cache(writer_of), pace
        self._queue = WorkQueue[Work](pause=pace.before_work)
        self._is_shared = any(not store.storage.sole_writer for store in stores)
        self._is_overtaken = False
        """Whether other replicas have done work that was queued."""
        self._unavailable: Exception | None = None
        """The last error of a storage that does not answer."""
        self._loaded = False
        self._gone: dict[tuple[str, str], None] = {}
        """Owners that are known to be gone, by key and uid: a uid is not used twice."""
        self.graph = DependencyGraph(stores, wake=self._queue.add, interrupted=self._note_gap)

    def close(self) -> None:
        self.graph.close()

    def _note_gap(self) -> None:
        """Events may be missing, or belong to a history that was lost by a restore."""
        self._loaded = False
        self._gone.clear()
        self._queue.add(Work(None, ""))  # wakes the worker

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to do, as far as events show."""
        return self._loaded and not len(self._queue)

    async def run(self) -> None:
        """Collects until it is cancelled."""
        while True:
            await self.step()

    async def step(self) -> None:
        """Waits for work and does some of it."""
        if not self._loaded:
            await self._load()
            return
        await asyncio.gather(*map(self._do, await self._queue.take(_AT_ONCE)))
        if self._unavailable is not None:
            _log.warning("garbage collection waits for the storage: %s", self._unavailable)
            self._unavailable = None
            await asyncio.sleep(_UNAVAILABLE_PAUSE)
        if self._is_overtaken:
            self._is_overtaken = False
            await asyncio.sleep(self._pace.when_overtaken())

    async def _load(self) -> None:
        self._loaded = True  # unless there is a gap meanwhile
        try:
            await self.graph.load()
        except StorageError as error:
            self._loaded = False
            _log.warning("the owners of objects cannot be read now; trying again: %s", error)
            await asyncio.sleep(_LOAD_RETRY)

    async def _do(self, work: Work) -> None:
        try:
            if work.tracked is None:
                await self._wake_dependents(work.key)
            else:
                await self._look_at(work.tracked, work.key)
        except (APIError, StorageError) as error:
            if _is_unavailable(error):
                self._unavailable = error
                self._queue.add(work)
                return
            level = logging.WARNING if self._queue.retry(work) == _REPORTED_FAILURE else logging.DEBUG
            _log.log(level, "garbage collection of %r failed; trying again: %s", work.key, error)
        except Exception:  # noqa: BLE001 - other objects must be collected all the same
            _log.exception("garbage collection of %r failed", work.key)
            self._queue.retry(work)
        else:
            self._queue.done(work)

    async def _wake_dependents(self, uid: str) -> None:
        """Queues all dependents of an owner. Yields to the loop: there may be very many."""
        nodes = self.graph.dependents(uid)
        if self._is_shared:
            shuffle(nodes)  # replicas that do the same work meet less often
        for at, node in enumerate(nodes, start=1):
            self._queue.add(Work(node.tracked, node.key))
            if not at % 1000:
                await asyncio.sleep(0)

    async def _look_at(self, tracked: Tracked, key: str) -> None:
        """Does what one object needs. The cache may be outdated: then the write fails on its condition."""
        current = tracked.cached(key)
        if current is None:
            self._is_overtaken = True
            return
        if is_being_deleted(current):
            finalizers = read_metadata(current).get("finalizers", ())
            if ORPHAN in finalizers:
                await self._orphan_dependents(tracked, current)
            elif FOREGROUND in finalizers:
                await self._finish_foreground(tracked, current)
        elif key in tracked.nodes:
            await self._check_owners(tracked, current)

    # Finalizers

    async def _finish_foreground(self, tracked: Tracked, owner: KeyValue) -> None:
        """Removes the finalizer, unless a dependent blocks it: the event of that one's end comes back here."""
        await self.graph.catch_up()
        if not self.graph.is_blocked(uid_of(owner)):
            await self._remove_finalizer(tracked, owner, FOREGROUND)

    async def _orphan_dependents(self, tracked: Tracked, owner: KeyValue) -> None:
        uid = uid_of(owner)
        await self.graph.catch_up()
        nodes = self.graph.dependents(uid)
        for start in range(0, len(nodes), _AT_ONCE):
            removals = [
                self._remove_references(node.tracked, node.key, uid=node.uid, owners={uid})
                for node in nodes[start : start + _AT_ONCE]
            ]
            await _all(removals)
        await self._remove_finalizer(tracked, owner, ORPHAN)

    async def _remove_finalizer(self, tracked: Tracked, owner: KeyValue, finalizer: str) -> None:
        def removed(metadata: Object) -> None:
            finalizers = [each for each in metadata.get("finalizers", ()) if each != finalizer]
            _set_or_drop(metadata, "finalizers", finalizers)

        await self._change_metadata(tracked, owner.key, uid=uid_of(owner), change=removed)

    # Owners

    async def _check_owners(self, tracked: Tracked, current: KeyValue) -> None:
        """Deletes an object without owners, or removes its references to owners that are gone or wait."""
        references = tracked.nodes[current.key].owners
        states = {each: await self._state_of(tracked, current.key, each) for each in references}
        others = {each.uid for each, state in states.items() if state is not _State.SOLID}
        if not others:
            return
        if _State.SOLID in states.values():
            await self._remove_references(tracked, current.key, uid=uid_of(current), owners=others)
        elif _State.WAITING in states.values() and self.graph.has_dependents(uid_of(current)):
            await self._delete(tracked, current, policy="Foreground")
        else:
            await self._delete(tracked, current, policy=None)

    async def _state_of(self, tracked: Tracked, key: str, reference: OwnerReference) -> _State:
        owner = self.graph.owner_of(tracked, key, reference)
        if owner is None:
            return _State.SOLID
        found = owner.tracked.cached(owner.key)
        if found is None or uid_of(found) != reference.uid:
            found = await self._read_owner(owner, reference.uid)
        if found is None:
            return _State.GONE
        return _State.WAITING if waits_for_dependents(found) else _State.SOLID

    async def _read_owner(self, owner: Owner, uid: str) -> KeyValue | None:
        """The owner as it is stored now; None if there is none with that uid. Raises APIError."""
        if (owner.key, uid) in self._gone:
            return None
        store = owner.tracked.store
        try:
            found = await store.get(owner.key.removeprefix(store.prefix))
        except APIError as error:
            if error.code != HTTPStatus.NOT_FOUND:  # also one that cannot be read: its uid is not known
                raise
        else:
            if uid_of(found) == uid:
                return found
        if len(self._gone) >= _MOST_ABSENT:
            self._gone.clear()
        self._gone[owner.key, uid] = None
        return None

    async def _delete(self, tracked: Tracked, current: KeyValue, *, policy: str | None) -> None:
        """Deletes an object; without a policy its finalizers say which one."""
        preconditions = Preconditions(uid=uid_of(current), resource_version=str(current.revision))
        options = DeleteOptions(propagation_policy=policy, preconditions=preconditions)
        await _unless_gone(tracked.store.delete(current.key.removeprefix(tracked.store.prefix), options))

    async def _remove_references(self, tracked: Tracked, key: str, *, uid: str, owners: set[str]) -> None:
        def removed(metadata: Object) -> None:
            kept = [each for each in metadata.get("ownerReferences", ()) if each.get("uid") not in owners]
            _set_or_drop(metadata, "ownerReferences", kept)

        await self._change_metadata(tracked, key, uid=uid, change=removed)

    async def _change_metadata(self, tracked: Tracked, key: str, *, uid: str, change: Callable[[Object], None]) -> None:
        """Changes the metadata of an object, if it exists and has the uid."""
        store = tracked.store

        def changed(obj: Object) -> Object:
            if obj["metadata"]["uid"] == uid:
                change(obj["metadata"])
            return obj

        writer = self._writer_of(store, "")
        await _unless_gone(writer.change(key.removeprefix(store.prefix), changed, manager=MANAGER))


def _set_or_drop(metadata: Object, field: str, values: list[Any]) -> None:
    if values:
        metadata[field] = values
    else:
        metadata.pop(field, None)


async def _unless_gone(write: Awaitable[object]) -> None:
    """Awaits a write. An object that does not exist any more is no error."""
    try:
        await write
    except APIError as error:
        if error.code != HTTPStatus.NOT_FOUND:
            raise


async def _all(work: Iterable[Awaitable[None]]) -> None:
    """Awaits everything, then raises the first error."""
    for result in await asyncio.gather(*work, return_exceptions=True):
        if result is not None:
            raise result


def _is_unavailable(error: Exception) -> bool:
    return not isinstance(error, APIError) or error.code >= HTTPStatus.INTERNAL_SERVER_ERROR
