"""Clusters as clients write them."""

from __future__ import annotations

from typing import Any

GROUP_VERSION = "clusterregistry.k8s.io/v1alpha1"
BASE = f"/apis/{GROUP_VERSION}"
CLUSTERS = f"{BASE}/clusters"
OLD_WATCH = f"{BASE}/watch/clusters"

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"

TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
PARTIAL = {"Accept": "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"}
PARTIAL_LIST = {"Accept": "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"}

HOLD = "example.com/hold"


def path_of(name: str) -> str:
    return f"{CLUSTERS}/{name}"


def cluster(name: str, provider: str | None = "aws", **metadata: Any) -> dict[str, Any]:
    """A cluster of this name and cloud provider; keywords are further metadata."""
    obj: dict[str, Any] = {
        "apiVersion": GROUP_VERSION,
        "kind": "Cluster",
        "metadata": {"name": name, **metadata},
    }
    if provider is not None:
        obj["spec"] = {"cloudProvider": {"name": provider}}
    return obj


def endpoints(*given: dict[str, str]) -> dict[str, Any]:
    """A spec with these server endpoints."""
    return {"kubernetesApiEndpoints": {"serverEndpoints": list(given)}}


def names(listed: dict[str, Any]) -> list[str]:
    return [item["metadata"]["name"] for item in listed["items"]]
