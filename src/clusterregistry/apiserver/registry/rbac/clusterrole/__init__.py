"""The ClusterRole resource: its strategy and its columns. Must not know what rules allow: that is ``authz``."""

from __future__ import annotations

from clusterregistry.api.rbac import GROUP
from clusterregistry.api.rbac.v1 import VERSION
from clusterregistry.api.rbac.v1.types import CLUSTER_ROLE, CLUSTER_ROLE_KIND
from clusterregistry.apimachinery.meta.names import PATH_SEGMENTS
from clusterregistry.apiserver.registry.rbac.clusterrole.columns import COLUMNS
from clusterregistry.apiserver.registry.rbac.clusterrole.strategy import ClusterRoleStrategy, decode
from clusterregistry.apiserver.registry.resource import Resource, Version


def cluster_role_resource() -> Resource:
    return Resource(
        group=GROUP,
        kind=CLUSTER_ROLE_KIND,
        plural="clusterroles",
        singular="clusterrole",
        versions=(Version(name=VERSION, schema=CLUSTER_ROLE, columns=COLUMNS, decode=decode),),
        storage_version=VERSION,
        strategy=ClusterRoleStrategy(),
        names=PATH_SEGMENTS,
        native=True,
        answered_when_seen=True,
    )
