"""Unique fields: no two objects of a resource have the same value in one of them, whichever replica writes.

An index of the values follows the events of the storage. A write that gives an object a value is decided on the index,
and carries a *guard* (``storage.interface.Guard``), whose name is made of the value:

1. The index has every object up to the revision R of the storage, and none of them has the value.
2. The guard refuses the write if another write with a guard of that name was committed after R. Every write that gives
   an object the value has such a guard. So when the write is committed, no object has the value.
3. A write that was refused waits for the events up to the other one, and is decided again.

A value that is taken away needs no guard: where the index still has it, the write waits for the events up to now before
it is refused. Nothing but the objects themselves says which values are taken. So nothing can be left behind by a crash,
a restored backup or an earlier release, and a write that does not change the field has no guard.

Objects that have the same value already, such as those of a release without this rule, are served and can be written.
``duplicates`` lists them. Docs: docs/decisions/0027-unique-fields.md.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

from clusterregistry.apimachinery.meta import field_errors
from clusterregistry.apimachinery.meta.field_errors import FieldError
from clusterregistry.apiserver.registry.resource import Resource, SelectField
from clusterregistry.apiserver.storage.errors import (
    GuardConflict,
    RevisionCompacted,
    RevisionInFuture,
    StorageUnavailable,
)
from clusterregistry.apiserver.storage.interface import Event, Guard, KeyValue, Storage, Subscription
from clusterregistry.apiserver.storage.object_bytes import decoded_to_read, find_property, has_same_property
from clusterregistry.apiserver.storage.subscriptions import committed_by_now

_NAMES = 1024
"""Guards of one field. Values share them: two writes at once with different values then meet once in a thousand times,
and a storage has to remember no more."""

_ATTEMPTS = 1000
"""How often a write is decided that meets another one each time: as in ``store``."""

_SLICE = 500
"""Objects that are indexed without a pause: it takes some milliseconds."""

_LOGGED = 10
"""Values that a start names in the log."""

_log = logging.getLogger(__name__)

Values = Mapping[str, str]
"""Values by the names of their fields."""


class DuplicateValues(Exception):  # noqa: N818 - as the errors of stores
    """Another object has the value of these fields."""

    def __init__(self, wrong: Sequence[FieldError]) -> None:
        super().__init__(field_errors.aggregate(wrong))
        self.wrong = wrong


class Duplicate(NamedTuple):
    """Objects with the same value, by their keys in the storage."""

    field: str
    value: str
    keys: Sequence[str]

    def __str__(self) -> str:
        return f"{self.field} {field_errors.shown(self.value)} is that of {', '.join(self.keys)}"


class UniqueFields:
    """The unique fields of one resource."""

    def __init__(self, resource: Resource, storage: Storage, *, prefix: str) -> None:
        """``prefix`` is that of the resource's keys in the storage."""
        self._name, self._fields = resource.qualified_name, resource.unique_fields
        self._storage, self._prefix = storage, prefix
        self._properties = [_property_of(field) for field in self._fields]
        self._index = ValueIndex(self._fields)
        self._subscription: Subscription | None = None
        self._filling: asyncio.Task[None] | None = None

    # The values that a write gives to an object

    def given(self, obj: dict[str, Any], *, value: bytes = b"", stored: KeyValue | None = None) -> Values:
        """The values that an object gets by a write: those that it has, and the stored object has not.

        ``value`` is the object as it is to be stored in place of the stored one.
        """
        if stored is not None:
            written = KeyValue(stored.key, value, 0, slot=value.find(b"\n"))
            if self._has_same_values(stored, written):  # a tenth of the cost of what follows, and nearly always
                return {}
        values = {field: text for field, select in self._fields.items() if (text := select(obj))}
        if not values or stored is None:
            return values
        old = decoded_to_read(stored)
        return {field: text for field, text in values.items() if text != self._fields[field](old)}

    async def write(self, key: str, values: Values, write: Callable[..., Awaitable[int]]) -> int:
        """Writes an object that gets values, by a write of the storage that takes guards.

        ``key`` is that of the object in the storage. Raises DuplicateValues, and StorageError.
        """
        for _ in range(_ATTEMPTS):
            await self.check(key, values)
            # As of the moment of that check: nothing is awaited in between.
            revision = self._storage.revision
            guards = [Guard(self._guard_of(*each), revision) for each in values.items()]
            try:
                return await write(guards=guards)
            except GuardConflict as error:
                await self._catch_up(error.revision)
        raise StorageUnavailable("others write values of the same fields all the time")

    async def check(self, key: str, values: Values) -> None:
        """Raises DuplicateValues if another object than that of a key has one of the values, and StorageError."""
        if not values:
            return
        await self._prepare()
        if self._taken(key, values):
            # Perhaps not any more: another replica may have written since the last event.
            await self._catch_up(await committed_by_now(self._storage))
            await self._prepare()
        if taken := self._taken(key, values):
            raise DuplicateValues([field_errors.duplicate(field, values[field]) for field in taken])

    async def _catch_up(self, revision: int) -> None:
        """Returns once the index has a revision. Raises StorageUnavailable."""
        try:
            await self._storage.wait_for(revision)
        except RevisionInFuture as error:
            raise StorageUnavailable(f"the events up to revision {revision} do not arrive: {error}") from None

    def _taken(self, key: str, values: Values) -> list[str]:
        """The fields whose value another object has."""
        return [field for field, value in values.items() if self._index.is_taken(field, value, by_other_than=key)]

    def _guard_of(self, field: str, value: str) -> str:
        digest = blake2b(value.encode(errors="surrogatepass"), digest_size=4).digest()
        return f"{self._name}/{field}/{int.from_bytes(digest) % _NAMES:03x}"

    # The index of the values that objects have

    @property
    def duplicates(self) -> list[Duplicate]:
        """Values that more than one object has, as far as objects are indexed."""
        return self._index.duplicates()

    async def _prepare(self) -> None:
        """Returns once all objects are indexed. Raises StorageError."""
        while not self._index.is_complete:
            if self._filling is None or self._filling.done():
                self._filling = asyncio.create_task(self._fill())
                self._filling.add_done_callback(_consume_exception)
            await asyncio.shield(self._filling)

    async def report(self) -> None:
        """Indexes all objects, and logs which of them have the same value. Raises StorageError."""
        await self._prepare()
        found = self.duplicates
        for each in found[:_LOGGED]:
            _log.warning("%s: %s. What to do: delete the entries that are wrong", self._name, each)
        if len(found) > _LOGGED:
            _log.warning("%s: %d more values are those of several objects", self._name, len(found) - _LOGGED)

    async def _fill(self) -> None:
        """Indexes all existing objects. Events that arrive meanwhile take precedence."""
        if self._subscription is None:
            self._subscription = self._storage.subscribe(self._prefix, self._receive, interrupted=self._forget)
        index = self._index
        try:
            # Nothing newer than the events that have arrived: those in between would undo it.
            page = await self._storage.list(self._prefix, revision=self._storage.revision)
        except RevisionCompacted:
            raise StorageUnavailable("events were lost, and everything is being read again") from None
        for start in range(0, len(page.items), _SLICE):
            for kv in page.items[start : start + _SLICE]:
                index.take(kv.key, self._values_of(kv))
            await asyncio.sleep(0)
        if index is self._index:
            index.complete()

    def _forget(self) -> None:
        """Begins again, since events were missed."""
        self._index = ValueIndex(self._fields)

    def _receive(self, events: Sequence[Event]) -> None:
        for event in events:
            current, previous = event.current, event.previous
            if current is None or previous is None or not self._has_same_values(previous, current):
                before = self._values_of(previous) if previous else {}
                self._index.change(event.key, before, self._values_of(current) if current else {})

    def _has_same_values(self, one: KeyValue, other: KeyValue) -> bool:
        """True if two states of an object certainly have the same values: nearly always, and without decoding."""
        for each in self._properties:  # noqa: SIM110 - a generator costs as much as the comparison
            if not has_same_property(one, other, each):
                return False
        return True

    def _values_of(self, kv: KeyValue) -> Values:
        if not any(find_property(kv, each) for each in self._properties):
            return {}
        obj = decoded_to_read(kv)
        return {field: value for field, select in self._fields.items() if (value := select(obj))}


