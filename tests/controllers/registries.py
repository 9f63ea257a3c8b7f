"""A registry in memory, with optimistic locking and failures, for code that runs with a fake clock."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Mapping
from typing import Any, cast

from clusterregistry.client import errors
from clusterregistry.controllers.cluster_client import ClusterClient

Object = dict[str, Any]


class PlayedRegistry:
    """Clusters as a server keeps them, and the writes of their status."""

    def __init__(self) -> None:
        self.clusters: dict[str, Object] = {}
        self.failure: errors.ClientError | None = None
        """Of all calls, while it is there."""
        self.loses_answers = False
        """Carries writes out and answers with a failure."""
        self.writes: list[tuple[float, str, Object]] = []
        """Each write: the time, the name and the status."""
        self.attempts = 0
        self.at_once = 0
        self.most_at_once = 0
        self._version = 0

    def add(self, name: str = "alpha", *, uid: str = "1", **status: Any) -> Object:
        self.clusters[name] = {
            "apiVersion": "clusterregistry.k8s.io/v1beta1",
            "kind": "Cluster",
            "metadata": {"name": name, "uid": uid, "generation": 1},
            "spec": {},
            **({"status": status} if status else {}),
        }
        return self.change(name)

    def change(self, name: str = "alpha", **status: Any) -> Object:
        """Another client writes the cluster."""
        self._version += 1
        cluster = copy.deepcopy(self.clusters[name])
        cluster["metadata"]["resourceVersion"] = str(self._version)
        if status:
            cluster["status"] = {**cluster.get("status", {}), **status}
        self.clusters[name] = cluster
        return cluster

    def find(self, name: str) -> Object | None:
        """A cache that is always current."""
        return self.clusters.get(name)

    def client(self) -> ClusterClient:
        return cast("ClusterClient", self)

    async def _reach(self) -> None:
        self.attempts += 1
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await asyncio.sleep(0.01)
        finally:
            self.at_once -= 1
        if self.failure is not None:
            raise self.failure

    async def get(self, name: str) -> Object:
        await self._reach()
        if name not in self.clusters:
            raise errors.from_code(404, name)
        return self.clusters[name]

    async def apply_status(self, cluster: Mapping[str, Any], status: Mapping[str, Any], *, seconds: float) -> Object:  # noqa: ARG002
        await self._reach()
        name = cluster["metadata"]["name"]
        stored = self.clusters.get(name)
        if stored is None:
            raise errors.from_code(404, name)
        if any(stored["metadata"][key] != cluster["metadata"][key] for key in ("uid", "resourceVersion")):
            raise errors.from_code(409, name)
        self.writes.append((asyncio.get_running_loop().time(), name, dict(status)))
        written = self.change(name, **status)
        if self.loses_answers:
            raise errors.RequestTimeoutError("no answer")
        return written
