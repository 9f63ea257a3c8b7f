"""Stores of sample kinds over a real storage, without a server: a root-scoped kind and two namespaced ones."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from clusterregistry.apimachinery.meta import times
from clusterregistry.apimachinery.schema.schemas import Integer, Object, String
from clusterregistry.apiserver.controllers.garbage_collector import GarbageCollector
from clusterregistry.apiserver.endpoints.request_scope import field_managers
from clusterregistry.apiserver.registry.deletion import DeleteOptions
from clusterregistry.apiserver.registry.rbac.bootstrap import ServerWriter
from clusterregistry.apiserver.registry.resource import Resource, Version
from clusterregistry.apiserver.registry.store import Store, UpdateRequest
from clusterregistry.apiserver.registry.structural_strategy import SpecStrategy
from clusterregistry.apiserver.storage import interface
from clusterregistry.apiserver.storage.cacher import Cacher
from clusterregistry.apiserver.storage.interface import Storage
from clusterregistry.apiserver.storage.object_bytes import decoded, presented

GROUP = "wardle.example.com"
API_VERSION = f"{GROUP}/v1"
SCHEMA = Object(fields={"spec": Object(fields={"size": Integer(), "note": String()})})

NUMBERS = itertools.count()


def sample_resource(kind: str, **settings: Any) -> Resource:
    return Resource(
        group=GROUP,
        kind=kind,
        plural=f"{kind.lower()}s",
        singular=kind.lower(),
        versions=(Version(name="v1", schema=SCHEMA),),
        storage_version="v1",
        strategy=SpecStrategy(SCHEMA),
        **settings,
    )


SHIP = sample_resource("Ship")
CRATE = sample_resource("Crate", namespaced=True)
FISH = sample_resource("Fish", namespaced=True)
KINDS = {each.kind: each for each in (SHIP, CRATE, FISH)}


def writer_of(store: Store, subresource: str) -> ServerWriter:
    resource = store.resource
    managers = field_managers(resource, resource.versions[0], now=times.present)
    return ServerWriter(store=store, field_manager=managers[subresource], subresource=subresource)


class Fleet:
    """The stores of some kinds, and short ways to write to them. An object is named ``KIND/[NAMESPACE/]NAME``."""

    def __init__(self, storage: Storage, stores: Sequence[Store]) -> None:
        self.storage = storage
        self.stores = {store.resource.kind: store for store in stores}

    def collector(self) -> GarbageCollector:
        return GarbageCollector(list(self.stores.values()), writer_of=writer_of)

    def store(self, name: str) -> tuple[Store, str]:
        kind, _, key = name.partition("/")
        return self.stores[kind], key

    async def create(self, name: str, *owners: dict[str, Any], **metadata: Any) -> dict[str, Any]:
        """Creates an object and returns a reference to it, for objects that it owns."""
        store, key = self.store(name)
        resource = store.resource
        namespace, _, own_name = key.rpartition("/")
        fields = {"name": own_name, **({"namespace": namespace} if namespace else {}), **metadata}
        if owners:
            fields["ownerReferences"] = list(owners)
        group_version = f"{resource.group}/{resource.storage_version}".removeprefix("/")
        obj = {"apiVersion": group_version, "kind": resource.kind, "metadata": fields}
        made = decoded(await store.create(obj, dry_run=False, warn=lambda _: None))
        uid = made["metadata"]["uid"]
        return {"apiVersion": obj["apiVersion"], "kind": resource.kind, "name": own_name, "uid": uid}

    async def delete(self, name: str, policy: str | None = None) -> None:
        store, key = self.store(name)
        await store.delete(key, DeleteOptions(propagation_policy=policy))

    async def metadata(self, name: str) -> dict[str, Any]:
        store, key = self.store(name)
        found: dict[str, Any] = decoded(await store.get(key))["metadata"]
        return found

    async def change(self, name: str, **metadata: Any) -> None:
        """Replaces fields of the metadata; None removes one."""
        store, key = self.store(name)

        def changed(old: dict[str, Any] | None) -> dict[str, Any]:
            assert old is not None
            fields = {**old["metadata"], **metadata}
            return {**old, "metadata": {field: value for field, value in fields.items() if value is not None}}

        request = UpdateRequest(change=changed, strategy=store.resource.strategy, warn=lambda _: None)
        await store.update(key, request)

    async def names(self) -> set[str]:
        """All objects that exist, as of now."""
        found = set()
        for kind, store in self.stores.items():
            page = await store.storage.list(store.prefix)
            found |= {f"{kind}/{store.key_in(kv)}" for kv in page.items}
        return found

    async def exists(self, name: str) -> bool:
        return name in await self.names()


@asynccontextmanager
async def fleet_over(storage: Storage, resources: Sequence[Resource] = (SHIP, CRATE, FISH)) -> AsyncIterator[Fleet]:
    async with AsyncExitStack() as stack:
        stores = []
        for resource in resources:
            prefix = interface.prefix_of(resource.group, resource.plural)
            cacher = await Cacher.open(storage, prefix, present=presented)
            stack.push_async_callback(cacher.close)
            stores.append(Store(resource, cacher, now=times.present, corrupt=cacher.corrupt))
        yield Fleet(storage, stores)


async def settle(collector: GarbageCollector, *, steps: int = 10_000) -> None:
    """Has the collector work until there is nothing left to do, or for so many steps."""
    while not collector.is_idle and steps:
        await collector.step()
        steps -= 1
