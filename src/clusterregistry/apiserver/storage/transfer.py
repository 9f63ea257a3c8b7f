"""Copies objects from one store to another, between any engines.

Keys and values are copied byte for byte, so uids, timestamps and managed fields stay; revisions belong to a store and
change. Nothing that the target holds is ever changed or removed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

from clusterregistry.apiserver.storage.errors import KeyExists
from clusterregistry.apiserver.storage.interface import KeyValue, Storage

Progress = Callable[[int, int], None]
"""Called with the number of keys done and the total."""

ALL = "/"
"""The prefix of every key."""

_PAGE = 2000
_AT_ONCE = 64
"""Concurrent creates: enough for an engine to commit many together."""


class TargetNotEmpty(Exception):  # noqa: N818 - as the errors of stores
    """The target holds what the source does not: it is not an unfinished copy."""

    def __init__(self, *, foreign: Sequence[str], differing: Sequence[str]) -> None:
        super().__init__(f"the target has {len(foreign)} other keys, and {len(differing)} with another value")
        self.foreign, self.differing = foreign, differing


@dataclass(slots=True, kw_only=True)
class Copied:
    """The outcome for the keys of the source."""

    revision: int
    """The revision of the source that was copied."""
    created: int = 0
    skipped: int = 0
    """Keys that the target had with the same value."""
    differing: list[str] = field(default_factory=list)
    """Keys that the target has with another value, which was not changed."""

    @property
    def seen(self) -> int:
        return self.created + self.skipped + len(self.differing)


async def copy(source: Storage, target: Storage, *, merge: bool, progress: Progress) -> Copied:
    """Creates in the target what the source holds at one revision. Can be repeated after a failure.

    Keys that the target has with the same value are skipped. Without ``merge`` a target that holds anything else is
    refused with TargetNotEmpty before anything is written; with it, such keys are left as they are and reported.
    """
    state = await _State.of(source)
    present = {item.key: _digest(item.value) async for page in (await _State.of(target)).pages() for item in page}
    if present and not merge:
        await _refuse_other_keys(state, present)
    copied = Copied(revision=state.revision)
    async for page in state.pages():
        for items in _slices(page):
            await _copy_all(items, target, present=present, copied=copied)
            progress(copied.seen, state.total)
    if copied.differing and not merge:  # the target equalled the source, so another process has written there since
        raise TargetNotEmpty(foreign=(), differing=copied.differing)
    return copied


@dataclass(slots=True, kw_only=True)
class _State:
    """All keys of a store as of one revision, read page by page."""

    storage: Storage
    first: Sequence[KeyValue]
    revision: int
    total: int

    @classmethod
    async def of(cls, storage: Storage) -> _State:
        page = await storage.list(ALL, limit=_PAGE)
        total = len(page.items) + page.remaining
        return cls(storage=storage, first=page.items, revision=page.revision, total=total)

    async def pages(self) -> AsyncIterator[Sequence[KeyValue]]:
        items, left = self.first, self.total
        while items:
            yield items
            left -= len(items)
            if left <= 0:
                return
            page = await self.storage.list(ALL, revision=self.revision, after=items[-1].key, limit=_PAGE)
            items = page.items


async def _refuse_other_keys(state: _State, present: dict[str, bytes]) -> None:
    foreign = dict.fromkeys(present)
    differing: list[str] = []
    async for page in state.pages():
        for item in page:
            if item.key in foreign:
                del foreign[item.key]
                if present[item.key] != _digest(item.value):
                    differing.append(item.key)
    if foreign or differing:
        raise TargetNotEmpty(foreign=list(foreign), differing=differing)


async def _copy_all(items: Sequence[KeyValue], target: Storage, *, present: dict[str, bytes], copied: Copied) -> None:
    absent = []
    for item in items:
        if item.key in present:
            _note(item, equal=present[item.key] == _digest(item.value), copied=copied)
        else:
            absent.append(item)
    creating = [_create(item, target, copied=copied) for item in absent]
    # All creates finish before the first error is raised: none is left running in a store that is being closed.
    outcomes = await asyncio.gather(*creating, return_exceptions=True)
    for failure in filter(None, outcomes):
        raise failure


async def _create(item: KeyValue, target: Storage, *, copied: Copied) -> None:
    try:
        await target.create(item.key, item.value)
    except KeyExists:  # since the target was read: by another process, or by a create whose response was lost
        found = await target.get(item.key)
        _note(item, equal=found is not None and found.value == item.value, copied=copied)
    else:
        copied.created += 1


def _note(item: KeyValue, *, equal: bool, copied: Copied) -> None:
    if equal:
        copied.skipped += 1
    else:
        copied.differing.append(item.key)


def _slices(items: Sequence[KeyValue]) -> list[Sequence[KeyValue]]:
    return [items[start : start + _AT_ONCE] for start in range(0, len(items), _AT_ONCE)]


def _digest(value: bytes) -> bytes:
    """A digest of a value: the values of a large target need not fit into memory."""
    return blake2b(value, digest_size=16).digest()
