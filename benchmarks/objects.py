"""The clusters that the load consists of, and the requests' paths and types."""

import base64
import itertools
import random
import time
from typing import Any

PATH = "/apis/clusterregistry.k8s.io/v1alpha1/clusters"
API_VERSION = "clusterregistry.k8s.io/v1alpha1"
PREFIX = "bench-"
"""Every object whose name begins so belongs to the benchmarks."""

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
AS_TABLE = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}
COMPRESSED = {"accept_encoding": "gzip"}
METADATA_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json"

_TIME = "2026-01-02T03:04:05Z"

fresh_numbers = itertools.count(int(time.time() * 1000) % 10**10 * 1000)
"""Values that no earlier run has used: each write changes something."""


def name_of(number: int) -> str:
    return f"{PREFIX}{number:06d}"


def cluster(number: int, name: str = "") -> dict[str, Any]:
    """A cluster of realistic size: about 1.3 KB as sent, 2 to 2.5 KB as stored without its status."""
    return {
        "apiVersion": API_VERSION,
        "kind": "Cluster",
        "metadata": {
            "name": name or name_of(number),
            "labels": {
                "env": ("prod", "staging", "dev")[number % 3],
                "region": f"region-{number % 20}",
                "bucket": f"b{number % 100}",
                "team": f"team-{number % 37}",
                "app.kubernetes.io/managed-by": "bench",
            },
            "annotations": {
                "example.com/owner": f"team-{number % 37}@example.com",
                "example.com/note": "made by benchmarks to measure loads",
            },
        },
        "spec": _spec(number),
    }


def _spec(number: int) -> dict[str, Any]:
    chance = random.Random(number)  # noqa: S311 - the same object for the same number, nothing secret
    address = f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}:6443"
    return {
        "clusterID": f"{chance.getrandbits(128):032x}",
        "kubernetesApiEndpoints": {
            "serverEndpoints": [
                {"clientCIDR": "0.0.0.0/0", "serverAddress": address},
                {"clientCIDR": "10.0.0.0/8", "serverAddress": f"api.c{number}.internal.example.com:6443"},
            ],
            "caBundle": base64.b64encode(chance.randbytes(450)).decode(),
        },
        "cloudProvider": {"name": ("aws", "gce", "azure")[number % 3]},
    }


def status_of(number: int) -> dict[str, Any]:
    some = 3 + number % 50
    offline = {"type": "Offline", "status": "False", "reason": "ClusterReachable", "message": "cluster is reachable"}
    return {
        "conditions": [ready_condition(_TIME), {**offline, "lastHeartbeatTime": _TIME, "lastTransitionTime": _TIME}],
        "version": {"kubernetes": "v1.36.4"},
        "nodes": {"total": some, "ready": some},
        "capacity": {"cpu": str(12 + number % 50), "memory": f"{64 + number % 50}Gi"},
    }


def ready_condition(heartbeat: str) -> dict[str, str]:
    return {
        "type": "OK",
        "status": "True",
        "reason": "ClusterReady",
        "message": "/healthz responded with ok",
        "lastHeartbeatTime": heartbeat,
        "lastTransitionTime": _TIME,
    }
