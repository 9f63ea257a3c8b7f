"""The dependency graph: which stored objects have owners, by uid, kept up to date by the events of the stores.

Only dependents have a node. Whether an owner exists is seen in the cache of its resource, so that a server whose
objects have no owners keeps nothing, and pays two looks at the bytes of each event. What an event makes necessary is
handed to ``wake``: an object to look at, or all dependents of a uid.

The graph of kube-controller-manager (``garbagecollector/graph_builder.go``) knows every object, and absent owners as
virtual nodes, since its caches are those of a client.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from clusterregistry.apiserver.registry.deletion import FOREGROUND, ORPHAN
from clusterregistry.apiserver.registry.resource import Resource
from clusterregistry.apiserver.registry.store import Store
from clusterregistry.apiserver.storage.interface import Event, KeyValue
from clusterregistry.apiserver.storage.object_bytes import (
    has_owners,
    is_being_deleted,
    owner_references_of,
    read_metadata,
    uid_of,
)

_SLICE = 200
_WITHOUT_A_PAUSE = 0.002
"""Objects that are read between two looks at the clock, and seconds of reading after which requests have their turn."""

_MOST_VISITED = 10_000
"""Nodes that the search for a cycle visits. A longer cycle of owners is not found, and waits for its objects."""


class OwnerReference(NamedTuple):
    api_version: str
    kind: str
    name: str
    uid: str
    blocks: bool
    """Whether the owner, when it is deleted in the foreground, waits for the dependent."""


class Tracked:
    """One resource in the graph, with the nodes of its objects by their keys in the storage."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.nodes: dict[str, Node] = {}
        self.is_collected = store.resource.retention is None
        """Objects with a retention are no dependents: they go by themselves. kube-controller-manager leaves out
        events."""

    @property
    def resource(self) -> Resource:
        return self.store.resource

    def namespace_of(self, key: str) -> str:
        """The namespace of an object; empty for one of a root-scoped resource."""
        return key[len(self.store.prefix) :].partition("/")[0] if self.resource.namespaced else ""

    def cached(self, key: str) -> KeyValue | None:
        return self.store.storage.get_stale(key)


class Node:
    """An object that has owners."""

    __slots__ = ("is_waiting", "key", "owners", "tracked", "uid")

    def __init__(self, tracked: Tracked, key: str, *, uid: str) -> None:
        self.tracked, self.key, self.uid = tracked, key, uid
        self.owners: tuple[OwnerReference, ...] = ()
        self.is_waiting = False
        """Whether it is deleted in the foreground: it waits for dependents of its own."""


class Owner(NamedTuple):
    """Where an owner is stored."""

    tracked: Tracked
    key: str


class Work(NamedTuple):
    """An object to look at or, without a resource, the uid of an owner whose dependents have to be looked at."""

    tracked: Tracked | None
    key: str


Wake = Callable[[Work], None]


