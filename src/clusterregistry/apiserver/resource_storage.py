"""Opens the storage of the options, and a store and a broadcaster over it for each resource that is served."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from clusterregistry.apimachinery import operator_error
from clusterregistry.apimachinery.meta import times
from clusterregistry.apimachinery.schema.structural import Structural
from clusterregistry.apiserver.options import CompletedOptions, runtime_config
from clusterregistry.apiserver.product import Product
from clusterregistry.apiserver.registry.broadcaster import Broadcaster
from clusterregistry.apiserver.registry.group_index import GroupIndex
from clusterregistry.apiserver.registry.native_resources import native_resources
from clusterregistry.apiserver.registry.resource import Resource
from clusterregistry.apiserver.registry.storage_codec import StorageCodec
from clusterregistry.apiserver.registry.store import Store
from clusterregistry.apiserver.storage import interface
from clusterregistry.apiserver.storage.cacher import Cacher
from clusterregistry.apiserver.storage.compaction import MonotonicClock, keep_compacting
from clusterregistry.apiserver.storage.errors import StorageError, StorageUnavailable
from clusterregistry.apiserver.storage.interface import Storage
from clusterregistry.apiserver.storage.location import DATABASE
from clusterregistry.apiserver.storage.object_bytes import presented
from clusterregistry.apiserver.storage.sqlite import SQLiteStorage
from clusterregistry.apiserver.tasks import run_in_background

_REPORT_DELAY = 0.5
"""Seconds until values are compared: a start does not wait for it."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ResourceStorage:
    """A resource with its store and the broadcaster of its watches."""

    resource: Resource
    store: Store
    broadcaster: Broadcaster
    structural: Structural
    """Of the storage version."""


async def open_resources(
    options: CompletedOptions, product: Product, stack: contextlib.AsyncExitStack
) -> list[ResourceStorage]:
    """Opens all resources over one storage and keeps compacting its history; ``stack`` closes them.

    Raises StorageUnavailable.
    """
    storage = await open_storage(options)
    stack.push_async_callback(storage.close)
    opened = [await _open_resource(resource, storage, stack) for resource in served_resources(options, product)]
    await _index_groups([one.store for one in opened], stack)
    await _start_compaction(options, storage, stack)
    for one in opened:
        if one.resource.unique_fields:
            await stack.enter_async_context(run_in_background(_report_duplicates(one.store)))
    return opened


def served_resources(options: CompletedOptions, product: Product) -> Sequence[Resource]:
    """The product's kinds, and the native ones, which in aggregated mode are those of the host cluster.

    Each has the versions that are to be served.
    """
    own = product.resources(options)
    found = own if options.host else (*own, *native_resources(event_retention=options.storage.event_ttl))
    return runtime_config.served(found, options.features.runtime_config)


def now() -> str:
    """The present time in the form that objects have."""
    return times.present()


async def open_storage(options: CompletedOptions) -> Storage:
    """Opens the storage engine that the options name. Raises StorageUnavailable."""
    if options.etcd is None:
        return await _open_sqlite(options.data_dir / DATABASE)
    # Late: it is slow to import, and most servers do without.
    from clusterregistry.apiserver.storage.etcd.store import EtcdStorage  # noqa: PLC0415

    return await EtcdStorage.open(options.etcd)


async def _open_sqlite(path: Path) -> Storage:
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        message, remedy = operator_error.explain(path.parent, error, action="made")
        raise StorageUnavailable(message, remedy=remedy) from None
    return await SQLiteStorage.open(path)


async def _open_resource(resource: Resource, storage: Storage, stack: contextlib.AsyncExitStack) -> ResourceStorage:
    prefix = interface.prefix_of(resource.group, resource.plural)
    structural = Structural(resource.stored_as.schema)
    codec = StorageCodec(resource, structural)
    cacher = await Cacher.open(storage, prefix, present=codec.decode, present_own=presented)
    stack.push_async_callback(cacher.close)
    broadcaster = Broadcaster(cacher, prefix)
    stack.callback(broadcaster.close)
    return ResourceStorage(resource, Store(resource, cacher, now=now, corrupt=cacher.corrupt), broadcaster, structural)


async def _index_groups(stores: Sequence[Store], stack: contextlib.AsyncExitStack) -> None:
    """Gives each store the index of its groups, where both the objects and the groups are served."""
    served = {store.resource.qualified_name: store for store in stores if store.resource.versions}
    for store in served.values():
        grouping = store.resource.grouped_by
        if grouping is not None and (groups := served.get(grouping.qualified_name)):
            store.groups = await GroupIndex.open(store, groups, grouping)
            stack.callback(store.groups.close)


async def _report_duplicates(store: Store) -> None:
    """Indexes the values of unique fields beside the first requests, and logs those that several objects have."""
    await asyncio.sleep(_REPORT_DELAY)
    try:
        await store.unique.report()
    except StorageError as error:
        _log.warning("%s: values cannot be compared now: %s", store.resource.qualified_name, error)


async def _start_compaction(options: CompletedOptions, storage: Storage, stack: contextlib.AsyncExitStack) -> None:
    """Compacts the history now and then, unless the options leave that to other programs."""
    if options.etcd is None:
        work = keep_compacting(storage, MonotonicClock())
    elif seconds := options.etcd.compaction_seconds:
        work = keep_compacting(storage, MonotonicClock(), interval=seconds, retention=seconds)
    else:
        return
    await stack.enter_async_context(run_in_background(work))
