"""An index of objects by the values of labels and selectable fields: a list with a selector need not read all objects.

A label or field is indexed when a list first needs it, and updated from the events of the storage from then on. The
index finds the objects that may match; the selectors decide.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from clusterregistry.apimachinery.meta.field_selectors import FieldSelector
from clusterregistry.apimachinery.meta.label_selectors import LabelSelector
from clusterregistry.apiserver.registry.resource import SelectField
from clusterregistry.apiserver.storage.errors import RevisionInFuture
from clusterregistry.apiserver.storage.interface import Event, KeyValue, Page, Storage, Subscription
from clusterregistry.apiserver.storage.object_bytes import decoded_to_read, read_labels
from clusterregistry.apiserver.storage.subscriptions import committed_by_now

MOST_INDEXED = 8
"""Labels and fields of one resource that are indexed. Each takes some 100 bytes an object, and time of each write."""

_SLICE = 1000
"""Objects that are indexed without a pause: it takes some milliseconds."""


class Label(NamedTuple):
    """A label, as far as the index knows it: apart from a field of the same name."""

    name: str


Indexed = Label | str
"""What can be indexed: a label, or a field by its name."""

Values = Mapping[Indexed, str]


class SelectorIndex:
    """The index of one resource, as of the newest revision that its storage has seen."""

    def __init__(self, storage: Storage, prefix: str, fields: Mapping[str, SelectField] | None = None) -> None:
        """``fields`` are the selectable fields of the resource besides those of the metadata."""
        self._storage, self._prefix, self._fields = storage, prefix, fields or {}
        self._indexes: dict[Indexed, _Values] = {}
        """By label or field, the most recently used last."""
        self._subscription: Subscription | None = None

    @property
    def indexed(self) -> Collection[Indexed]:
        """The labels and fields that are indexed."""
        return self._indexes.keys()

    async def page(
        self, labels: LabelSelector, fields: FieldSelector, *, prefix: str, revision: int, after: str = ""
    ) -> Page | None:
        """The objects with a prefix and after a key that may match, as of a revision (0: now).

        None: the index cannot narrow the selectors, or does not have that revision. Raises StorageError.
        """
        wanted: dict[Indexed, Collection[str]] = {Label(name): values for name, values in labels.narrowing.items()}
        wanted.update(fields.narrowing.items())
        if not wanted:
            return None
        await self._prepare(list(wanted)[:MOST_INDEXED])
        if not await self._has_reached(revision):
            return None
        found = [
            index.with_any(wanted[what]) for what, index in self._indexes.items() if what in wanted and index.complete
        ]
        if not found:
            return None
        few = min(found, key=len)
        items = [few[key] for key in sorted(few) if key > after and key.startswith(prefix)]
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

    async def _prepare(self, wanted: Sequence[Indexed]) -> None:
        """Indexes what is not indexed yet, in place of the least recently used."""
        for what in wanted:
            if what in self._indexes:
                self._indexes[what] = self._indexes.pop(what)
        missing = {what: _Values(what) for what in wanted if what not in self._indexes}
        if not missing:
            return
        self._indexes |= missing
        for what in list(self._indexes)[:-MOST_INDEXED]:
            del self._indexes[what]
        if self._subscription is None:
            self._subscription = self._storage.subscribe(self._prefix, self._receive, interrupted=self._forget)
        try:
            await self._fill(missing)
        finally:
            for what, index in missing.items():
                if not index.complete and self._indexes.get(what) is index:
                    del self._indexes[what]

    async def _fill(self, indexes: Mapping[Indexed, _Values]) -> None:
        """Indexes all existing objects. Events that arrive meanwhile take precedence."""
        # Nothing newer than the events that have arrived: those in between would undo it.
        items = (await self._storage.list(self._prefix, revision=self._storage.revision)).items
        for start in range(0, len(items), _SLICE):
            for kv in items[start : start + _SLICE]:
                values = self._values(kv, indexes)
                for index in indexes.values():
                    index.take(kv, values)
            await asyncio.sleep(0)
        for index in indexes.values():
            index.complete_now()

    def _forget(self) -> None:
        """Drops all indexes, since events were missed; lists make them again."""
        self._indexes.clear()

    def _receive(self, events: Sequence[Event]) -> None:
        for event in events if self._indexes else ():
            before = self._values(event.previous, self._indexes) if event.previous else {}
            now = self._values(event.current, self._indexes) if event.current else {}
            for index in self._indexes.values():
                index.change(event, before=before, now=now)

    def _values(self, kv: KeyValue, wanted: Collection[Indexed]) -> Values:
        """The labels and fields of an object that are to be indexed."""
        labels = read_labels(kv)
        values: dict[Indexed, str] = {
            what: labels[what.name] for what in wanted if isinstance(what, Label) and what.name in labels
        }
        fields = [what for what in wanted if not isinstance(what, Label)]
        if fields:
            obj = decoded_to_read(kv)
            values |= {field: self._fields[field](obj) for field in fields}
        return values


class _Values:
    """The values of one label or field, and the objects that have each value, by their keys."""

    def __init__(self, what: Indexed) -> None:
        self.complete = False
        self._what = what
        self._having: dict[str, dict[str, KeyValue]] = {}
        self._changed: set[str] = set()
        """The keys that changed before the index was complete."""

    def with_any(self, values: Collection[str]) -> Mapping[str, KeyValue]:
        """The objects with one of these values."""
        found = [self._having[value] for value in values if value in self._having]
        if len(found) == 1:
            return found[0]
        return {key: kv for having in found for key, kv in having.items()}

    def take(self, kv: KeyValue, values: Values) -> None:
        """Adds an object that existed when the index was begun."""
        if self._what in values and kv.key not in self._changed:
            self._having.setdefault(values[self._what], {})[kv.key] = kv

    def complete_now(self) -> None:
        self.complete = True
        self._changed.clear()

    def change(self, event: Event, *, before: Values, now: Values) -> None:
        old, new = before.get(self._what), now.get(self._what)
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