class ValueIndex:
    """The objects that have each value, by their keys."""

    def __init__(self, fields: Mapping[str, SelectField]) -> None:
        self.is_complete = False
        self._having: dict[str, dict[str, set[str]]] = {field: {} for field in fields}
        self._shared: dict[tuple[str, str], None] = {}
        """The fields and values that several objects have, as they were found."""
        self._changed: set[str] = set()
        """The keys that changed before the index was complete."""

    def is_taken(self, field: str, value: str, *, by_other_than: str) -> bool:
        return any(key != by_other_than for key in self._having[field].get(value, ()))

    def duplicates(self) -> list[Duplicate]:
        return [Duplicate(field, value, sorted(self._having[field][value])) for field, value in self._shared]

    def take(self, key: str, values: Values) -> None:
        """Adds an object that existed when the index was begun."""
        if key not in self._changed:
            self._add(key, values)

    def complete(self) -> None:
        self.is_complete = True
        self._changed.clear()

    def change(self, key: str, before: Values, now: Values) -> None:
        """Replaces the values of an object."""
        for field, value in before.items():
            keys = self._having[field].get(value, set())
            keys.discard(key)
            if not keys:
                self._having[field].pop(value, None)
            if len(keys) <= 1:
                self._shared.pop((field, value), None)
        self._add(key, now)
        if not self.is_complete:
            self._changed.add(key)

    def _add(self, key: str, values: Values) -> None:
        for field, value in values.items():
            keys = self._having[field].setdefault(value, set())
            keys.add(key)
            if len(keys) > 1:
                self._shared[field, value] = None


def find_duplicates(resource: Resource, objects: Iterable[tuple[str, dict[str, Any]]]) -> list[Duplicate]:
    """The values that more than one of these objects has, each given with its key."""
    index = ValueIndex(resource.unique_fields)
    for key, obj in objects:
        index.take(key, {field: value for field, select in resource.unique_fields.items() if (value := select(obj))})
    return index.duplicates()


def _property_of(field: str) -> str:
    """The last name in the path of a field."""
    return field.rpartition(".")[2]


def _consume_exception(task: asyncio.Task[None]) -> None:
    """Marks the exception as retrieved: no caller may be waiting for the task any more."""
    if not task.cancelled():
        task.exception()
