"""The store of one resource: reads, creates, updates and deletes its objects, as k8s.io/apiserver's generic registry.

The life of a write, from top to bottom:

1. ``create``, ``update`` or ``delete`` gets what an endpoint decoded: an object, an ``UpdateRequest`` with a function
   that changes an object, or ``DeleteOptions``.
2. ``guaranteed_update`` reads the stored object and hands it to an attempt. The attempt answers with the object that
   is to be stored, or None to remove the key.
3. The attempt prepares the object (``object_rules`` for all kinds, the ``Strategy`` for the kind), has it admitted,
   and validates it. Objects above 32 KiB are worked on in a thread (``worker_pool``).
4. The object is encoded (``storage.object_bytes``) and written, on condition that the stored one is still at the
   revision that was read. If another write came first, the attempt is repeated on the newer object. A value of a
   unique field is looked up first, and guarded until the write (``unique_fields``).
5. A write that changes nothing is not written and keeps its resource version. A dry run stops before the write.

A create has no stored object to read: it goes from step 3 straight to the write. ``errors`` turns storage errors into
API errors.

An object is named by its key: ``NAME``, or ``NAMESPACE/NAME`` where the resource is namespaced, as in client-go's
caches. In the storage the key follows the prefix of the resource.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus

from clusterregistry.apimachinery.meta import errors
from clusterregistry.apimachinery.meta.errors import APIError
from clusterregistry.apimachinery.meta.integers import parse_uint
from clusterregistry.apimachinery.meta.names import generate_name
from clusterregistry.apiserver.registry import deletion, object_rules
from clusterregistry.apiserver.registry.deletion import DeleteOptions
from clusterregistry.apiserver.registry.errors import LARGEST, ResourceErrors, api_error
from clusterregistry.apiserver.registry.group_index import GroupIndex
from clusterregistry.apiserver.registry.resource import Resource, Version
from clusterregistry.apiserver.registry.selector_index import SelectorIndex
from clusterregistry.apiserver.registry.strategy import Admit, Strategy
from clusterregistry.apiserver.registry.unique_fields import DuplicateValues, UniqueFields
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
from clusterregistry.apiserver.storage.object_bytes import (
    Object,
    decoded,
    decoded_to_read,
    presented,
    to_served,
    to_stored,
)

Change = Callable[[Object | None], Object]
"""Makes the wanted object from the stored one (None: there is none). Called again after a conflict.

The store may change the top level and the metadata of the result; the parts below may be shared.
"""

Warn = Callable[[str], None]

CheckNamespace = Callable[[Object, str], Awaitable[None]]
"""Takes an object that is to be created in its namespace, and the group of the request.

Raises 404 and 403 where the namespace takes none.
"""

Stored = KeyValue | CorruptObject | None
"""What is stored under a key: an object, a value that cannot be read, or nothing."""

Attempt = Callable[[Stored], Awaitable[Object | None]]
"""Makes the object to store in place of the stored one; None removes the key. Raises APIError."""

CheckStored = Callable[[Stored], Awaitable[None]]
"""Takes what is stored under the key, in each attempt. Raises APIError where the user may not write that."""

_GENERATE_ATTEMPTS = 8
_DELETES_AT_ONCE = 100

_ATTEMPTS = 1000
"""How often a write is attempted that meets another one each time.

As many writers of one object as are served at once (200) are all done after so many rounds. More rounds mean that cache
and storage do not agree, and would never end.
"""


@dataclass(slots=True, kw_only=True)
class UpdateRequest:
    """A PUT, patch or apply of one object."""

    change: Change
    strategy: Strategy
    dry_run: bool = False
    warn: Warn
    discard_warnings: Callable[[], None] = lambda: None
    """Discards the warnings of an attempt that was not written: the answer has those of the last attempt alone."""
    check_stored: CheckStored | None = None
    """Called before anything else; None: the user may write whatever is stored."""
    admit: Admit | None = None
    allow_create: bool = False
    """Whether an object that does not exist is created, also where the strategy does not allow that."""
    before_create: Callable[[], Awaitable[None]] | None = None
    """Called before an update creates an object; raises APIError to prevent that."""
    size: int = 0
    """Bytes of the request's body."""


