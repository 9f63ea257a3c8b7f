"""Rewrites stored objects in one version, each where it is stored.

A server reads objects in every version that it knows, so that nothing has to be migrated before it starts. Migration is
for what comes after: a release that no longer knows a version, or one before it that did not know it yet.

Each write is conditional on the revision that was read: servers may go on writing, and an object that another write
changes in between is read again. What has been rewritten is not rewritten again, so a migration can be interrupted and
repeated at any time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from clusterregistry.apiserver.registry.resource import Resource, Version
from clusterregistry.apiserver.registry.storage_codec import StorageCodec
from clusterregistry.apiserver.storage import interface
from clusterregistry.apiserver.storage.errors import CorruptObject, KeyNotFound, RevisionConflict, StorageUnavailable
from clusterregistry.apiserver.storage.interface import KeyValue, Storage

_PAGE = 200
"""Objects that are in memory at a time: the largest take a megabyte."""

_AT_ONCE = 20
"""Writes in flight. More would delay those of servers on the same storage."""

_ATTEMPTS = 100

Progress = Callable[[int, int], None]
"""Called with the number of objects that are done, and of all."""


@dataclass(slots=True, kw_only=True)
class Migrated:
    """What became of the objects of one resource."""

    resource: Resource
    version: Version
    objects: int = 0
    rewritten: int = 0
    """In a dry run those that would be."""
    unreadable: list[CorruptObject] = field(default_factory=list)
    """They are left as they are."""


def target_version(resource: Resource, name: str) -> Version:
    """The version in which the objects of a resource are to be stored: that of the name, if the resource has it.

    An empty name is the storage version.
    """
    own = (each for each in resource.known_versions if each.group is None)
    return next((each for each in own if each.name == name), resource.stored_as)


async def migrate(
    storage: Storage, resource: Resource, version: Version, *, dry_run: bool, progress: Progress
) -> Migrated:
    """Rewrites the objects of one resource that are stored in another version or form. Raises StorageError."""
    work = _Work(storage, resource, version, dry_run=dry_run)
    prefix, after, remaining = interface.prefix_of(resource.group, resource.plural), "", 1
    while remaining:
        page = await storage.list(prefix, after=after, limit=_PAGE)
        for start in range(0, len(page.items), _AT_ONCE):
            await work.do(page.items[start : start + _AT_ONCE])
        remaining = page.remaining
        after = page.items[-1].key if page.items else after
        progress(work.done.objects, work.done.objects + remaining)
    return work.done


class _Work:
    def __init__(self, storage: Storage, resource: Resource, version: Version, *, dry_run: bool) -> None:
        self.done = Migrated(resource=resource, version=version)
        self._storage, self._dry_run = storage, dry_run
        self._codec = StorageCodec(resource)

    async def do(self, items: Sequence[KeyValue]) -> None:
        outcomes = await asyncio.gather(*map(self._do_one, items), return_exceptions=True)
        # All writes finish before the first error is raised: none is left running in a store that is being closed.
        for failure in outcomes:
            if failure is not None:
                raise failure

    async def _do_one(self, found: KeyValue) -> None:
        self.done.objects += 1
        current: KeyValue | None = found
        for _ in range(_ATTEMPTS):
            if current is None:  # it was deleted
                return
            try:
                value = self._codec.encode(current, self.done.version)
            except CorruptObject as error:
                self.done.unreadable.append(error)
                return
            if value == current.value or await self._has_written(current, value):
                self.done.rewritten += value != current.value
                return
            current = await self._storage.get(found.key)
        raise StorageUnavailable(f"{found.key} changes all the time", remedy="run it again")

    async def _has_written(self, current: KeyValue, value: bytes) -> bool:
        """Whether the value is stored now; False if another write came first."""
        if self._dry_run:
            return True
        try:
            await self._storage.update(current.key, value, expected=current.revision)
        except (RevisionConflict, KeyNotFound):
            return False
        return True
