"""The volume of SQLite's file. etcd's volumes are made by its StatefulSet, with the same claim."""

from __future__ import annotations

from clusterregistry.crinit.manifests.objects import Manifest, metadata
from clusterregistry.crinit.settings import Settings, Storage


def claims(settings: Settings) -> list[Manifest]:
    if settings.storage is not Storage.SQLITE or not settings.persistent:
        return []
    return [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": metadata(settings, data_claim(settings)),
            "spec": claim_spec(settings),
        }
    ]


def data_claim(settings: Settings) -> str:
    return f"{settings.name}-data"


def claim_spec(settings: Settings) -> Manifest:
    spec: Manifest = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": settings.capacity}}}
    if settings.storage_class:
        spec["storageClassName"] = settings.storage_class
    return spec
