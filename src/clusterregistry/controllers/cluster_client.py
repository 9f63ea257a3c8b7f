"""Clusters as a status controller or an agent reads and writes them, in the newest version that the registry serves.

Objects are in v1beta1, whatever the registry serves, and without managed fields, which are half of their size.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from clusterregistry.api.clusterregistry import GROUP, v1alpha1, v1beta1
from clusterregistry.api.clusterregistry.v1beta1 import conversion
from clusterregistry.client.errors import ClientError, NotFoundError
from clusterregistry.client.rest import (
    Call,
    Client,
    GroupVersionResource,
    Object,
    ResourceClient,
    WriteOptions,
    metadata,
)

PLURAL, KIND = "clusters", "Cluster"
FIELD_MANAGER = "cluster-status"
_VERSIONS = (v1beta1.VERSION, v1alpha1.VERSION)
"""The best first."""


class NotServedError(ClientError):
    """The server is no cluster registry, or serves none of the versions that are known here."""


class ClusterClient:
    """Reads clusters and writes their status, in one version of the API."""

    def __init__(self, client: Client, *, version: str = v1beta1.VERSION) -> None:
        self.resource: ResourceClient = client.resource(GroupVersionResource(GROUP, version, PLURAL))
        self.version = version

    def using(self, client: Client) -> ClusterClient:
        """The same over other connections."""
        return ClusterClient(client, version=self.version)

    def interpret(self, cluster: Object) -> Object:
        """A cluster from the server in v1beta1, without managed fields."""
        whole = conversion.from_v1alpha1(cluster) if self.version == v1alpha1.VERSION else cluster
        described = metadata(whole)
        if "managedFields" not in described:
            return whole
        kept = {name: value for name, value in described.items() if name != "managedFields"}
        return {**whole, "metadata": kept}

    async def get(self, name: str) -> Object:
        """Raises ClientError."""
        return self.interpret(await self.resource.get(name))

    async def apply_status(self, cluster: Mapping[str, Any], status: Mapping[str, Any], *, seconds: float) -> Object:
        """Applies a status (of v1beta1), if the cluster is still of this version. Returns what is stored then.

        Raises ConflictError if another client has written the cluster, or has made another one of the name.
        """
        known = metadata(cluster)
        wanted = {
            "apiVersion": f"{GROUP}/{self.version}",
            "kind": KIND,
            "metadata": {name: known[name] for name in ("name", "uid", "resourceVersion") if name in known},
            "status": _without_generations(status) if self.version == v1alpha1.VERSION else status,
        }
        options = WriteOptions(field_manager=FIELD_MANAGER, force=True, timeout=seconds)
        return self.interpret(await self.resource.apply(wanted, options, subresource="status"))


async def served_version(client: Client) -> str:
    """The newest version of clusters that the registry serves. Raises NotServedError, and ClientError."""
    try:
        group = await client.call(Call("GET", f"/apis/{GROUP}"))
    except NotFoundError:
        raise NotServedError(f"{client.config.server} is no cluster registry: it does not serve {GROUP}") from None
    served = group.get("versions")
    names = {each.get("version") for each in served if isinstance(each, dict)} if isinstance(served, list) else set()
    for version in _VERSIONS:
        if version in names:
            return version
    raise NotServedError(f"{client.config.server} serves {GROUP} in none of the versions {', '.join(_VERSIONS)}")


def _without_generations(status: Mapping[str, Any]) -> Object:
    """The status in v1alpha1, whose conditions have no generation."""
    conditions = [
        {name: value for name, value in each.items() if name != "observedGeneration"} for each in status["conditions"]
    ]
    return {**status, "conditions": conditions}
