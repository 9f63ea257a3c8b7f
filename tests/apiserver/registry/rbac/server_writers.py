"""A server's roles and bindings, without the server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from clusterregistry.apiserver.authz.rbac.policy import Policy
from clusterregistry.apiserver.endpoints.request_scope import field_managers
from clusterregistry.apiserver.registry.rbac.bootstrap import Defaults, ServerWriter
from clusterregistry.apiserver.registry.rbac.controller import run_controllers
from clusterregistry.apiserver.registry.rbac.resources import cluster_role_binding_resource, cluster_role_resource
from clusterregistry.apiserver.registry.resource import Resource
from clusterregistry.apiserver.registry.store import Store
from clusterregistry.apiserver.storage import interface
from clusterregistry.apiserver.storage.cacher import Cacher
from clusterregistry.apiserver.storage.interface import Storage
from clusterregistry.apiserver.storage.object_bytes import presented
from clusterregistry.registry.cluster import cluster_resource

DEFAULTS = Defaults(manager="clusterregistry", resources=[cluster_resource("off")])

NOW = "2026-01-02T03:04:05Z"


@dataclass(frozen=True)
class Keepers:
    roles: ServerWriter
    bindings: ServerWriter


@asynccontextmanager
async def keepers(storage: Storage) -> AsyncIterator[Keepers]:
    async with AsyncExitStack() as stack:

        async def keeper(resource: Resource) -> ServerWriter:
            cacher = await Cacher.open(storage, interface.prefix_of(resource.group, resource.plural), present=presented)
            stack.push_async_callback(cacher.close)
            store = Store(resource, cacher, now=lambda: NOW)
            return ServerWriter(
                store=store, field_manager=field_managers(resource, resource.versions[0], now=lambda: NOW)[""]
            )

        yield Keepers(await keeper(cluster_role_resource()), await keeper(cluster_role_binding_resource()))


@asynccontextmanager
async def replica(storage: Storage, policy: Policy) -> AsyncIterator[Keepers]:
    """One server's worth of upkeep."""
    async with (
        keepers(storage) as kept,
        run_controllers(policy, roles=kept.roles, bindings=kept.bindings, defaults=DEFAULTS),
    ):
        yield kept
