"""The namespace controller: empties a namespace that is deleted, then lets it go. Some namespaces always exist.

No object stays in a namespace that is gone:

1. A namespace is emptied, and found to be empty, by lists that are at least as new as its deletion. From then on
   admission (``namespace_lifecycle``) lets no object in. Only then its finalizer goes.
2. A create may have been admitted before the deletion, or by a replica that had not seen it, and may be committed after
   the last list. Its event is seen here, by each replica: an object that is created in a namespace which is being
   deleted, or which does not exist, has that namespace looked at again. The same is done for all objects at the start.
3. The objects are listed first, and then the namespace is read from the storage. If it does not exist, or is being
   deleted, it did so after these objects were created. They are deleted on condition of their uid. So those of a
   namespace that is created again under the same name, maybe after another replica has removed it, are not hit.

The conditions in the status of the namespace are those of kube-controller-manager (``namespace/deletion``), which has
the first of the three, and waits five seconds.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from http import HTTPStatus
from typing import Any

from clusterregistry.apimachinery.meta import times
from clusterregistry.apimachinery.meta.errors import APIError
from clusterregistry.apiserver.controllers.garbage_collector import WriterOf
from clusterregistry.apiserver.controllers.work_queue import UNPACED, Pace, WorkQueue
from clusterregistry.apiserver.registry.deletion import FOREGROUND, ORPHAN, DeleteOptions, Preconditions
from clusterregistry.apiserver.registry.errors import api_error
from clusterregistry.apiserver.registry.store import Store
from clusterregistry.apiserver.storage.errors import StorageError
from clusterregistry.apiserver.storage.interface import Event, KeyValue, Sink, Subscription
from clusterregistry.apiserver.storage.object_bytes import decoded, is_being_deleted, read_metadata, uid_of

Object = dict[str, Any]

MANAGER = "namespace-controller"
"""The field manager of its writes."""

FINALIZER = "kubernetes"
"""The finalizer in the spec of a namespace that stands for its content."""

_AT_ONCE = 4
"""Namespaces that are worked on at the same time."""

_DELETES_AT_ONCE = 20
"""Objects of one namespace that are deleted at the same time. Requests have their turn after so many."""

_LOOK_AGAIN = 30.0
"""Seconds until a namespace is looked at again whose objects have finalizers. Events come sooner."""

_REPORTED_FAILURE = 3
"""The failure of a namespace in a row that is logged: the first ones may be lost races."""

_LOAD_RETRY = 1.0
_MOST_ERRORS = 5
"""Errors that a condition names."""

_log = logging.getLogger(__name__)


class NamespaceController:
    """Looks after the namespaces of a store. It subscribes to events until ``close``."""

    def __init__(
        self,
        namespaces: Store,
        stores: Sequence[Store],
        *,
        writer_of: WriterOf,
        permanent: Sequence[str] = (),
        pace: Pace = UNPACED,
    ) -> None:
        """``stores`` are those of the namespaced resources, ``permanent`` the namespaces that always exist."""
        self._namespaces, self._stores, self._permanent = namespaces, stores, permanent
        self._writer_of = cache(writer_of)
        self._queue = WorkQueue[str](pause=pace.before_work)
        self._loaded = False
        self._emptied: set[str] = set()
        """Namespaces whose last objects are waited for."""
        self._subscriptions = [self._subscribe(namespaces, self._receive_namespaces)]
        self._subscriptions += [self._subscribe(store, partial(self._receive_objects, store)) for store in stores]

    def _subscribe(self, store: Store, sink: Sink) -> Subscription:
        return store.storage.subscribe(store.prefix, sink, interrupted=self._note_gap)

    def close(self) -> None:
        for subscription in self._subscriptions:
            subscription.close()

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to do, as far as events show."""
        return self._loaded and not self._queue.is_ready

    async def ensure_permanent(self) -> None:
        """Creates the namespaces that always exist, where they are missing. Raises APIError."""
        await asyncio.gather(*(self._create(name) for name in self._permanent if self._cached(name) is None))

    async def run(self) -> None:
        """Works until it is cancelled."""
        while True:
            await self.step()

    async def step(self) -> None:
        """Waits for work and does some of it."""
        if not self._loaded:
            await self._load()
            return
        await asyncio.gather(*map(self._do, await self._queue.take(_AT_ONCE)))

    # What to look at

    async def _load(self) -> None:
        self._loaded = True  # unless there is a gap meanwhile
        try:
            page = await self._namespaces.storage.list(self._namespaces.prefix)
            names = [self._namespaces.key_in(kv) for kv in page.items if is_being_deleted(kv)]
            for store in self._stores:
                names += [name for name in [each async for each in _names_in(store)] if self._cached(name) is None]
        except StorageError as error:
            self._loaded = False
            _log.warning("the namespaces cannot be read now; trying again: %s", error)
            await asyncio.sleep(_LOAD_RETRY)
        else:
            for name in {*names, *(each for each in self._permanent if self._cached(each) is None)}:
                self._queue.add_now(name)

    def _note_gap(self) -> None:
        self._loaded = False
        self._queue.add("")  # wakes the worker

    def _receive_namespaces(self, events: Sequence[Event]) -> None:
        for event in events:
            if event.current is None or is_being_deleted(event.current):
                self._queue.add(event.key[len(self._namespaces.prefix) :])

    def _receive_objects(self, store: Store, events: Sequence[Event]) -> None:
        for event in events:
            if event.current is None:
                if self._emptied and (name := _namespace_in(store, event.key)) in self._emptied:
                    self._note_removal(name)
            elif event.previous is None:
                name = _namespace_in(store, event.key)
                namespace = self._cached(name)
                if namespace is None or is_being_deleted(namespace):
                    self._queue.add(name)

    def _note_removal(self, name: str) -> None:
        """Has a namespace looked at when the cache shows its last object gone: there may be very many."""
        if not any(store.storage.count(f"{store.prefix}{name}/") for store in self._stores):
            self._queue.add(name)

    def _cached(self, name: str) -> KeyValue | None:
        return self._namespaces.storage.get_stale(self._namespaces.prefix + name)

    # What is done

    async def _do(self, name: str) -> None:
        try:
            await self._look_at(name)
        except (APIError, StorageError) as error:
            failures = self._queue.retry(name)
            level = logging.WARNING if failures == _REPORTED_FAILURE else logging.DEBUG
            _log.log(level, "the namespace %r cannot be brought to an end now; trying again: %s", name, error)
        except Exception:  # noqa: BLE001 - other namespaces must come to their end all the same
            _log.exception("bringing the namespace %r to an end failed", name)
            self._queue.retry(name)
        else:
            self._queue.done(name)

    async def _look_at(self, name: str) -> None:
        if not name:
            return
        self._emptied.add(name)  # before anything is listed: the end of the last object has it looked at again
        content = await self._content(name)  # before the namespace is read: see the third rule above
        try:
            namespace = await self._namespaces.get(name)
        except APIError as error:
            if not _has_code(error, HTTPStatus.NOT_FOUND):
                raise
            await self._clean_up(name, content)
        else:
            if is_being_deleted(namespace):
                await self._end(name, decoded(namespace), content)
            else:
                self._emptied.discard(name)

    async def _clean_up(self, name: str, content: _Content) -> None:
        """Looks after a namespace that does not exist: it is created, or what is left of it is deleted."""
        self._emptied.discard(name)
        if name in self._permanent:
            await self._create(name)
        elif content:
            _log.warning("%d objects were created in the namespace %r when it was deleted", len(content), name)
            if errors := await content.delete():
                raise errors[0]

    async def _create(self, name: str) -> None:
        resource = self._namespaces.resource
        obj = {"apiVersion": resource.storage_version, "kind": resource.kind, "metadata": {"name": name}}
        try:
            await self._writer_of(self._namespaces, "").create(obj, manager=MANAGER)
        except APIError as error:
            if error.reason != "AlreadyExists":
                raise

    async def _end(self, name: str, namespace: Object, content: _Content) -> None:
        """Deletes what is in a namespace, and takes the finalizer away once nothing is left."""
        errors = await content.delete()
        remaining = await self._content(name)
        finalizers = await remaining.finalizers()
        if remaining or errors or _has_other_finalizers(namespace):
            wanted = list(conditions(remaining.counts(), finalizers, errors))
            await self._report(name, wanted, uid=namespace["metadata"]["uid"])
        if errors:
            raise errors[0]
        if finalizers:
            self._queue.add_after(name, _LOOK_AGAIN)
            return
        if remaining:  # created meanwhile
            self._queue.add(name)
            return
        self._emptied.discard(name)
        if FINALIZER in namespace["spec"].get("finalizers", ()):
            await self._change("finalize", name, uid=namespace["metadata"]["uid"], change=_finalize)

    async def _report(self, name: str, wanted: Sequence[Object], *, uid: str) -> None:
        """Writes the conditions into the status, where they have changed."""

        def report(namespace: Object) -> None:
            status = namespace.get("status", {})
            namespace["status"] = {**status, "conditions": updated(status.get("conditions", []), wanted)}

        await self._change("status", name, uid=uid, change=report)

    async def _change(self, subresource: str, name: str, *, uid: str, change: Callable[[Object], None]) -> None:
        """Changes a namespace that is being deleted, unless it is gone."""

        def changed(namespace: Object) -> Object:
            if namespace["metadata"]["uid"] == uid:
                change(namespace)
            return namespace

        try:
            await self._writer_of(self._namespaces, subresource).change(name, changed, manager=MANAGER)
        except APIError as error:
            if not _has_code(error, HTTPStatus.NOT_FOUND):
                raise

    async def _content(self, name: str) -> _Content:
        """What is in a namespace as of now. Raises APIError."""
        content = _Content()
        for store in self._stores:
            prefix = f"{store.prefix}{name}/"
            try:
                page = await store.storage.list(prefix)
            except StorageError as error:
                raise api_error(error) from error
            if page.items:
                content.objects[store] = page.items
            if unreadable := [key for key in store.corrupt if key.startswith(prefix)]:
                content.unreadable[store] = unreadable
        return content


