"""What a simulated member says about itself: documents as kube-apiserver writes them, with only the usual fields."""

from __future__ import annotations

import base64
import gzip
import json
import uuid
from dataclasses import dataclass, field
from typing import Any

Document = dict[str, Any]
NOTE = "simulated.invalid/simulated"
"""A label on every object: nothing here is a real cluster."""

_PLACES = (
    ("eu-north", "stockholm", 59.33, 18.07), ("eu-west", "dublin", 53.35, -6.26),
    ("eu-central", "frankfurt", 50.11, 8.68), ("us-east", "ashburn", 39.04, -77.49),
    ("us-west", "portland", 45.52, -122.68), ("sa-east", "sao-paulo", -23.55, -46.63),
    ("ap-south", "mumbai", 19.08, 72.88), ("ap-northeast", "tokyo", 35.68, 139.69),
    ("ap-southeast", "sydney", -33.87, 151.21), ("af-south", "cape-town", -33.92, 18.42),
)  # fmt: skip
_VERSIONS = ("v1.36.4", "v1.36.1", "v1.35.4", "v1.34.4", "v1.33.13")
_IMAGES = 12


@dataclass(frozen=True, slots=True)
class Place:
    """Where a member pretends to be."""

    region: str
    city: str
    latitude: float
    longitude: float


@dataclass(frozen=True, slots=True)
class HelmRelease:
    """A release as Helm records it in a Secret."""

    name: str
    namespace: str = "default"
    chart: str = ""
    chart_version: str = "1.0.0"
    revision: int = 1
    status: str = "deployed"


@dataclass(slots=True)
class Contents:
    """The changeable state of a member."""

    version: str
    kube_system_uid: str
    nodes: int = 3
    not_ready: int = 0
    """The first so many nodes are not ready."""
    pods: int = 40
    deployments: int = 6
    releases: list[HelmRelease] = field(default_factory=list)
    events: int = 3


def place(number: int) -> Place:
    return Place(*_PLACES[number % len(_PLACES)])


def contents(number: int, *, name: str) -> Contents:
    """The same for a number and a name in every run."""
    return Contents(
        version=_VERSIONS[number % len(_VERSIONS)],
        kube_system_uid=str(uuid.uuid5(uuid.NAMESPACE_DNS, f"{name}.simulated.invalid")),
        nodes=3 + number % 3,
        pods=30 + 7 * number % 200,
        releases=[
            HelmRelease("ingress", "ingress", "ingress-nginx", f"4.{number % 3}.0", 1 + number % 4),
            HelmRelease("metrics", "monitoring", "metrics-server", "3.12.1"),
        ],
    )


def dump(document: Document) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode()


def status(code: int, reason: str, message: str, **details: Any) -> bytes:
    """A failure as an API server answers it."""
    return dump({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason, "details": details, "code": code,
    })  # fmt: skip


def object_list(api_version: str, kind: str, items: list[Document], **metadata: Any) -> Document:
    return {
        "kind": f"{kind}List",
        "apiVersion": api_version,
        "metadata": {"resourceVersion": "1", **metadata},
        "items": items,
    }


def page(api_version: str, kind: str, items: list[Document], *, offset: int, limit: int) -> bytes:
    """A page of a list; the continue token is the offset of the next one."""
    rest = len(items) - offset - limit if limit else 0
    more = {"continue": str(offset + limit), "remainingItemCount": rest} if rest > 0 else {}
    shown = items[offset : offset + limit] if limit else items[offset:]
    return dump(object_list(api_version, kind, shown, **more))


def version_document(version: str) -> bytes:
    major, minor = version.lstrip("v").split(".")[:2]
    return dump({
        "major": major, "minor": minor, "gitVersion": version, "gitCommit": "0" * 40, "gitTreeState": "simulated",
        "buildDate": "2026-01-01T00:00:00Z", "goVersion": "none", "compiler": "none", "platform": "simulated",
    })  # fmt: skip


