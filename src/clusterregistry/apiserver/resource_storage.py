"""What is served and where it is kept: the storage of the options, and for each resource a store and its watchers."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clusterregistry.apimachinery import operator_error
from clusterregistry.apimachinery.meta import times
from clusterregistry.apimachinery.schema.structural import Structural
from clusterregistry.apiserver.options import CompletedOptions
from clusterregistry.apiserver.product import Product
from clusterregistry.apiserver.registry.broadcaster import Broadcaster
from clusterregistry.apiserver.registry.rbac.resources import cluster_role_binding_resource, cluster_role_resource
from clusterregistry.apiserver.registry.resource import Resource
from clusterregistry.apiserver.registry.storage_codec import StorageCodec
from clusterregistry.apiserver.registry.store import Store
from clusterregistry.apiserver.storage import interface
from clusterregistry.apiserver.storage.cacher import Cacher
from clusterregistry.apiserver.storage.compaction import MonotonicClock, keep_compacting
from clusterregistry.apiserver.storage.errors import StorageUnavailable
from clusterregistry.apiserver.storage.interface import Storage
from clusterregistry.apiserver.storage.location import DATABASE
from clusterregistry.apiserver.storage.object_bytes import presented
from clusterregistry.apiserver.storage.sqlite import SQLiteStorage


@dataclass(frozen=True, slots=True)
class ResourceStorage:
    """A resource with its store and its watchers."""

    resource: Resource
    store: Store
    hub: Broadcaster
    structural: Structural
    """Of the storage version."""


async def open_resources(
    options: CompletedOptions, product: Product, stack: contextlib.AsyncExitStack
) -> list[ResourceStorage]:
    """All resources over one storage, whose history is shortened from now on; ``stack`` closes them.

    Raises StorageUnavailable.
    """
    backend = await open_storage(options)
    stack.push_async_callback(backend.close)
    kept = [await _kept(resource, backend, stack) for resource in served_resources(options, product)]
    if compaction := _compaction(options, backend):
        stack.push_async_callback(_cancel, asyncio.create_task(compaction))
    return kept


def served_resources(options: CompletedOptions, product: Product) -> Sequence[Resource]:
    """The product's kinds and the roles and bindings, which in aggregated mode are those of the host cluster."""
    own = product.resources(options)
    return own if options.host else (*own, cluster_role_binding_resource(), cluster_role_resource())


def now() -> str:
    """The present time as objects carry it."""
    return times.present()


async def open_storage(options: CompletedOptions) -> Storage:
    if options.etcd is None:
        return await _open_sqlite(options.data_dir / DATABASE)
    # Only here: it takes its time to import, and most servers do without.
    from clusterregistry.apiserver.storage.etcd.store import EtcdStorage  # noqa: PLC0415

    return await EtcdStorage.open(options.etcd)


def _compaction(options: CompletedOptions, backend: Storage) -> Coroutine[Any, Any, None] | None:
    """What shortens the history, unless that is left to others."""
    if options.etcd is None:
        return keep_compacting(backend, MonotonicClock())
    seconds = options.etcd.compaction_seconds
    return keep_compacting(backend, MonotonicClock(), interval=seconds, retention=seconds) if seconds else None


async def _open_sqlite(path: Path) -> Storage:
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        message, remedy = operator_error.explain(path.parent, error, action="made")
        raise StorageUnavailable(message, remedy=remedy) from None
    return await SQLiteStorage.open(path)


async def _kept(resource: Resource, backend: Storage, stack: contextlib.AsyncExitStack) -> ResourceStorage:
    prefix = interface.prefix_of(resource.group, resource.plural)
    structural = Structural(resource.stored_as.schema)
    codec = StorageCodec(resource, structural)
    cacher = await Cacher.open(backend, prefix, present=codec.decode, present_own=presented)
    stack.push_async_callback(cacher.close)
    hub = Broadcaster(cacher, prefix)
    stack.callback(hub.close)
    return ResourceStorage(resource, Store(resource, cacher, now=now, corrupt=cacher.corrupt), hub, structural)


async def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
