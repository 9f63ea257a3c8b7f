"""An index of objects by the values of labels, so that a list with a selector need not read all objects.

A label is indexed when a list first needs it, and updated from the events of the storage from then on. The index finds
the objects that may match; the selector decides.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence

from clusterregistry.apimachinery.meta.label_selectors import LabelSelector
from clusterregistry.apiserver.storage.errors import RevisionInFuture
from clusterregistry.apiserver.storage.interface import Event, KeyValue, Page, Storage, Subscription
from clusterregistry.apiserver.storage.object_bytes import read_labels
from clusterregistry.apiserver.storage.subscriptions import committed_by_now

MOST_LABELS = 8
"""Labels of one resource that are indexed. Each takes some 100 bytes an object, and some time of each write."""

_SLICE = 1000
"""Objects that are indexed without a pause: it takes some milliseconds."""

_NO_LABELS: Mapping[str, str] = {}


class LabelIndex:
    """The index of one resource, as of the newest revision that its storage has seen."""

    def __init__(self, storage: Storage, prefix: str) -> None:
        self._storage, self._prefix = storage, prefix
        self._labels: dict[str, _Values] = {}
        """By label, the most recently used last."""
        self._subscription: Subscription | None = None

    @property
    def labels(self) -> Collection[str]:
        """The labels that are indexed."""
        return self._labels.keys()

    async def page(self, selector: LabelSelector, *, revision: int, after: str = "") -> Page | None:
        """The objects after a key that may match, as of a revision (0: now).

        None: the index cannot narrow the selector, or does not have that revision. Raises StorageError.
        """
        wanted = selector.narrowing
        if not wanted:
            return None
        await self._prepare(list(wanted)[:MOST_LABELS])
        if not await self._has_reached(revision):
            return None
        found = [values.with_any(wanted[label]) for label, values in self._ready(wanted)]
        if not found:
            return None
        few = min(found, key=len)
        items = [few[key] for key in sorted(few) if key > after]
        return Page(items, self._storage.revision, 0)

    async def _has_reached(self, revision: int) -> bool:
        """Whether the index has a revision. That holds until the caller awaits something."""
        if revision or (self._storage.sole_writer and self._storage.known_revision() is not None):
            return revision in {0, self._storage.revision}
        try:
            await self._storage.wait_for(await committed_by_now(self._storage))
        except RevisionInFuture:
            return False
        return True

    def _ready(self, wanted: Mapping[str, Collection[str]]) -> list[tuple[str, _Values]]:
        return [(label, values) for label, values in self._labels.items() if label in wanted and values.complete]

    async def _prepare(self, labels: Sequence[str]) -> None:
        """Indexes the labels that are not indexed yet, in place of the least recently used."""
        for label in labels:
            if label in self._labels:
                self._labels[label] = self._labels.pop(label)
        missing = {label: _Values(label) for label in labels if label not in self._labels}
        if not missing:
            return
        self._labels |= missing
        for label in list(self._labels)[:-MOST_LABELS]:
            del self._labels[label]
        if self._subscription is None:
            self._subscription = self._storage.subscribe(self._prefix, self._receive, interrupted=self._forget)
        try:
            await self._fill(missing.values())
        finally:
            for label, values in missing.items():
                if not values.complete and self._labels.get(label) is values:
                    del self._labels[label]

    async def _fill(self, indexes: Collection[_Values]) -> None:
        """Indexes all existing objects. Events that arrive meanwhile take precedence."""
        # Nothing newer than the events that have arrived: those in between would undo it.
        items = (await self._storage.list(self._prefix, revision=self._storage.revision)).items
        for start in range(0, len(items), _SLICE):
            for kv in items[start : start + _SLICE]:
                labels = read_labels(kv)
                for values in indexes:
                    values.take(kv, labels)
            await asyncio.sleep(0)
        for values in indexes:
            values.complete_now()

    def _forget(self) -> None:
        """Drops all labels, since events were missed; lists index them again."""
        self._labels.clear()

    def _receive(self, events: Sequence[Event]) -> None:
        for event in events if self._labels else ():
            before = read_labels(event.previous) if event.previous else _NO_LABELS
            now = read_labels(event.current) if event.current else _NO_LABELS
            for values in self._labels.values():
                values.change(event, before=before, now=now)


class _Values:
    """The values of one label, and the objects that have each value, by their keys."""

    def __init__(self, label: str) -> None:
        self.complete = False
        self._label = label
        self._having: dict[str, dict[str, KeyValue]] = {}
        self._changed: set[str] = set()
        """The keys that changed before the index was complete."""

    def with_any(self, values: Collection[str]) -> Mapping[str, KeyValue]:
        """The objects with one of these values."""
        found = [self._having[value] for value in values if value in self._having]
        if len(found) == 1:
            return found[0]
        return {key: kv for having in found for key, kv in having.items()}

    def take(self, kv: KeyValue, labels: Mapping[str, str]) -> None:
        """Adds an object that existed when the index was begun."""
        if self._label in labels and kv.key not in self._changed:
            self._having.setdefault(labels[self._label], {})[kv.key] = kv

    def complete_now(self) -> None:
        self.complete = True
        self._changed.clear()

    def change(self, event: Event, *, before: Mapping[str, str], now: Mapping[str, str]) -> None:
        old, new = before.get(self._label), now.get(self._label)
        if old is not None and old != new:
            self._drop(event.key, old)
        if event.current and new is not None:
            self._having.setdefault(new, {})[event.key] = event.current
        if not self.complete:
            self._changed.add(event.key)

    def _drop(self, key: str, value: str) -> None:
        having = self._having.get(value, {})
        having.pop(key, None)
        if not having:
            self._having.pop(value, None)
