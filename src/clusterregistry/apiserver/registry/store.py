"""The generic registry: prepare, validate, write. One instance a resource.

What all kinds share is done here as kube-apiserver's generic registry does it: metadata that only the
server sets, generation, optimistic locking, finalizers, dry runs. A ``Strategy`` adds what is
particular to a kind. ``refusals`` has the errors that a client is told, ``interpreting`` says what storage errors mean
to it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any, TypeVar

from clusterregistry.apimachinery.fieldmanager.managed_fields import differ_only_in_time
from clusterregistry.apimachinery.meta import errors, object_meta_validation
from clusterregistry.apimachinery.meta.field_errors import FieldError
from clusterregistry.apimachinery.meta.integers import parse_uint
from clusterregistry.apimachinery.meta.names import generate_name
from clusterregistry.apiserver.registry import deletion
from clusterregistry.apiserver.registry.deletion import DeleteOptions, Preconditions
from clusterregistry.apiserver.registry.errors import LARGEST, ResourceErrors, api_error
from clusterregistry.apiserver.registry.label_index import LabelIndex
from clusterregistry.apiserver.registry.resource import Resource
from clusterregistry.apiserver.registry.strategy import Admit, Strategy
from clusterregistry.apiserver.registry.uid import new_uid
from clusterregistry.apiserver.registry.worker_pool import LARGE, run_in_worker
from clusterregistry.apiserver.storage import interface
from clusterregistry.apiserver.storage.cacher.corrupt_objects import Finding
from clusterregistry.apiserver.storage.errors import (
    CorruptObject,
    KeyExists,
    KeyNotFound,
    RevisionConflict,
    StorageError,
)
from clusterregistry.apiserver.storage.interface import KeyValue, Storage
from clusterregistry.apiserver.storage.object_bytes import Object, decoded, presented, to_served, to_stored

Change = Callable[[Object | None], Object]
"""Makes the wanted object from the present one (None: there is none). May be called again after a conflict.

The result's top level and metadata are the store's to change; the parts below may be shared.
"""

BeforeCreate = Callable[[], Awaitable[None]]
"""Called when an update turns out to be a create; raises what is to keep it from happening."""

Warn = Callable[[str], None]
TakeBack = Callable[[], None]
"""Takes back the warnings of an attempt to write that came to nothing; who is answered hears of the last one alone."""

T = TypeVar("T")

_GENERATE_ATTEMPTS = 8
_DELETES_AT_ONCE = 100

_ATTEMPTS = 1000
"""How often a write is tried that meets another one each time.

