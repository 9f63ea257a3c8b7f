"""What ``kubectl get clusters`` prints."""

from __future__ import annotations

from typing import Any

from clusterregistry.apiserver.registry.columns import age_column, condition_cell, field_cell, name_column
from clusterregistry.apiserver.registry.resource import Column

_server_endpoints = field_cell("spec", "kubernetesApiEndpoints", "serverEndpoints")


def _server(cluster: dict[str, Any]) -> Any:
    endpoints = _server_endpoints(cluster)
    first = endpoints[0] if isinstance(endpoints, list) and endpoints else None
    return first.get("serverAddress") if isinstance(first, dict) else None


_NAME = name_column("The name of the cluster in this registry. It cannot be changed.")
_VERSION = Column(
    name="Version",
    type="string",
    cell=field_cell("status", "version", "kubernetes"),
    description="The Kubernetes version that the cluster reports.",
)
_NODES = Column(
    name="Nodes", type="integer", cell=field_cell("status", "nodes", "total"), description="The number of nodes."
)
_SERVER = Column(name="Server", type="string", cell=_server, description="The address of the first server endpoint.")
_AGE = age_column("When the cluster was registered.")

COLUMNS = (
    _NAME,
    Column(name="OK", type="string", cell=condition_cell("OK"), description="Whether the cluster is reported as OK."),
    _VERSION,
    _NODES,
    _SERVER,
    Column(
        name="Provider",
        type="string",
        priority=1,
        cell=field_cell("spec", "cloudProvider", "name"),
        description="The cloud provider.",
    ),
    Column(
        name="Cluster-ID",
        type="string",
        priority=1,
        cell=field_cell("spec", "clusterID"),
        description="The identity of the cluster itself.",
    ),
    _AGE,
)
"""The columns of v1alpha1: those of the reference's CRD, after the name."""

V1BETA1_COLUMNS = (
    _NAME,
    Column(name="State", type="string", cell=field_cell("status", "state"), description="The state of the cluster."),
    _VERSION,
    _NODES,
    _SERVER,
    Column(
        name="Seen",
        type="date",
        is_age=True,
        cell=field_cell("status", "observedAt"),
        description="When the cluster was last observed.",
    ),
    _AGE,
)
