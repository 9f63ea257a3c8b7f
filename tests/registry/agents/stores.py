"""Stores of single kinds over a real storage, as a server has them."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Any

from clusterregistry.apimachinery.schema.structural import Structural
from clusterregistry.apiserver.registry.resource import Resource
from clusterregistry.apiserver.registry.storage_codec import StorageCodec
from clusterregistry.apiserver.registry.store import Store
from clusterregistry.apiserver.storage import interface
from clusterregistry.apiserver.storage.cacher import Cacher
from clusterregistry.apiserver.storage.interface import Storage
from clusterregistry.apiserver.storage.object_bytes import presented

NOW = "2026-01-02T03:04:05Z"


async def open_store(resource: Resource, storage: Storage, stack: AsyncExitStack) -> Store:
    """The store of a resource, with a cache of its own."""
    codec = StorageCodec(resource, Structural(resource.stored_as.schema))
    prefix = interface.prefix_of(resource.group, resource.plural)
    cacher = await Cacher.open(storage, prefix, present=codec.decode, present_own=presented)
    stack.push_async_callback(cacher.close)
    return Store(resource, cacher, now=lambda: NOW, corrupt=cacher.corrupt)


async def create(store: Store, obj: dict[str, Any]) -> None:
    await store.create(obj, dry_run=False, warn=lambda _: None)
