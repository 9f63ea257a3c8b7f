"""The roles and bindings of a server, without the server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from clusterregistry.apiserver.authz.rbac.policy import Policy
from clusterregistry.apiserver.endpoints.request_scope import field_managers
from clusterregistry.apiserver.registry.rbac import resources
from clusterregistry.apiserver.registry.rbac.bootstrap import Defaults, ServerWriter
from clusterregistry.apiserver.registry.rbac.controller import run_controllers
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
class Writers:
    """By plural; ``roles`` and ``bindings`` are those of ClusterRoles and ClusterRoleBindings."""

    by_plural: Mapping[str, ServerWriter]

    @property
    def roles(self) -> ServerWriter:
        return self.by_plural["clusterroles"]

    @property
    def bindings(self) -> ServerWriter:
        return self.by_plural["clusterrolebindings"]

    @property
    def stores(self) -> dict[str, Store]:
        return {plural: writer.store for plural, writer in self.by_plural.items()}


@asynccontextmanager
async def writers(storage: Storage) -> AsyncIterator[Writers]:
    async with AsyncExitStack() as stack:

        async def writer(resource: Resource) -> ServerWriter:
            cacher = await Cacher.open(storage, interface.prefix_of(resource.group, resource.plural), present=presented)
            stack.push_async_callback(cacher.close)
            store = Store(resource, cacher, now=lambda: NOW)
            return ServerWriter(
                store=store, field_manager=field_managers(resource, resource.versions[0], now=lambda: NOW)[""]
            )

        kinds = (
            resources.cluster_role_resource(),
            resources.cluster_role_binding_resource(),
            resources.role_resource(),
            resources.role_binding_resource(),
        )
        yield Writers({kind.plural: await writer(kind) for kind in kinds})


@asynccontextmanager
async def replica(storage: Storage, policy: Policy) -> AsyncIterator[Writers]:
    """The controllers of one server."""
    async with (
        writers(storage) as kept,
        run_controllers(policy, kept.by_plural, defaults=DEFAULTS),
    ):
        yield kept
