"""The members of groups: an index over the objects of a resource and the groups that its ``grouping`` declares.

The index follows the events of both resources, so that no request evaluates a selector for all objects. At any moment
it equals the plain evaluation of the definitions that this server has seen, over the objects that it has seen:

- An object whose labels change is compared with the few groups that can name it: those that name it, those with a
  selector that one of its labels fits, and those whose selectors no label narrows.
- A group whose definition changes gets its members by operations on sets: the index knows which objects have which
  values of the labels that selectors name. All objects are looked at only when a selector names a label that no other
  one does.

A *definition* is what makes objects members. A change of an object is none, nor is a change of a group's status: the
events of objects carry both of their states, so that watches evaluate the membership of what they are about to send.

Objects and groups are named by their keys, as in stores. Docs: docs/decisions/0021-group-index.md.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, TypeVar

from clusterregistry.apimachinery.bounded_cache import BoundedCache
from clusterregistry.apimachinery.meta.label_selectors import LabelSelector, Requirement
from clusterregistry.apiserver.registry.object_groups import NOTHING, Grouping, Members, Object
from clusterregistry.apiserver.storage.interface import Event, KeyValue
from clusterregistry.apiserver.storage.object_bytes import decoded_to_read, read_labels

if TYPE_CHECKING:
    from clusterregistry.apiserver.registry.store import Store

Groups = frozenset[str]
Listener = Callable[[], None]
MembersListener = Callable[[AbstractSet[str]], None]
L = TypeVar("L")

_Fact = tuple[str, str]
"""A label and its value, or ``_NAME`` and a name."""

_NAME = ""
"""In place of a label, which is never empty."""

_NO_GROUPS: Groups = frozenset()
_NO_KEYS: frozenset[str] = frozenset()

_NO_LABELS: Mapping[str, str] = {}

_SHARED = 4096
"""Different sets of groups of which objects share one instance."""

_EARLIER = 256
"""States of objects, besides the present ones, whose groups are known."""

_TRACKED = 100_000
"""Groups whose last change is known one by one."""

_NEGATIVE = ("!", "!=", "notin")
"""The operators that an object without the label fulfils."""

_log = logging.getLogger(__name__)


class GroupIndex:
    """Which groups have which objects. Opened with ``open``; no method but ``caught_up`` waits for anything."""

    def __init__(self, objects: Store, groups: Store, grouping: Grouping) -> None:
        """For ``open``."""
        self._objects, self._group_store, self._grouping = objects, groups, grouping
        self._definitions = _Definitions()
        self._labels = _LabelIndex()
        self._present: dict[str, KeyValue] = {}
        """The objects that exist, by key."""
        self._groups: dict[str, Groups] = {}
        """The groups of the objects that have any, by key."""
        self._members: dict[str, set[str]] = {}
        """The keys of the members, by group: every group is here."""
        self._shared: BoundedCache[Groups, Groups] = BoundedCache(_SHARED)
        self._earlier: BoundedCache[tuple[str, int], Groups] = BoundedCache(_EARLIER)
        """The groups of other states of objects, by key and revision, by the definitions of now."""
        self._changes = _LastChanges()
        self._changed_while_loading: set[str] | None = set()
        """The keys in the storage of what changed before everything was read; None after that."""
        self._listeners: dict[object, Listener] = {}
        self._members_listeners: dict[object, MembersListener] = {}
        self.generation = 0
        """Grows with each change of a definition."""
        self._subscriptions = [
            objects.storage.subscribe(objects.prefix, self._receive_objects, interrupted=self._begin_anew),
            groups.storage.subscribe(groups.prefix, self._receive_groups, interrupted=self._begin_anew),
        ]

    @classmethod
    async def open(cls, objects: Store, groups: Store, grouping: Grouping) -> GroupIndex:
        """Reads everything and follows the events from there on, without a gap. Raises StorageError."""
        index = cls(objects, groups, grouping)
        try:
            await index._load()
        except BaseException:
            index.close()
            raise
        return index

    def close(self) -> None:
        """Ends the subscriptions. Idempotent."""
        for subscription in self._subscriptions:
            subscription.close()

    @property
    def grouping(self) -> Grouping:
        return self._grouping

    # Questions

    @property
    def names(self) -> AbstractSet[str]:
        """The keys of all groups."""
        return self._members.keys()

    def groups_of(self, name: str, labels: Mapping[str, str] | None) -> Groups:
        """The groups of an object with this key and these labels, whether it is stored or not."""
        return self._share(self._definitions.groups_of(name, labels or _NO_LABELS))

    def groups_of_object(self, kv: KeyValue) -> Groups:
        """The groups of a state of an object: a look-up for the present one.

        Other states are evaluated once, since all watches look at the states before and after an event.
        """
        key = kv.key[len(self._objects.prefix) :]
        present = self._present.get(key)
        if present is not None and present.revision == kv.revision:
            return self._groups.get(key, _NO_GROUPS)
        known = self._earlier.get((key, kv.revision))
        if known is None:
            known = self.groups_of(key, read_labels(kv))
            self._earlier.put((key, kv.revision), known)
        return known

    def members(self, groups: AbstractSet[str]) -> AbstractSet[str]:
        """The keys of the objects that are members of any of these groups now."""
        found = [members for group in groups if (members := self._members.get(group))]
        return frozenset().union(*found)

    def naming(self, name: str) -> Groups:
        """The groups that list a name, whether an object has it or not."""
        return self._definitions.naming(name)

    def count(self, group: str) -> int:
        """The number of members; 0 for a group that does not exist."""
        return len(self._members.get(group, _NO_KEYS))

    def definition(self, group: str) -> Members:
        """What makes an object a member of a group; of one that does not exist, or cannot be read, nothing does."""
        return self._definitions.of(group)

    def has_definition_of(self, group: str, obj: Object) -> bool:
        """Whether an object of the group has the definition that counts now, rather than an earlier or later one."""
        return group in self._members and self._definition_in(obj) == self._definitions.of(group)

    def absent_names(self, group: str) -> Sequence[str]:
        """The names that a group lists and no object has, sorted."""
        return sorted(name for name in self._definitions.of(group).names if name not in self._present)

    # Changes

    def changed_at(self, groups: AbstractSet[str] | None = None) -> int:
        """The storage revision of the last change of the definition of one of these groups, or of any (None).

        A revision after it, where that one is not known, such as before a start.
        """
        return self._changes.last() if groups is None else self._changes.last_of(groups)

    async def caught_up(self, revision: int) -> None:
        """Returns once everything up to a revision counts. Raises StorageError."""
        await self._group_store.storage.wait_for(revision)
        await self._objects.storage.wait_for(revision)

    def on_change(self, listener: Listener) -> Callable[[], None]:
        """Calls the listener after each change of a definition. Returns an idempotent function that ends that."""
        return _register(self._listeners, listener)

    def on_members_change(self, listener: MembersListener) -> Callable[[], None]:
        """Calls the listener with the groups whose members have changed, or whose definition has; as ``on_change``."""
        return _register(self._members_listeners, listener)

    def _begin_anew(self) -> None:
        """Events were missed. Those of the difference follow; when something changed in between is not known."""
        # Called for each of both storages; the last call sets the revision that counts.
        self._changes.begin_anew(self._newest())
        self._earlier.clear()

    def _newest(self) -> int:
        return max(self._objects.storage.revision, self._group_store.storage.revision)

    def _tell_definitions_changed(self) -> None:
        self.generation += 1
        for listener in list(self._listeners.values()):
            listener()

    def _tell_members_changed(self, groups: AbstractSet[str]) -> None:
        for listener in list(self._members_listeners.values()) if groups else ():
            listener(groups)

    # What is stored

    async def _load(self) -> None:
        """Reads all objects and groups. What changes meanwhile comes as an event, which is newer."""
        changed: set[str] = set()
        self._changed_while_loading = changed
        for kv in (await self._objects.storage.list(self._objects.prefix)).items:
            if kv.key not in changed:
                self._set_object(kv)
        for kv in (await self._group_store.storage.list(self._group_store.prefix)).items:
            if kv.key not in changed:
                self._define(kv.key, self._read(kv))
        self._changed_while_loading = None
        self._changes.begin_at(self._newest())

    def _receive_objects(self, events: Sequence[Event]) -> None:
        self._note(events)
        touched: set[str] = set()
        for event in events:
            touched |= self._set_object(event.current) if event.current else self._remove_object(event.key)
        self._tell_members_changed(touched)

    def _receive_groups(self, events: Sequence[Event]) -> None:
        self._note(events)
        touched: set[str] = set()
        for event in events:
            definition = self._read(event.current) if event.current else None
            if self._define(event.key, definition):
                group = self._group_key(event.key)
                self._changes.note(group, event.revision)
                touched.add(group)
        if touched:
            self._tell_definitions_changed()
            self._tell_members_changed(touched)

    def _note(self, events: Sequence[Event]) -> None:
        if self._changed_while_loading is not None:
            self._changed_while_loading.update(event.key for event in events)

    # Objects

    def _set_object(self, kv: KeyValue) -> Groups:
        """Returns the groups that the object has entered or left."""
        key = kv.key[len(self._objects.prefix) :]
        before = self._present.get(key)
        self._present[key] = kv
        labels = read_labels(kv)
        if before is not None and (known := read_labels(before)) == labels:
            return _NO_GROUPS
        self._labels.move(key, known if before is not None else _NO_LABELS, labels)
        return self._set_groups(key, self.groups_of(key, labels))

    def _remove_object(self, stored_under: str) -> Groups:
        key = stored_under[len(self._objects.prefix) :]
        before = self._present.pop(key, None)
        if before is not None:
            self._labels.move(key, read_labels(before), _NO_LABELS)
        return self._set_groups(key, _NO_GROUPS)

    def _set_groups(self, key: str, groups: Groups) -> Groups:
        before = self._groups.get(key, _NO_GROUPS)
        if groups == before:
            return _NO_GROUPS
        for group in before - groups:
            self._members[group].discard(key)
        for group in groups - before:
            self._members[group].add(key)
        if groups:
            self._groups[key] = groups
        else:
            del self._groups[key]
        return groups ^ before

    def _share(self, groups: Groups) -> Groups:
        """One instance for equal sets, of which there are much fewer than objects."""
        if not groups:
            return _NO_GROUPS
        known = self._shared.get(groups)
        if known is None:
            self._shared.put(groups, groups)
        return known or groups

    # Groups

    def _group_key(self, stored_under: str) -> str:
        return stored_under[len(self._group_store.prefix) :]

    def _read(self, kv: KeyValue) -> Members:
        """The definition of a group; one that cannot be read has no members."""
        definition = self._definition_in(decoded_to_read(kv))
        if definition is None:
            _log.error("the group under %r has no members, since its definition cannot be read", kv.key)
        return definition or NOTHING

    def _definition_in(self, obj: Object) -> Members | None:
        try:
            return self._grouping.members_of(obj)
        except Exception:  # noqa: BLE001 - whatever is wrong with one group, the others count
            return None

    def _define(self, stored_under: str, definition: Members | None) -> bool:
        """Sets the definition of a group, or removes the group (None). Returns whether that changed anything."""
        group = self._group_key(stored_under)
        before = self._definitions.of(group) if group in self._members else None
        if before == definition:
            return False
        self._earlier.clear()
        self._prepare_labels(definition)
        self._definitions.set(group, definition)
        self._set_members(group, self._selected(definition) if definition else set())
        if definition is None:
            del self._members[group]
        if before is not None:
            self._labels.release(_labels_of(before))
        return True

    def _prepare_labels(self, definition: Members | None) -> None:
        """Indexes the objects by the labels of a definition that no other one names."""
        missing = self._labels.claim(_labels_of(definition)) if definition else set()
        if missing:
            for key, kv in self._present.items():
                self._labels.add(key, read_labels(kv), among=missing)

    def _selected(self, definition: Members) -> set[str]:
        """The keys of the objects that a definition makes members."""
        named = {name for name in definition.names if name in self._present}
        if definition.selector is None:
            return named
        return named | self._labels.selected(definition.selector, everything=self._present.keys())

    def _set_members(self, group: str, members: set[str]) -> None:
        before = self._members.get(group, set())
        one = frozenset((group,))
        for key in before - members:
            if left := self._groups[key] - one:
                self._groups[key] = self._share(left)
            else:
                del self._groups[key]
        for key in members - before:
            self._groups[key] = self._share(self._groups.get(key, _NO_GROUPS) | one)
        self._members[group] = members


class _Definitions:
    """The definitions of groups, so that those that can name an object are found by its name and labels."""

    def __init__(self) -> None:
        self._all: dict[str, Members] = {}
        self._by_fact: dict[_Fact, set[str]] = {}
        """The groups that a name or the value of a label leads to."""
        self._others: set[str] = set()
        """The groups with selectors that no label narrows."""

    def of(self, group: str) -> Members:
        return self._all.get(group, NOTHING)

    def set(self, group: str, definition: Members | None) -> None:
        """Sets the definition of a group; None removes it."""
        if before := self._all.pop(group, None):
            self._unlink(group, before)
        if definition is None:
            return
        self._all[group] = definition
        for fact in _facts(definition):
            self._by_fact.setdefault(fact, set()).add(group)
        if definition.selector is not None and not definition.selector.narrowing:
            self._others.add(group)

    def _unlink(self, group: str, definition: Members) -> None:
        self._others.discard(group)
        for fact in _facts(definition):
            groups = self._by_fact[fact]
            groups.discard(group)
            if not groups:
                del self._by_fact[fact]

    def naming(self, name: str) -> Groups:
        return frozenset(self._by_fact.get((_NAME, name), _NO_KEYS))

    def groups_of(self, name: str, labels: Mapping[str, str]) -> Groups:
        """The groups of an object with this name and these labels."""
        candidates: AbstractSet[str] = self._others | self._by_fact.get((_NAME, name), _NO_KEYS)
        for label in labels.items():
            if label in self._by_fact:
                candidates = candidates | self._by_fact[label]
        return frozenset(group for group in candidates if self._all[group].has(name, labels))


def _facts(definition: Members) -> set[_Fact]:
    """Names, and values of one label, at least one of which every member has; unless no label narrows the selector."""
    facts = {(_NAME, name) for name in definition.names}
    if definition.selector is not None and (narrowing := definition.selector.narrowing):
        label, values = min(narrowing.items(), key=lambda item: len(item[1]))
        facts.update((label, value) for value in values)
    return facts


class _LabelIndex:
    """The objects by the values of those labels that some selector names."""

    def __init__(self) -> None:
        self._having: dict[str, dict[str, set[str]]] = {}
        self._uses: Counter[str] = Counter()

    def claim(self, labels: AbstractSet[str]) -> set[str]:
        """Keeps these labels indexed; returns those that were not, for which all objects have to be added."""
        self._uses.update(labels)
        missing = labels - self._having.keys()
        self._having |= {label: {} for label in missing}
        return missing

    def release(self, labels: AbstractSet[str]) -> None:
        """Forgets the labels that nothing else claims."""
        self._uses.subtract(labels)
        for label in labels:
            if not self._uses[label]:
                del self._uses[label], self._having[label]

    def add(self, key: str, labels: Mapping[str, str], *, among: AbstractSet[str]) -> None:
        for label in among & labels.keys():
            self._having[label].setdefault(labels[label], set()).add(key)

    def move(self, key: str, before: Mapping[str, str], now: Mapping[str, str]) -> None:
        """Replaces the labels of an object."""
        for label in self._having.keys() & before.keys():
            if now.get(label) != before[label]:
                self._drop(key, label, before[label])
        for label in self._having.keys() & now.keys():
            if before.get(label) != now[label]:
                self._having[label].setdefault(now[label], set()).add(key)

    def _drop(self, key: str, label: str, value: str) -> None:
        keys = self._having[label][value]
        keys.discard(key)
        if not keys:
            del self._having[label][value]

    def selected(self, selector: LabelSelector, *, everything: AbstractSet[str]) -> set[str]:
        """The keys of the objects that a selector selects, among all. Its labels are indexed."""
        found: set[str] | None = None
        for requirement in sorted(selector.requirements, key=lambda each: each.operator in _NEGATIVE):
            keys = self._with_label(requirement)
            if requirement.operator in _NEGATIVE:
                found = (set(everything) if found is None else found) - keys
            else:
                found = keys if found is None else found & keys
            if not found:
                return found
        return set(everything) if found is None else found

    def _with_label(self, requirement: Requirement) -> set[str]:
        """The objects that fulfil a requirement or, of a negative one, those that have the label and do not."""
        having = self._having[requirement.key]
        if requirement.operator in ("=", "in", "!=", "notin"):
            values: Iterable[str] = requirement.values
        elif requirement.operator in ("exists", "!"):
            values = having
        else:
            one = LabelSelector((requirement,))
            values = [value for value in having if one.matches({requirement.key: value})]
        return set[str]().union(*(having.get(value, _NO_KEYS) for value in values))


class _LastChanges:
    """The revision of the last change of each definition. An unknown one counts as changed at the beginning."""

    def __init__(self) -> None:
        self._begin = self._last = 0
        self._of: dict[str, int] = {}

    def begin_at(self, revision: int) -> None:
        self._begin = max(self._begin, revision)
        self._last = max(self._last, revision)

    def begin_anew(self, revision: int) -> None:
        """The same for a storage that was restored: its revisions may be lower than those known before."""
        self._of.clear()
        self._begin = self._last = revision

    def note(self, group: str, revision: int) -> None:
        if len(self._of) >= _TRACKED:
            self._of.clear()
            self.begin_at(self._last)
        self._of[group] = revision
        self._last = max(self._last, revision)

    def last(self) -> int:
        return self._last

    def last_of(self, groups: AbstractSet[str]) -> int:
        return max([self._begin, *(self._of.get(group, 0) for group in groups)])


def _labels_of(definition: Members) -> set[str]:
    """The labels that the selector of a definition names."""
    return {each.key for each in definition.selector.requirements} if definition.selector else set()


def _register(listeners: dict[object, L], listener: L) -> Callable[[], None]:
    key = object()
    listeners[key] = listener

    def end() -> None:
        listeners.pop(key, None)

    return end