@dataclass(slots=True)
class _Content:
    """The objects of one namespace."""

    objects: dict[Store, Sequence[KeyValue]] = field(default_factory=dict)
    unreadable: dict[Store, Sequence[str]] = field(default_factory=dict)
    """Keys whose values cannot be read."""

    def __len__(self) -> int:
        return sum(map(len, self.objects.values())) + sum(map(len, self.unreadable.values()))

    def counts(self) -> Counter[Store]:
        counts = Counter({store: len(items) for store, items in self.objects.items()})
        counts.update({store: len(keys) for store, keys in self.unreadable.items()})
        return counts

    async def finalizers(self) -> Counter[str]:
        """How many objects that are being deleted each finalizer holds."""
        counts: Counter[str] = Counter()
        async for _, kvs in self._slices():
            for kv in kvs:
                if is_being_deleted(kv):
                    counts.update(_finalizers(kv))
        return counts

    async def delete(self) -> list[APIError]:
        """Deletes all objects, each with its finalizers respected, and returns the errors."""
        errors: list[APIError] = []
        async for store, kvs in self._slices():
            errors += await _all(
                _delete(store, store.key_in(kv), Preconditions(uid=uid_of(kv)))
                for kv in kvs
                # One that is being deleted waits for its finalizers, which garbage collection does not have here.
                if not is_being_deleted(kv) or not {ORPHAN, FOREGROUND}.isdisjoint(_finalizers(kv))
            )
        for store, keys in self.unreadable.items():
            errors += await _all(_delete(store, key.removeprefix(store.prefix), Preconditions()) for key in keys)
        return errors

    async def _slices(self) -> AsyncIterator[tuple[Store, Sequence[KeyValue]]]:
        """Some objects after the other, with a pause for requests in between."""
        for store, items in self.objects.items():
            for start in range(0, len(items), _DELETES_AT_ONCE):
                yield store, items[start : start + _DELETES_AT_ONCE]
                await asyncio.sleep(0)