def metadata(name: str, namespace: str = "", **more: Any) -> Document:
    where = {"namespace": namespace} if namespace else {}
    uid = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{namespace}/{name}"))
    return {
        "name": name, **where, "uid": uid, "resourceVersion": "1", "creationTimestamp": "2026-01-01T00:00:00Z",
        "labels": {NOTE: "true"}, **more,
    }  # fmt: skip


def namespace(name: str, uid: str) -> Document:
    found = {**metadata(name), "uid": uid}
    return {"kind": "Namespace", "apiVersion": "v1", "metadata": found, "status": {"phase": "Active"}}


def node(index: int, *, is_ready: bool, version: str) -> Document:
    """A node of some 4 KB, half of it the list of images, as on real nodes."""
    name = f"node-{index:04d}"
    amounts = {
        "cpu": "8",
        "memory": "32877940Ki",
        "pods": "110",
        "ephemeral-storage": "101430960Ki",
        "hugepages-2Mi": "0",
    }
    image = "registry.simulated.invalid/team/component-{}@sha256:" + "0" * 64
    conditions = [
        _condition("MemoryPressure", "False"), _condition("DiskPressure", "False"), _condition("PIDPressure", "False"),
        _condition("Ready", "True" if is_ready else "False"),
    ]  # fmt: skip
    return {
        "metadata": {**metadata(name), "annotations": {"node.alpha.kubernetes.io/ttl": "0"}},
        "spec": {"podCIDR": f"10.{index % 250}.0.0/24", "providerID": f"simulated:///{name}"},
        "status": {
            "capacity": amounts,
            "allocatable": {**amounts, "cpu": "7910m", "memory": "31754Mi"},
            "conditions": conditions,
            "addresses": [{"type": "InternalIP", "address": f"10.0.{index // 250}.{index % 250}"}],
            "nodeInfo": {"kubeletVersion": version, "osImage": "simulated", "architecture": "amd64"},
            "images": [
                {
                    "names": [image.format(number), f"registry.simulated.invalid/team/component-{number}:1"],
                    "sizeBytes": 1 << 26,
                }
                for number in range(_IMAGES)
            ],
        },
    }


def _condition(kind: str, value: str) -> Document:
    return {
        "type": kind, "status": value, "lastHeartbeatTime": "2026-01-01T00:00:00Z",
        "lastTransitionTime": "2026-01-01T00:00:00Z", "reason": "Simulated", "message": "simulated",
    }  # fmt: skip


def deployment(index: int) -> Document:
    counts = {"replicas": 2, "readyReplicas": 2, "availableReplicas": 2, "updatedReplicas": 2}
    return {"metadata": metadata(f"app-{index}", "default"), "spec": {"replicas": 2}, "status": counts}


def pod(index: int) -> Document:
    return {"metadata": metadata(f"pod-{index}", "default"), "status": {"phase": "Running"}}


def event(index: int) -> Document:
    regarding = {"kind": "Pod", "namespace": "default", "name": f"pod-{index}"}
    return {
        "metadata": metadata(f"pod-{index}.{index:x}", "default"), "involvedObject": regarding, "type": "Normal",
        "reason": "Simulated", "message": "a simulated event", "count": 1, "lastTimestamp": "2026-01-01T00:00:00Z",
    }  # fmt: skip


def release_secret(release: HelmRelease) -> Document:
    """A release as Helm 3 and 4 store it: base64 of the API around base64 of gzip of JSON."""
    labels = {
        NOTE: "true",
        "owner": "helm",
        "name": release.name,
        "status": release.status,
        "version": str(release.revision),
    }
    payload = {
        "name": release.name, "namespace": release.namespace, "version": release.revision,
        "info": {"status": release.status, "last_deployed": "2026-01-01T00:00:00Z", "description": "simulated"},
        "chart": {"metadata": {"name": release.chart or release.name, "version": release.chart_version}},
        "manifest": "", "config": {},
    }  # fmt: skip
    packed = base64.b64encode(base64.b64encode(gzip.compress(dump(payload), mtime=0))).decode()
    name = f"sh.helm.release.v1.{release.name}.v{release.revision}"
    found = metadata(name, release.namespace, labels=labels)
    return {"metadata": found, "type": "helm.sh/release.v1", "data": {"release": packed}}