@dataclass(frozen=True, slots=True)
class Written:
    """An object after a write, and whether the write created it."""

    kv: KeyValue
    created: bool = False


@dataclass(frozen=True, slots=True)
class Deleted:
    """An object after a delete: removed (``kv`` is its last state), or waiting for its finalizers.

    The uid of an object that cannot be read is empty.
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
        """``corrupt`` are the keys whose values cannot be read; the cache updates the mapping."""
        self.resource = resource
        self.strategy = resource.strategy
        self.storage = storage
        self.corrupt: Mapping[str, Finding] = {} if corrupt is None else corrupt
        self.prefix = interface.prefix_of(resource.group, resource.plural)
        self.index = SelectorIndex(storage, self.prefix, resource.selectable_fields)
        self.unique = UniqueFields(resource, storage, prefix=self.prefix)
        self.check_namespace: CheckNamespace | None = None
        """Called before an object of a namespaced resource is created; None: every namespace exists."""
        self.groups: GroupIndex | None = None
        """The groups of the objects; None: nothing groups them, or these groups are not served."""
        self._errors = ResourceErrors(resource, self.prefix)
        self._now = now

    def in_version(self, version: Version) -> Store:
        """The same store for requests in a version with another group or strategy: errors name that group."""
        if version.group is None and version.strategy is None:
            return self
        other = copy.copy(self)
        other.strategy = self.resource.strategy_of(version)
        group = self.resource.group_of(version)
        other._errors = ResourceErrors(self.resource, self.prefix, group=group)  # noqa: SLF001 - of this class
        return other

    def key_of(self, metadata: Object) -> str:
        """The key of an object with this metadata."""
        name: str = metadata["name"]
        return f"{metadata['namespace']}/{name}" if self.resource.namespaced else name

    def key_in(self, kv: KeyValue) -> str:
        """The key of a stored object."""
        return kv.key[len(self.prefix) :]

    # Reads

    def get_cached(self, key: str) -> KeyValue | None:
        """The object as of now, if the cache has it; None says nothing about the storage."""
        return self.storage.get_cached(self.prefix + key)

    async def get(self, key: str, *, any_version: bool = False) -> KeyValue:
        """The object as of now, or with ``any_version`` as the cache has it, even if the storage does not answer.

        Raises 404, and 409 for an object that cannot be read.
        """
        kv = self._cached(key) if any_version else await self._read(key)
        if kv is None:
            raise self.not_found(key)
        if isinstance(kv, CorruptObject):
            raise self._errors.corrupt(key, kv)
        return kv

    def _cached(self, key: str) -> Stored:
        stored_under = self.prefix + key
        if found := self.corrupt.get(stored_under):
            return CorruptObject(stored_under, revision=found.revision, reason=found.reason)
        return self.storage.get_stale(stored_under)

    async def _read(self, key: str) -> Stored:
        try:
            return await self.storage.get(self.prefix + key)
        except CorruptObject as error:
            return error
        except StorageError as error:
            raise api_error(error) from error

    def count(self) -> int:
        """The number of objects."""
        return self.storage.count(self.prefix)

    def problem(self) -> str:
        """Why the storage cannot answer now; empty when it can."""
        return self.storage.problem()

    # Create

    async def create(
        self, obj: Object, *, dry_run: bool, warn: Warn, admit: Admit | None = None, size: int = 0
    ) -> KeyValue:
        """Adds the object under its name, or under one generated from generateName. ``size`` is that of the body.

        Raises 400, 409, 413, 422 and what ``admit`` raises.
        """
        if obj["metadata"].get("resourceVersion", "0") != "0":
            raise errors.bad_request("resourceVersion should not be set on objects to be created")
        generated = not obj["metadata"].get("name") and bool(obj["metadata"].get("generateName"))
        for _ in range(_GENERATE_ATTEMPTS if generated else 1):
            if generated:
                obj["metadata"]["name"] = generate_name(obj["metadata"]["generateName"])
            await self._check_new(obj, warn=warn, admit=admit, size=size)
            kv = await self._insert(obj, dry_run=dry_run)
            if kv is not None:
                return kv
        raise await self._already_exists(self.key_of(obj["metadata"]))

    async def _check_new(self, obj: Object, *, warn: Warn, admit: Admit | None, size: int) -> None:
        """Prepares, admits and validates an object that is to be created."""
        object_rules.prepare_for_create(self.resource, obj, now=self._now())
        if self.check_namespace is not None:
            await self.check_namespace(obj, self._errors.group)
        if admit:
            await admit(obj, None)
        if size <= LARGE:
            self._validate_create(obj, warn)
        else:
            await run_in_worker(partial(self._validate_create, obj, warn), size=size)

    def _validate_create(self, obj: Object, warn: Warn) -> None:
        if wrong := object_rules.validate_create(self.resource, self.strategy, obj):
            raise self._errors.invalid(obj["metadata"].get("name", ""), wrong)
        for text in object_rules.warnings(self.resource, self.strategy, obj=obj, old=None):
            warn(text)

    async def _already_exists(self, key: str) -> APIError:
        stored = await self._read(key)
        if isinstance(stored, CorruptObject):
            return self._errors.already_exists(key, being_deleted=False, corrupt=stored)
        being_deleted = stored is not None and "deletionTimestamp" in decoded(stored)["metadata"]
        return self._errors.already_exists(key, being_deleted=being_deleted)

    # Update

    async def update(self, key: str, request: UpdateRequest) -> Written:
        """Replaces the object by what the request's ``change`` makes of it.

        Raises 404, 409, 413, 422 and what ``change``, ``admit`` and ``before_create`` raise. Another write in between
        is a 409 only if the object names a resource version. An object that cannot be read is not replaced, since
        nothing shows what would be lost; it can be deleted.
        """
        attempt = partial(self._attempt_update, key, request)
        return await self.guaranteed_update(
            key, attempt, dry_run=request.dry_run, before_retry=request.discard_warnings
        )

    async def _attempt_update(self, key: str, request: UpdateRequest, stored: Stored) -> Object:
        if request.check_stored is not None:
            await request.check_stored(stored)
        if stored is None:
            return await self._create_on_update(key, request)
        if isinstance(stored, CorruptObject):
            raise self._errors.corrupt(key, stored)
        size = request.size + len(stored.value)
        # Small objects without another coroutine: heartbeats come this way.
        if size <= LARGE:
            obj, old = self._change(request, stored)
        else:
            obj, old = await run_in_worker(partial(self._change, request, stored), size=size)
        if request.admit:
            await request.admit(obj, old)
        if size <= LARGE:
            self._validate_update(request, obj, old)
        else:
            await run_in_worker(partial(self._validate_update, request, obj, old), size=size)
        return obj

    def _change(self, request: UpdateRequest, stored: KeyValue) -> tuple[Object, Object]:
        """The changed object, prepared, and the stored one."""
        old = decoded(stored)
        obj = request.change(old)
        wanted = obj["metadata"].get("resourceVersion", "0")
        if wanted == "0":
            if not self.resource.strategy.allow_unconditional_update:
                raise self._errors.missing_version(obj["metadata"].get("name", ""))
        elif wanted != str(stored.revision):
            check_resource_version(wanted)
            raise self._errors.modified(obj["metadata"].get("name", ""))
        object_rules.prepare_for_update(self.resource, request.strategy, obj=obj, old=old)
        return obj, old

    def _validate_update(self, request: UpdateRequest, obj: Object, old: Object) -> None:
        if wrong := object_rules.validate_update(self.resource, request.strategy, obj=obj, old=old):
            raise self._errors.invalid(old["metadata"]["name"], wrong)
        for text in object_rules.warnings(self.resource, request.strategy, obj=obj, old=old):
            request.warn(text)
        object_rules.keep_idle_times(obj, old)

    async def _create_on_update(self, key: str, request: UpdateRequest) -> Object:
        if not (request.allow_create or request.strategy.allow_create_on_update):
            raise self.not_found(key)
        obj = await run_in_worker(partial(request.change, None), size=request.size)
        metadata = obj["metadata"]
        if metadata.get("uid"):
            raise self._errors.another_uid(key, wanted=metadata["uid"], found="")
        if metadata.get("resourceVersion", "0") != "0" and not self.resource.native:
            raise self._errors.modified(key)
        await self._check_new(obj, warn=request.warn, admit=request.admit, size=request.size)
        if request.before_create is not None:
            await request.before_create()
        return obj

    # Delete

    async def delete(self, key: str, options: DeleteOptions, *, check_stored: CheckStored | None = None) -> Deleted:
        """Removes the object, or marks it while finalizers hold it. Raises 404 and 409, and 403 by the kind's rules.

        Raises what ``check_stored`` raises; None: the user may delete whatever is stored.

        An object that cannot be read is removed too, and with the same right. kube-apiserver requires an option and a
        verb of their own for that, since there a key that cannot be decrypted may be readable again tomorrow; here it
        cannot.
        """
        uid, removed = "", False

        async def attempt(stored: Stored) -> Object | None:
            nonlocal uid, removed
            if check_stored is not None:
                await check_stored(stored)
            if stored is None:
                raise self.not_found(key)
            if isinstance(stored, CorruptObject):  # its finalizers are not known, so that none holds it
                obj: Object = {"metadata": {"uid": "", "resourceVersion": str(stored.revision)}}
                finalizers, is_held = [], False
            else:
                obj = decoded(stored)
                if reason := self._why_not_deletable(obj):
                    raise self._errors.not_deletable({key: reason})
                finalizers = deletion.finalizers_after(obj["metadata"].get("finalizers", []), options)
                is_held = bool(finalizers) or self._is_held_by_kind(obj)
            self._check_preconditions(key, obj["metadata"], options.preconditions)
            uid, removed = obj["metadata"]["uid"], not is_held
            return self._marked(obj, finalizers=finalizers) if is_held else None

        written = await self.guaranteed_update(key, attempt, dry_run=options.dry_run, limit_size=False)
        return Deleted(written.kv, removed=removed, uid=uid)

    def _check_preconditions(self, key: str, metadata: Object, wanted: deletion.Preconditions) -> None:
        """Raises 409."""
        if self.resource.deletion is None:
            if unmet := deletion.unmet(metadata, wanted):
                raise self._errors.unmet_precondition(key, unmet)
        elif unmet := deletion.unmet_by_rules(metadata, wanted):
            raise self._errors.conflict(key, unmet)

    def _why_not_deletable(self, obj: Object) -> str:
        """Why an object must not be deleted; empty if it may be."""
        check = self.resource.check_delete
        return "" if check is None or "deletionTimestamp" in obj["metadata"] else check(obj)

    def _is_held_by_kind(self, obj: Object) -> bool:
        """Whether the rules of the kind hold an object that is being deleted."""
        rules = self.resource.deletion
        return rules is not None and rules.is_held(obj)

    def _marked(self, obj: Object, *, finalizers: list[str]) -> Object:
        """The object as it is stored while it waits for its finalizers."""
        rules = self.resource.deletion
        marked = deletion.marked(obj, finalizers=finalizers, now=self._now(), graceful=rules is None)
        if rules is not None:
            rules.mark_deleted(marked)
        return marked

    async def delete_all(
        self, kvs: Iterable[KeyValue], options: DeleteOptions, *, is_visible: Callable[[KeyValue], bool] | None = None
    ) -> None:
        """Deletes each of the objects. An object that is already gone is no error.

        Nor is one that is not visible any more: it is left alone. None: every object is.

        Raises 403 before anything is deleted if one of them must not be. What another request forbids meanwhile is not
        deleted either; the objects before it are.
        """
        found = list(kvs)
        if self.resource.check_delete is not None:
            await self._check_deletable(found)
        keys = [self.key_in(kv) for kv in found]
        for start in range(0, len(keys), _DELETES_AT_ONCE):
            batch = keys[start : start + _DELETES_AT_ONCE]
            deletes = [self.delete(key, options, check_stored=self._check_visible(key, is_visible)) for key in batch]
            results = await asyncio.gather(*deletes, return_exceptions=True)
            for result in results:
                gone = isinstance(result, APIError) and result.reason == "NotFound"
                if isinstance(result, BaseException) and not gone:
                    raise result

    def _check_visible(self, key: str, is_visible: Callable[[KeyValue], bool] | None) -> CheckStored | None:
        """Makes an object that is not visible one that is not there."""
        if is_visible is None:
            return None

        async def check(stored: Stored) -> None:
            if not isinstance(stored, KeyValue) or not is_visible(stored):
                raise self.not_found(key)

        return check

    async def _check_deletable(self, kvs: Sequence[KeyValue]) -> None:
        """Raises 403 with the names of the objects that must not be deleted."""
        reasons: dict[str, str] = {}
        for start in range(0, len(kvs), _DELETES_AT_ONCE):
            for kv in kvs[start : start + _DELETES_AT_ONCE]:
                if reason := self._why_not_deletable(decoded_to_read(kv)):
                    reasons[self.key_in(kv)] = reason
            await asyncio.sleep(0)
        if reasons:
            raise self._errors.not_deletable(reasons)

    # Writes

    async def guaranteed_update(
        self,
        key: str,
        attempt: Attempt,
        *,
        dry_run: bool,
        limit_size: bool = True,
        before_retry: Callable[[], None] = lambda: None,
    ) -> Written:
        """Repeats ``attempt`` on the stored object until no other write comes in between, as k8s' GuaranteedUpdate.

        On a storage with several writers the first attempt gets the object from the cache, without a read: nearly
        always it is the current one, and if not, the write fails. Whatever else that attempt ends with, an error or
        nothing to write, holds only for the current object, so it is repeated on that one. A write without an answer
        (503) may have been done and is not repeated.

        Raises what ``attempt`` raises, 409 when other writes never end, 413 and 503.
        """
        stored_under = self.prefix + key
        stale = None if dry_run or self.storage.sole_writer else self.storage.get_stale(stored_under)
        for _ in range(_ATTEMPTS):
            stored = stale or self.storage.get_cached(stored_under) or await self._read(key)
            try:
                obj = await attempt(stored)
                if obj is None:
                    kv = await self._remove(stored, dry_run=dry_run)
                elif isinstance(stored, KeyValue):
                    kv = await self._replace(stored, obj, dry_run=dry_run, limit_size=limit_size)
                else:
                    kv = await self._insert(obj, dry_run=dry_run)
            except APIError as error:
                if stale is None or error.code == HTTPStatus.SERVICE_UNAVAILABLE:
                    raise
            else:
                is_unchanged = kv is stored and obj is not None
                if kv is not None and (stale is None or not is_unchanged):
                    return Written(kv, created=stored is None)
            stale = None
            before_retry()
        raise self._errors.contended(key)

    async def _insert(self, obj: Object, *, dry_run: bool) -> KeyValue | None:
        """The stored object; None if the name is taken."""
        key, value = self.key_of(obj["metadata"]), to_stored(obj)
        stored_under = self.prefix + key
        if len(value) > LARGEST:
            raise self._errors.too_large(len(value))
        values, write = self.unique.given(obj), partial(self.storage.create, stored_under, value)
        try:
            if dry_run:
                await self.unique.check(stored_under, values)
                return None if await self._read(key) else presented(KeyValue(stored_under, value, 0))
            revision = await (self.unique.write(stored_under, values, write) if values else write())
        except KeyExists:
            return None
        except DuplicateValues as error:
            raise self._errors.invalid(obj["metadata"]["name"], error.wrong) from None
        except StorageError as error:
            raise api_error(error) from error
        await self._wait_until_seen(revision)
        return self._served(stored_under, value, revision)

    async def _replace(self, stored: KeyValue, obj: Object, *, dry_run: bool, limit_size: bool) -> KeyValue | None:
        """The object after the write, ``stored`` itself if nothing changes; None if another write came first."""
        value = to_stored(obj)
        if to_served(value, stored.revision) == stored.value:
            return stored
        if limit_size and len(value) > LARGEST and len(value) > len(stored.value):  # one that is too large may shrink
            raise self._errors.too_large(len(value))
        if "deletionTimestamp" in obj["metadata"] and not self._is_held(obj):
            # The last finalizer is gone. The answer shows that, under the revision that was stored.
            removed = await self._remove(stored, dry_run=dry_run)
            return removed and presented(KeyValue(stored.key, value, stored.revision))
        values = self.unique.given(obj, value=value, stored=stored)
        write = partial(self.storage.update, stored.key, value, expected=stored.revision)
        try:
            if dry_run:
                await self.unique.check(stored.key, values)
                return presented(KeyValue(stored.key, value, stored.revision))
            revision = await (self.unique.write(stored.key, values, write) if values else write())
        except DuplicateValues as error:
            raise self._errors.invalid(obj["metadata"]["name"], error.wrong) from None
        except (RevisionConflict, KeyNotFound):
            return None
        except StorageError as error:
            raise api_error(error) from error
        await self._wait_until_seen(revision)
        return self._served(stored.key, value, revision)

    def _is_held(self, obj: Object) -> bool:
        """Whether anything holds an object that is being deleted."""
        rules = self.resource.deletion
        return bool(obj["metadata"].get("finalizers")) or (rules is not None and rules.is_held(obj))

    async def _remove(self, stored: Stored, *, dry_run: bool) -> KeyValue | None:
        """The last state of the object; None if another write came first."""
        if stored is None:
            raise AssertionError  # an attempt answers with an object, or raises 404
        kv = stored if isinstance(stored, KeyValue) else KeyValue(stored.key, b"", stored.revision)
        if dry_run:
            return kv
        try:
            revision = await self.storage.delete(kv.key, expected=kv.revision)
        except (RevisionConflict, KeyNotFound):
            return None
        except StorageError as error:
            raise api_error(error) from error
        await self._wait_until_seen(revision)
        return kv

    async def _wait_until_seen(self, revision: int) -> None:
        """Waits until the cache has a write, for resources whose objects the server itself acts on.

        A storage with several writers sends the events of own writes a little later. The write stays written if that
        takes too long.
        """
        if self.resource.read_your_writes:
            with contextlib.suppress(StorageError):
                await self.storage.wait_for(revision)

    def _served(self, key: str, value: bytes, revision: int) -> KeyValue:
        """A written object as it is served: the one in the cache, if its event has come."""
        cached = self.storage.get_stale(key)
        return cached if cached and cached.revision == revision else presented(KeyValue(key, value, revision))

    # Errors

    def not_found(self, key: str) -> APIError:
        return self._errors.not_found(key)

    def check_uid(self, obj: Object, old: Object | None) -> None:
        """Raises 409 for a PUT whose object names another uid than the stored one: it is meant for another object."""
        uid = obj["metadata"].get("uid")
        if uid and old and uid != old["metadata"]["uid"]:
            raise self._errors.another_uid(self.key_of(old["metadata"]), wanted=uid, found=old["metadata"]["uid"])


def check_resource_version(resource_version: str) -> None:
    """Raises 400 for a resource version that is not a number."""
    try:
        parse_uint(resource_version)
    except ValueError as error:
        raise errors.bad_request(str(error)) from None
