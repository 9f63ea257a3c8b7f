"""The objects of one namespace in a host cluster: paths, and calls as its administrator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from clusterregistry.crinit.errors import HostError
from tests.system.e2e.host_clusters import HostCluster


@dataclass(frozen=True)
class Namespace:
    host: HostCluster
    name: str

    def path(self, version: str, plural: str, name: str = "") -> str:
        root = f"/apis/{version}" if "/" in version else f"/api/{version}"
        return f"{root}/namespaces/{self.name}/{plural}" + (f"/{name}" if name else "")

    def items(self, version: str, plural: str) -> list[dict[str, Any]]:
        return self.host.admin.items(self.path(version, plural))

    def get(self, plural: str, name: str) -> dict[str, Any] | None:
        return self.host.admin.get(self.path("v1", plural, name))

    def create(self, version: str, plural: str, document: dict[str, Any]) -> dict[str, Any]:
        return self.host.create(self.path(version, plural), document)

    def put(self, version: str, plural: str, document: dict[str, Any]) -> None:
        """Creates an object, or changes the one that is there."""
        name = document["metadata"]["name"]
        try:
            self.create(version, plural, document)
        except HostError as error:
            if error.status != 409:
                raise
            self.host.merge(self.path(version, plural, name), document)

    def set_status(self, version: str, plural: str, name: str, status: dict[str, Any]) -> None:
        self.host.merge(self.path(version, plural, name) + "/status", {"status": status})