async def _all(work: Iterable[Awaitable[None]]) -> list[APIError]:
    """Awaits everything, and returns the errors of the API."""
    results = await asyncio.gather(*work, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException) and not isinstance(result, APIError):
            raise result
    return [result for result in results if isinstance(result, APIError)]


async def _delete(store: Store, key: str, preconditions: Preconditions) -> None:
    # As kube-controller-manager: garbage collection does not keep an object back in a namespace that ends.
    options = DeleteOptions(propagation_policy="Background", preconditions=preconditions)
    try:
        await store.delete(key, options)
    except APIError as error:
        if not _has_code(error, HTTPStatus.NOT_FOUND):
            raise


async def _names_in(store: Store) -> AsyncIterator[str]:
    """The namespaces that have objects in a store, as the cache has them: one lookup for each."""
    after = ""
    while True:
        page = await store.storage.list(store.prefix, revision=store.storage.revision, after=after, limit=1)
        if not page.items:
            return
        name = _namespace_in(store, page.items[0].key)
        yield name
        after = f"{store.prefix}{name}0"  # the first text after all that begin with the name and a slash


def _namespace_in(store: Store, key: str) -> str:
    return key[len(store.prefix) :].partition("/")[0]


def _finalizers(kv: KeyValue) -> Sequence[str]:
    finalizers: Sequence[str] = read_metadata(kv).get("finalizers", ())
    return finalizers