With as many writers of one object as are let in at once (200) the last has its turn after so many rounds. More of them
say that memory and storage do not agree, and they would never end.
"""


@dataclass(frozen=True, slots=True)
class Written:
    """An object after a write, and whether the write made it."""

    kv: KeyValue
    created: bool = False


@dataclass(frozen=True, slots=True)
class Deleted:
    """An object after a delete: removed (``kv`` is its last state), or waiting for its finalizers.

    The uid of what could not be read is not known: it is empty.
    """

    kv: KeyValue
    removed: bool
    uid: str


class Store:
    """The objects of one resource."""

    def __init__(
        self,
        resource: Resource,
        storage: Storage,
        *,
        now: Callable[[], str],
        corrupt: Mapping[str, Finding] | None = None,
    ) -> None:
        """``corrupt`` are the keys that the storage has set aside, as it keeps them."""
        self.resource = resource
        self.storage = storage
        self.corrupt: Mapping[str, Finding] = {} if corrupt is None else corrupt
        self.prefix = interface.prefix_of(resource.group, resource.plural)
        self.labels = LabelIndex(storage, self.prefix)
        self._refusals = ResourceErrors(resource, self.prefix)
        self._now = now

    # Reading

    def get_cached(self, name: str) -> KeyValue | None:
        """The object as of now, if that is known without waiting; None says nothing, and ``get`` knows."""
        return self.storage.get_cached(self.prefix + name)

    async def get(self, name: str, *, any_version: bool = False) -> KeyValue:
        """The object as of now, or with ``any_version`` as this server knows it, storage or no storage.

        Raises 404, and 409 for what is stored and cannot be read.
        """
        kv = await self._stored(self._known(name) if any_version else self.storage.get(self.prefix + name))
        if kv is None:
            raise self.not_found(name)
        return kv

    async def _known(self, name: str) -> KeyValue | None:
        found = self.corrupt.get(self.prefix + name)
        if found:
            raise CorruptObject(self.prefix + name, revision=found.revision, reason=found.reason)
        page = await self.storage.list(self.prefix + name, revision=self.storage.revision, limit=1)
        return page.items[0] if page.items and page.items[0].key == self.prefix + name else None

    async def _present(self, name: str) -> KeyValue | CorruptObject | None:
        """What is stored under a name as of now; an error that is not raised where it cannot be read."""
        try:
            return await self.storage.get(self.prefix + name)
        except CorruptObject as error:
            return error
        except StorageError as error:
            raise api_error(error) from error

    def count(self) -> int:
        """How many objects there are."""
        return self.storage.count(self.prefix)

    def problem(self) -> str:
        """Why the storage cannot answer now; empty when it can."""
        return self.storage.problem()

    # Creating

    async def create(
        self, obj: Object, *, dry_run: bool, warn: Warn, admit: Admit | None = None, size: int = 0
    ) -> KeyValue:
        """Adds the object under its name, or under one made from generateName. ``size`` is that of what was sent.

        Raises 400, 409, 413, 422 and what ``admit`` raises.
        """
        if obj["metadata"].get("resourceVersion", "0") != "0":
            raise errors.bad_request("resourceVersion should not be set on objects to be created")
        generated = not obj["metadata"].get("name") and bool(obj["metadata"].get("generateName"))
        attempts = _GENERATE_ATTEMPTS if generated else 1
        for attempt in range(attempts):
            if generated:
                obj["metadata"]["name"] = generate_name(obj["metadata"]["generateName"])
            self._prepare_for_create(obj)
            if admit:
                await admit(obj, None)
            if size <= LARGE:
                self._check_new(obj, warn=warn)
            else:
                await run_in_worker(partial(self._check_new, obj, warn=warn), size=size)
            kv = await self._insert(obj, dry_run=dry_run)
            if kv is not None:
                return kv
            if attempt == attempts - 1:
                raise await self._exists(obj["metadata"]["name"])
        raise AssertionError  # the loop above always returns or raises

    def _prepare_for_create(self, obj: Object) -> None:
        metadata = obj["metadata"]
        for field in ("namespace", "selfLink", "resourceVersion", "deletionTimestamp", "deletionGracePeriodSeconds"):
            metadata.pop(field, None)
        metadata["uid"] = new_uid()
        metadata["creationTimestamp"] = self._now()
        if not self.resource.native:
            metadata["generation"] = 1
        self.resource.strategy.prepare_for_create(obj)

    def _check_new(self, obj: Object, *, warn: Warn) -> None:
        metadata, strategy = obj["metadata"], self.resource.strategy
        common = object_meta_validation.validate_create(metadata, self.resource.names)
        self._refuse(metadata.get("name", ""), common + self._finalizer_errors(metadata) + strategy.validate(obj))
        self._warn(obj, None, strategy=strategy, warn=warn)

    def _finalizer_errors(self, metadata: dict[str, Any]) -> list[FieldError]:
        return object_meta_validation.validate_qualified_finalizers(metadata) if self.resource.native else []

    async def _insert(self, obj: Object, *, dry_run: bool) -> KeyValue | None:
        """The stored object; None when the name is taken."""
        key, value = self.prefix + obj["metadata"]["name"], to_stored(obj)
        if len(value) > LARGEST:
            raise self._refusals.too_large(len(value))
        if dry_run:
            return None if await self._present(obj["metadata"]["name"]) else presented(KeyValue(key, value, 0))
        try:
            revision = await self.storage.create(key, value)
        except KeyExists:
            return None
        except StorageError as error:
            raise api_error(error) from error
        await self._settle(revision)
        return self._written(key, value, revision)

    def _written(self, key: str, value: bytes, revision: int) -> KeyValue:
        """An object that was written, as it is served: the one that memory has, if it has heard of it."""
        known = self.storage.get_stale(key)
        return known if known and known.revision == revision else presented(KeyValue(key, value, revision))

    async def _settle(self, revision: int) -> None:
        """Has a write seen here before it is answered, where the server itself acts on its objects.

        A store that others write to tells of one's own writes a little later. It stays written when that takes long.
        """
        if self.resource.read_your_writes:
            with contextlib.suppress(StorageError):
                await self.storage.wait_for(revision)

    async def _exists(self, name: str) -> errors.APIError:
        kv = await self._present(name)
        if isinstance(kv, CorruptObject):
            return self._refusals.already_exists(name, being_deleted=False, corrupt=kv)
        being_deleted = kv is not None and "deletionTimestamp" in decoded(kv)["metadata"]
        return self._refusals.already_exists(name, being_deleted=being_deleted)

    # Updating

    async def update(  # noqa: PLR0913 - all but two by keyword
        self,
        name: str,
        change: Change,
        *,
        strategy: Strategy,
        dry_run: bool,
        warn: Warn,
        take_back: TakeBack = lambda: None,
        create: bool = False,
        before_create: BeforeCreate | None = None,
        admit: Admit | None = None,
        size: int = 0,
    ) -> Written:
        """Replaces the object by what ``change`` makes of it. ``size`` is that of what was sent.

        Raises 404, 409, 413, 422 and what ``change`` and ``admit`` raise.

        What cannot be read is not replaced: nobody would know what was lost. It can be deleted.

        An object that is not there is made where the strategy allows that, or where ``create`` says so, unless
        ``before_create`` raises something.

        A write that changes nothing keeps the resource version. Another writer in between is no error
        unless the object names a resource version: the change is then made again on the newer object. ``take_back`` is
        called before each attempt, for what ``warn`` and ``change`` have told of the one before.
        """
        remembered = None if dry_run else self._remembered(name)
        for _ in range(_ATTEMPTS):
            take_back()
            kv = remembered or self.get_cached(name) or await self._stored(self.storage.get(self.prefix + name))
            if kv is None:
                if not (create or strategy.allow_create_on_update):
                    raise self.not_found(name)
                made = await self._create_on_update(
                    name, change, dry_run=dry_run, warn=warn, before=before_create, admit=admit, size=size
                )
                if made is not None:
                    return Written(made, created=True)
                continue
            try:
                obj = await self._changed(kv, change, strategy=strategy, warn=warn, admit=admit, size=size)
                written = await self._replace(obj, kv, dry_run=dry_run)
            except errors.APIError as error:
                # A write that the storage gave no answer to may have been done: it is not tried again.
                if remembered is None or error.code == HTTPStatus.SERVICE_UNAVAILABLE:
                    raise
                written = None  # the object may have been changed so that there is nothing wrong any longer
            # That nothing has to be written is certain only of the present object.
            if written is not None and (remembered is None or written is not kv):
                return Written(written)
            remembered = None
        raise self._refusals.contended(name)

    def _remembered(self, name: str) -> KeyValue | None:
        """The object to try a write on first, without a read, where reading takes longer than a look into memory.

        As kube-apiserver does: nearly always nobody else has written meanwhile, and if so, the storage says it.
        """
        return None if self.storage.sole_writer else self.storage.get_stale(self.prefix + name)

    async def _changed(  # noqa: PLR0913 - all but two by keyword
        self, kv: KeyValue, change: Change, *, strategy: Strategy, warn: Warn, admit: Admit | None, size: int
    ) -> Object:
        """What is to be written in place of an object. Raises what ``update`` raises, but for 404."""
        size += len(kv.value)
        # Small ones without another coroutine: heartbeats come this way.
        if size <= LARGE:
            obj, old = self._wanted(kv, change, strategy=strategy)
        else:
            obj, old = await run_in_worker(partial(self._wanted, kv, change, strategy=strategy), size=size)
        if admit:
            await admit(obj, old)
        if size <= LARGE:
            self._check_changed(obj, old, strategy=strategy, warn=warn)
        else:
            check = partial(self._check_changed, obj, old, strategy=strategy, warn=warn)
            await run_in_worker(check, size=size)
        return obj

    def _wanted(self, kv: KeyValue, change: Change, *, strategy: Strategy) -> tuple[Object, Object]:
        """What a change makes of an object, prepared, and the object as it is."""
        old = decoded(kv)
        obj = change(old)
        self._check_version(obj, kv)
        self._prepare_for_update(obj, old, strategy=strategy)
        return obj, old

    async def _create_on_update(  # noqa: PLR0913 - all but two by keyword
        self,
        name: str,
        change: Change,
        *,
        dry_run: bool,
        warn: Warn,
        before: BeforeCreate | None,
        admit: Admit | None,
        size: int,
    ) -> KeyValue | None:
        """The object that was made; None when another one was made first."""
        obj = await run_in_worker(partial(change, None), size=size)
        metadata = obj["metadata"]
        if metadata.get("uid"):
            raise self._refusals.another_uid(name, wanted=metadata["uid"], found="")
        if metadata.get("resourceVersion", "0") != "0":
            raise self._refusals.modified(name)
        self._prepare_for_create(obj)
        if admit:
            await admit(obj, None)
        await run_in_worker(partial(self._check_new, obj, warn=warn), size=size)
        if before is not None:
            await before()
        return await self._insert(obj, dry_run=dry_run)

    def _check_version(self, obj: Object, kv: KeyValue) -> None:
        wanted = obj["metadata"].get("resourceVersion", "0")
        if wanted == "0":
            if not self.resource.strategy.allow_unconditional_update:
                raise self._refusals.missing_version(obj["metadata"].get("name", ""))
        elif wanted != str(kv.revision):
            check_resource_version(wanted)
            raise self._refusals.modified(obj["metadata"].get("name", ""))

    def _prepare_for_update(self, obj: Object, old: Object, *, strategy: Strategy) -> None:
        metadata, before = obj["metadata"], old["metadata"]
        for field in ("namespace", "selfLink", "resourceVersion"):
            metadata.pop(field, None)
        for field in ("creationTimestamp", "generation", "deletionTimestamp"):
            if field in before:
                metadata[field] = before[field]
        for field in ("uid", "deletionGracePeriodSeconds"):
            if field in before:
                metadata.setdefault(field, before[field])
        strategy.prepare_for_update(obj, old)
        if not self.resource.native and _desired(obj) != _desired(old):
            obj["metadata"]["generation"] = before.get("generation", 0) + 1

    def _check_changed(self, obj: Object, old: Object, *, strategy: Strategy, warn: Warn) -> None:
        self._refuse(old["metadata"]["name"], self._update_errors(obj, old, strategy))
        self._warn(obj, old, strategy=strategy, warn=warn)
        _keep_idle_times(obj, old)

    def _update_errors(self, obj: Object, old: Object, strategy: Strategy) -> list[FieldError]:
        """As kube-apiserver does: registry and strategy both validate metadata, and the answer has causes twice."""
        metadata = obj["metadata"]
        common, changed = object_meta_validation.validate_update(metadata, old["metadata"], self.resource.names)
        particular = strategy.validate_update(obj, old)
        if not self.resource.native:
            return common + changed + changed + particular
        finalizers = self._finalizer_errors(metadata)
        return common + changed + common + finalizers + particular + changed + finalizers

    async def _replace(self, obj: Object, kv: KeyValue, *, dry_run: bool, bounded: bool = True) -> KeyValue | None:
        """The object after the write; None when another write came first. Raises 413 unless any size will do."""
        metadata = obj["metadata"]
        value = to_stored(obj)
        if to_served(value, kv.revision) == kv.value:
            return kv
        if bounded and len(value) > LARGEST and len(value) > len(kv.value):  # too large from before: it may shrink
            raise self._refusals.too_large(len(value))
        if dry_run:
            return presented(KeyValue(kv.key, value, kv.revision))
        released = "deletionTimestamp" in metadata and not metadata.get("finalizers")
        try:
            if released:
                await self._settle(await self.storage.delete(kv.key, expected=kv.revision))
            else:
                revision = await self.storage.update(kv.key, value, expected=kv.revision)
                await self._settle(revision)
        except (RevisionConflict, KeyNotFound):
            return None
        except StorageError as error:
            raise api_error(error) from error
        if released:
            # The last finalizer is gone. The answer shows that, under the revision that was there.
            return presented(KeyValue(kv.key, value, kv.revision))
        return self._written(kv.key, value, revision)

    # Deleting

    async def delete(self, name: str, options: DeleteOptions) -> Deleted:
        """Removes the object, or marks it while finalizers hold it. Raises 404 and 409.

        What cannot be read is removed too, and with the same right. kube-apiserver wants an option and a verb of their
        own for that, since there a key that cannot be decrypted may be readable again tomorrow; here it cannot.
        """
        remembered = None if options.dry_run else self._remembered(name)
        for _ in range(_ATTEMPTS):
            kv = remembered or self.get_cached(name) or await self._present(name)
            if kv is None:
                raise self.not_found(name)
            if isinstance(kv, CorruptObject):
                if deleted := await self._delete_corrupt(name, kv, options):
                    return deleted
                continue
            obj = decoded(kv)
            try:
                self._check_preconditions(obj, options.preconditions)
            except errors.APIError:
                if remembered is None:
                    raise
                remembered = None
                continue
            held_by = obj["metadata"].get("finalizers", [])
            finalizers = deletion.finalizers_after(held_by, options)
            if finalizers:
                marked = deletion.marked(obj, finalizers=finalizers, now=self._now())
                waiting = await self._replace(marked, kv, dry_run=options.dry_run, bounded=False)
                # As for an update: that nothing has to be written is certain only of the present object.
                if waiting is not None and (remembered is None or waiting is not kv):
                    return Deleted(waiting, removed=False, uid=obj["metadata"]["uid"])
            elif options.dry_run or await self._remove(kv):
                return Deleted(kv, removed=True, uid=obj["metadata"]["uid"])
            remembered = None
        raise self._refusals.contended(name)

    async def _delete_corrupt(self, name: str, found: CorruptObject, options: DeleteOptions) -> Deleted | None:
        """None when another write came first. Of preconditions the revision is known. Finalizers are not."""
        metadata = {"uid": "", "resourceVersion": str(found.revision)}
        if unmet := deletion.unmet(metadata, options.preconditions):
            raise self._refusals.unmet_precondition(name, unmet)
        kv = KeyValue(found.key, b"", found.revision)
        if options.dry_run or await self._remove(kv):
            return Deleted(kv, removed=True, uid="")
        return None

    async def delete_all(self, kvs: Iterable[KeyValue], options: DeleteOptions) -> None:
        """Deletes each of the objects; one that is gone already is fine."""
        names = [kv.key.removeprefix(self.prefix) for kv in kvs]
        for start in range(0, len(names), _DELETES_AT_ONCE):
            batch = names[start : start + _DELETES_AT_ONCE]
            results = await asyncio.gather(*(self.delete(name, options) for name in batch), return_exceptions=True)
            for result in results:
                gone = isinstance(result, errors.APIError) and result.reason == "NotFound"
                if isinstance(result, BaseException) and not gone:
                    raise result

    async def _remove(self, kv: KeyValue) -> bool:
        try:
            await self._settle(await self.storage.delete(kv.key, expected=kv.revision))
        except (RevisionConflict, KeyNotFound):
            return False
        except StorageError as error:
            raise api_error(error) from error
        return True

    def _check_preconditions(self, obj: Object, wanted: Preconditions) -> None:
        if unmet := deletion.unmet(obj["metadata"], wanted):
            raise self._refusals.unmet_precondition(obj["metadata"]["name"], unmet)

    # Refusing

    def not_found(self, name: str) -> errors.APIError:
        return self._refusals.not_found(name)

    def check_uid(self, obj: Object, old: Object | None) -> None:
        """A PUT whose object names another uid than the stored one is meant for another object: 409."""
        uid = obj["metadata"].get("uid")
        if uid and old and uid != old["metadata"]["uid"]:
            raise self._refusals.another_uid(old["metadata"]["name"], wanted=uid, found=old["metadata"]["uid"])

    def _refuse(self, name: str, wrong: list[FieldError]) -> None:
        if wrong:
            raise self._refusals.invalid(name, wrong)

    def _warn(self, obj: Object, old: Object | None, *, strategy: Strategy, warn: Warn) -> None:
        for text in object_meta_validation.finalizer_warnings(obj["metadata"], old and old["metadata"]):
            warn(text)
        for text in strategy.warnings(obj, old):
            warn(text)

    async def _stored(self, reading: Awaitable[T]) -> T:
        try:
            return await reading
        except CorruptObject as error:
            raise self._refusals.corrupt(error.key.removeprefix(self.prefix), error) from error
        except StorageError as error:
            raise api_error(error) from error


def _desired(obj: Object) -> Object:
    """What counts for the generation: everything but metadata and status."""
    return {**obj, "metadata": None, "status": None}


def _keep_idle_times(obj: Object, old: Object) -> None:
    """When nothing but the times of managed fields would change, they stay: such a write is none."""
    # Nearly every write changes something, and that is found out sooner than what the times are.
    metadata, before = obj["metadata"], old["metadata"]
    if obj != {**old, "metadata": metadata}:
        return
    kept = {name: before[name] for name in ("managedFields", "resourceVersion") if name in before}
    if {**metadata, **kept} == before and differ_only_in_time(
        metadata.get("managedFields"), before.get("managedFields")
    ):
        metadata["managedFields"] = before["managedFields"]


def check_resource_version(resource_version: str) -> None:
    """A resource version is a number. Raises 400."""
    try:
        parse_uint(resource_version)
    except ValueError as error:
        raise errors.bad_request(str(error)) from None
