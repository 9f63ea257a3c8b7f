"""The resources that the load is put on: paths, objects, and the keys that the check has for them.

A key without a slash is a cluster, ``leases/NAMESPACE/NAME`` a Lease, and ``namespaces/NAME`` a Namespace. What comes
before a name is the collection that it is in.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.apiserver.api.objects import BASE, GROUP_VERSION
from tests.system.faults.records import ENDING, LEASES, NAMESPACES, Value, Version

PATCHED, APPLIED = "patched", "applied"

Object = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """One resource. An object keeps the token of its last whole write, and that of its status, where fields say."""

    collection: str
    base: str
    api_version: str
    kind: str
    plural: str
    whole: tuple[str, ...]
    status: tuple[str, ...] = ()
    """Empty: it has none that a client writes."""

    def path(self, rest: str) -> str:
        """The path of an object or of a collection; ``rest`` is its key without the name of the resource."""
        namespace, _, name = rest.partition("/") if self.collection == LEASES else ("", "", rest)
        within = f"/namespaces/{namespace}" if namespace else ""
        return f"{self.base}{within}/{self.plural}" + (f"/{name}" if name else "")

    def make(self, key: str, token: str | None, **metadata: Any) -> Object:
        """The object of a key with a token, or without one; keywords are further metadata."""
        *namespace, name = _rest(key).split("/")
        named = {"name": name, **({"namespace": namespace[0]} if namespace else {})}
        obj: Object = {"apiVersion": self.api_version, "kind": self.kind, "metadata": {**named, **metadata}}
        return obj if token is None else put(obj, self.whole, token)

    def key_of(self, obj: Object) -> str:
        metadata = obj["metadata"]
        parts = [self.collection, metadata.get("namespace", ""), metadata["name"]]
        return "/".join(part for part in parts if part)

    def version_of(self, obj: Object) -> Version:
        metadata = obj["metadata"]
        labels = metadata.get("labels", {})
        status = _get(obj, self.status) if self.status else None
        if self.collection == NAMESPACES and status != ENDING:
            status = None
        value = Value(
            whole=_get(obj, self.whole) or "", patch=labels.get(PATCHED), applied=labels.get(APPLIED), status=status
        )
        return Version(int(metadata["resourceVersion"]), metadata["uid"], value)


CLUSTERS = Resource(
    collection="",
    base=BASE,
    api_version=GROUP_VERSION,
    kind="Cluster",
    plural="clusters",
    whole=("spec", "cloudProvider", "name"),
    status=("status", "version", "kubernetes"),
)
ALL_LEASES = Resource(
    collection=LEASES,
    base="/apis/coordination.k8s.io/v1",
    api_version="coordination.k8s.io/v1",
    kind="Lease",
    plural="leases",
    whole=("spec", "holderIdentity"),
)
ALL_NAMESPACES = Resource(
    collection=NAMESPACES,
    base="/api/v1",
    api_version="v1",
    kind="Namespace",
    plural="namespaces",
    whole=("metadata", "labels", "whole"),
    status=("status", "phase"),
)
RESOURCES = (CLUSTERS, ALL_LEASES, ALL_NAMESPACES)

_BY_COLLECTION = {resource.collection: resource for resource in RESOURCES}
_BY_KIND = {resource.kind: resource for resource in RESOURCES}


def resource_of(key: str) -> Resource:
    """The resource of a key."""
    collection, slash, _ = key.partition("/")
    return _BY_COLLECTION[collection if slash else ""]


def resource_of_collection(collection: str) -> Resource:
    return _BY_COLLECTION[collection.partition("/")[0]]


def resource_of_kind(kind: str) -> Resource:
    return _BY_KIND[kind]


def object_path(key: str) -> str:
    return resource_of(key).path(_rest(key))


def collection_path(collection: str) -> str:
    """Of all objects of a resource, or of those in one namespace."""
    resource, (_, _, namespace) = resource_of_collection(collection), collection.partition("/")
    return resource.path(f"{namespace}/" if namespace else "")


def put(obj: Object, fields: tuple[str, ...], value: str) -> Object:
    """Sets a field, however deep, and returns the object."""
    inner = obj
    for field in fields[:-1]:
        inner = inner.setdefault(field, {})
    inner[fields[-1]] = value
    return obj


def _get(obj: Object, fields: tuple[str, ...]) -> str | None:
    for field in fields[:-1]:
        obj = obj.get(field) or {}
    value: str | None = obj.get(fields[-1])
    return value


def _rest(key: str) -> str:
    """A key without the name of the resource."""
    return key.partition("/")[2] or key