class DependencyGraph:
    """The dependents among the objects of some stores. ``close`` ends its subscriptions."""

    def __init__(self, stores: Sequence[Store], *, wake: Wake, interrupted: Callable[[], None]) -> None:
        """``interrupted`` is called when events may have been missed: then ``load`` has to be called again."""
        self._wake = wake
        self._tracked = [Tracked(store) for store in stores]
        self._by_type = {each: tracked for tracked in self._tracked for each in served_types(tracked.resource)}
        self._dependents: dict[str, dict[Node, None]] = {}
        self._subscriptions = [
            each.store.storage.subscribe(each.store.prefix, partial(self._receive, each), interrupted=interrupted)
            for each in self._tracked
        ]

    def close(self) -> None:
        for subscription in self._subscriptions:
            subscription.close()

    def __len__(self) -> int:
        """The number of dependents."""
        return sum(len(each.nodes) for each in self._tracked)

    async def load(self) -> None:
        """Reads all objects, and hands out those that need a look. Raises StorageError.

        Each object is read from the cache at its turn: so it does not matter which events come meanwhile.
        """
        begun = time.monotonic()
        for tracked in self._tracked:
            for key in list(tracked.nodes):
                self._review(tracked, key)
            storage = tracked.store.storage
            page = await storage.list(tracked.store.prefix, revision=storage.revision)
            for start in range(0, len(page.items), _SLICE):
                for kv in page.items[start : start + _SLICE]:
                    self._review(tracked, kv.key)
                if time.monotonic() - begun > _WITHOUT_A_PAUSE:
                    await asyncio.sleep(0)
                    begun = time.monotonic()

    async def catch_up(self) -> None:
        """Returns once the graph has everything that was committed at the call. Raises StorageError."""
        if not self._tracked:
            return
        revision = await self._tracked[0].store.storage.current_revision()
        for tracked in self._tracked:
            if tracked.store.storage.revision < revision:
                await tracked.store.storage.wait_for(revision)

    # Questions

    def owner_of(self, dependent: Tracked, key: str, reference: OwnerReference) -> Owner | None:
        """Where the owner is stored, if it exists. None if the reference cannot be resolved.

        That is one to a kind that is not served, and one from a root-scoped object to a namespaced kind. An owner is
        sought in the namespace of its dependent alone.
        """
        tracked = self._by_type.get((reference.api_version, reference.kind))
        if tracked is None:
            return None
        if not tracked.resource.namespaced:
            return Owner(tracked, tracked.store.prefix + reference.name)
        namespace = dependent.namespace_of(key)
        return Owner(tracked, f"{tracked.store.prefix}{namespace}/{reference.name}") if namespace else None

    def dependents(self, uid: str) -> list[Node]:
        """The dependents of an owner."""
        return list(self._dependents.get(uid, ()))

    def has_dependents(self, uid: str) -> bool:
        return uid in self._dependents

    def is_blocked(self, uid: str) -> bool:
        """Whether the deletion of an owner in the foreground waits for a dependent.

        A dependent that itself waits for the owner, directly or through others, does not count: none of them could
        ever go.
        """
        return any(
            node.uid != uid and not (node.is_waiting and self._waits_for(node, uid)) for node in self._blocking(uid)
        )

    def _blocking(self, uid: str) -> Iterator[Node]:
        for node in self._dependents.get(uid, ()):
            if any(each.uid == uid and each.blocks for each in node.owners):
                yield node

    def _waits_for(self, node: Node, uid: str) -> bool:
        """Whether a waiting node waits for an object, directly or through other waiting nodes."""
        seen, left = {node.uid}, [node.uid]
        while left and len(seen) < _MOST_VISITED:
            for each in self._blocking(left.pop()):
                if each.uid == uid:
                    return True
                if each.is_waiting and each.uid not in seen:
                    seen.add(each.uid)
                    left.append(each.uid)
        return False

    # Events

    def _receive(self, tracked: Tracked, events: Sequence[Event]) -> None:
        for event in events:
            current = event.current
            if current is None:
                self._forget(tracked, event)
                continue
            if has_owners(current) or event.key in tracked.nodes:
                self._update_node(tracked, current)
            if is_being_deleted(current):
                self._note_deletion(tracked, current)

    def _review(self, tracked: Tracked, key: str) -> None:
        """Brings one object up to date, and hands it out unless all of its owners are there to stay."""
        current = tracked.cached(key)
        if current is None:
            self._remove_node(tracked, key)
            return
        if has_owners(current) or key in tracked.nodes:
            self._update_node(tracked, current)
            node = tracked.nodes.get(key)
            if node is not None and not self._is_settled(node, node.owners):
                self._wake(Work(tracked, key))
        if is_being_deleted(current):
            self._note_deletion(tracked, current)

    def _forget(self, tracked: Tracked, event: Event) -> None:
        """An object is gone."""
        if self._dependents and event.previous is not None and (uid := uid_of(event.previous)) in self._dependents:
            self._wake(Work(None, uid))
        self._remove_node(tracked, event.key)

    def _note_deletion(self, tracked: Tracked, current: KeyValue) -> None:
        finalizers = read_metadata(current).get("finalizers", ())
        if FOREGROUND in finalizers or ORPHAN in finalizers:
            self._wake(Work(tracked, current.key))
        if FOREGROUND in finalizers and (uid := uid_of(current)) in self._dependents:
            self._wake(Work(None, uid))

    # Nodes

    def _update_node(self, tracked: Tracked, current: KeyValue) -> None:
        owners = tuple(map(_reference, owner_references_of(current))) if tracked.is_collected else ()
        node, uid = tracked.nodes.get(current.key), uid_of(current)
        if node is not None and (node.uid != uid or not owners):
            self._remove_node(tracked, current.key)
            node = None
        if not owners:
            return
        if node is None:
            node = tracked.nodes[current.key] = Node(tracked, current.key, uid=uid)
        if owners != node.owners:
            self._set_owners(node, owners)
        is_waiting = waits_for_dependents(current)
        if is_waiting != node.is_waiting:
            node.is_waiting = is_waiting
            self._wake_waiting_owners(node, node.owners)

    def _set_owners(self, node: Node, owners: tuple[OwnerReference, ...]) -> None:
        before, node.owners = node.owners, owners
        # A reference that cannot be resolved blocks no deletion, since the dependent would never go.
        kept = {each.uid for each in owners if self.owner_of(node.tracked, node.key, each) is not None}
        for reference in before:
            if reference.uid not in kept:
                self._unlink(node, reference.uid)
        for uid in kept:
            self._dependents.setdefault(uid, {})[node] = None
        self._wake_waiting_owners(node, before)
        if not self._is_settled(node, set(owners).difference(before)):
            self._wake(Work(node.tracked, node.key))

    def _remove_node(self, tracked: Tracked, key: str) -> None:
        node = tracked.nodes.pop(key, None)
        if node is not None:
            for reference in node.owners:
                self._unlink(node, reference.uid)
            self._wake_waiting_owners(node, node.owners)

    def _unlink(self, node: Node, uid: str) -> None:
        nodes = self._dependents.get(uid)
        if nodes is not None:
            nodes.pop(node, None)
            if not nodes:
                del self._dependents[uid]

    def _wake_waiting_owners(self, node: Node, references: Sequence[OwnerReference]) -> None:
        """Hands out the owners that may have waited for a dependent."""
        for reference in references:
            owner = self.owner_of(node.tracked, node.key, reference)
            cached = owner and owner.tracked.cached(owner.key)
            if owner and cached and is_being_deleted(cached):
                self._wake(Work(owner.tracked, owner.key))

    def _is_settled(self, node: Node, references: Sequence[OwnerReference] | set[OwnerReference]) -> bool:
        """Whether the cache has all of these owners, and none is deleted in the foreground."""
        for reference in references:
            owner = self.owner_of(node.tracked, node.key, reference)
            if owner is None:
                continue
            cached = owner.tracked.cached(owner.key)
            if cached is None or uid_of(cached) != reference.uid or waits_for_dependents(cached):
                return False
        return True


def served_types(resource: Resource) -> Iterator[tuple[str, str]]:
    """``apiVersion`` and ``kind`` of every version in which a resource is served."""
    for version in resource.versions:
        group = resource.group_of(version)
        yield (f"{group}/{version.name}" if group else version.name), resource.kind


def waits_for_dependents(kv: KeyValue) -> bool:
    """Whether an object is deleted in the foreground."""
    return is_being_deleted(kv) and FOREGROUND in read_metadata(kv).get("finalizers", ())


def _reference(wire: dict[str, object]) -> OwnerReference:
    return OwnerReference(
        api_version=str(wire.get("apiVersion", "")),
        kind=str(wire.get("kind", "")),
        name=str(wire.get("name", "")),
        uid=str(wire.get("uid", "")),
        blocks=wire.get("blockOwnerDeletion") is True,
    )