def _has_other_finalizers(namespace: Object) -> bool:
    """Whether a namespace stays when its content is gone."""
    others = [each for each in namespace["spec"].get("finalizers", ()) if each != FINALIZER]
    return bool(others or namespace["metadata"].get("finalizers"))


def _finalize(namespace: Object) -> None:
    left = [each for each in namespace["spec"].get("finalizers", ()) if each != FINALIZER]
    namespace["spec"] = {"finalizers": left} if left else {}


def _has_code(error: Exception, code: HTTPStatus) -> bool:
    return isinstance(error, APIError) and error.code == code


# The conditions of a namespace that is being deleted, in kube-controller-manager's words and order

_FINE = {
    "NamespaceDeletionDiscoveryFailure": ("ResourcesDiscovered", "All resources successfully discovered"),
    "NamespaceDeletionGroupVersionParsingFailure": (
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    "NamespaceDeletionContentFailure": (
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    "NamespaceContentRemaining": ("ContentRemoved", "All content successfully removed"),
    "NamespaceFinalizersRemaining": ("ContentHasNoFinalizers", "All content-preserving finalizers finished"),
}


def conditions(
    remaining: Mapping[Store, int], finalizers: Mapping[str, int], errors: Sequence[APIError]
) -> Iterator[Object]:
    """The conditions after an attempt to delete everything. The server itself knows all resources and versions."""
    wrong: dict[str, tuple[str, str]] = {}
    if errors:
        named = ", ".join(sorted({str(error) for error in errors})[:_MOST_ERRORS])
        detail = f"Failed to delete all resource types, {len(errors)} remaining: {named}"
        wrong["NamespaceDeletionContentFailure"] = ("ContentDeletionFailed", detail)
    if remaining:
        named = _joined(
            f"{store.resource.plural}.{store.resource.group} has {count} resource instances"
            for store, count in remaining.items()
        )
        wrong["NamespaceContentRemaining"] = ("SomeResourcesRemain", f"Some resources are remaining: {named}")
    if finalizers:
        named = _joined(f"{finalizer} in {count} resource instances" for finalizer, count in finalizers.items())
        detail = f"Some content in the namespace has finalizers remaining: {named}"
        wrong["NamespaceFinalizersRemaining"] = ("SomeFinalizersRemain", detail)
    for kind, fine in _FINE.items():
        reason, message = wrong.get(kind, fine)
        yield {"type": kind, "status": "True" if kind in wrong else "False", "reason": reason, "message": message}


def updated(present: Sequence[Object], wanted: Iterable[Object]) -> list[Object]:
    """The conditions with the wanted ones; one that differs, or is new, has changed now."""
    kept = {each.get("type"): each for each in present}
    for each in wanted:
        before = kept.get(each["type"], {})
        if {**before, **each} != before:
            kept[each["type"]] = {**each, "lastTransitionTime": times.present()}
    return list(kept.values())


def _joined(parts: Iterable[str]) -> str:
    return ", ".join(sorted(parts))
