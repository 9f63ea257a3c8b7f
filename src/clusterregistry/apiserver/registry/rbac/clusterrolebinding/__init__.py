"""The ClusterRoleBinding resource: its strategy and its columns. Must not know what a binding allows."""

from __future__ import annotations

from clusterregistry.api.rbac import GROUP
from clusterregistry.api.rbac.v1 import VERSION
from clusterregistry.api.rbac.v1.types import CLUSTER_ROLE_BINDING, CLUSTER_ROLE_BINDING_KIND
from clusterregistry.apimachinery.meta.names import PATH_SEGMENTS
from clusterregistry.apiserver.registry.rbac.clusterrolebinding.columns import COLUMNS
from clusterregistry.apiserver.registry.rbac.clusterrolebinding.strategy import ClusterRoleBindingStrategy, decode
from clusterregistry.apiserver.registry.resource import Resource, Version


def cluster_role_binding_resource() -> Resource:
    return Resource(
        group=GROUP,
        kind=CLUSTER_ROLE_BINDING_KIND,
        plural="clusterrolebindings",
        singular="clusterrolebinding",
        versions=(Version(name=VERSION, schema=CLUSTER_ROLE_BINDING, columns=COLUMNS, decode=decode),),
        storage_version=VERSION,
        strategy=ClusterRoleBindingStrategy(),
        names=PATH_SEGMENTS,
        native=True,
        answered_when_seen=True,
    )
