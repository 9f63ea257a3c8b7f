"""What ``kubectl get clusters`` prints."""

from __future__ import annotations

from typing import Any

from clusterregistry.apiserver.registry.resource import Cell, Column


def _at(*path: str) -> Cell:
    """A cell that reads the value at a path of keys."""

    def cell(cluster: dict[str, Any]) -> Any:
        value: Any = cluster
        try:
            for key in path:
                value = value[key]
        except (KeyError, TypeError):  # there is nothing, or something else than an object on the way
            return None
        return value

    return cell


_conditions = _at("status", "conditions")
_server_endpoints = _at("spec", "kubernetesApiEndpoints", "serverEndpoints")


def _ok(cluster: dict[str, Any]) -> Any:
    """The status of the first condition of type OK."""
    for condition in _conditions(cluster) or ():
        if isinstance(condition, dict) and condition.get("type") == "OK":
            return condition.get("status")
    return None


def _server(cluster: dict[str, Any]) -> Any:
    endpoints = _server_endpoints(cluster)
    first = endpoints[0] if isinstance(endpoints, list) and endpoints else None
    return first.get("serverAddress") if isinstance(first, dict) else None


COLUMNS = (
    Column(
        name="Name",
        type="string",
        format="name",
        cell=_at("metadata", "name"),
        description="The name of the cluster in this registry. It cannot be changed.",
    ),
    Column(name="OK", type="string", cell=_ok, description="Whether the cluster is reported as OK."),
    Column(
        name="Version",
        type="string",
        cell=_at("status", "version", "kubernetes"),
        description="The Kubernetes version that the cluster reports.",
    ),
    Column(name="Nodes", type="integer", cell=_at("status", "nodes", "total"), description="The number of nodes."),
    Column(name="Server", type="string", cell=_server, description="The address of the first server endpoint."),
    Column(
        name="Provider",
        type="string",
        priority=1,
        cell=_at("spec", "cloudProvider", "name"),
        description="The cloud provider.",
    ),
    Column(
        name="Cluster-ID",
        type="string",
        priority=1,
        cell=_at("spec", "clusterID"),
        description="The identity of the cluster itself.",
    ),
    Column(
        name="Age",
        type="date",
        is_age=True,
        cell=_at("metadata", "creationTimestamp"),
        description="When the cluster was registered.",
    ),
)
"""As in the reference's CRD; the name comes first, as kube-apiserver puts it."""
