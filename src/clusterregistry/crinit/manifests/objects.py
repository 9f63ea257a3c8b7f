"""What all manifests have in common: names and labels."""

from __future__ import annotations

from typing import Any

from clusterregistry.crinit.settings import Settings

Manifest = dict[str, Any]

MANAGED_BY = "app.kubernetes.io/managed-by"
INSTANCE = "app.kubernetes.io/instance"
NAME = "app.kubernetes.io/name"
COMPONENT = "app.kubernetes.io/component"
CRINIT = "crinit"
PART = "clusterregistry"

SERVER = "server"
ETCD = "etcd"


def labels(settings: Settings, component: str = SERVER) -> dict[str, str]:
    return {**selector(settings, component), MANAGED_BY: CRINIT}


def selector(settings: Settings, component: str = SERVER) -> dict[str, str]:
    """The labels by which pods are found. A Deployment's selector can never change: neither may these."""
    return {NAME: PART, INSTANCE: settings.name, COMPONENT: component}


def metadata(settings: Settings, name: str, *, component: str = SERVER) -> Manifest:
    """Of an object in the registry's namespace."""
    return {"name": name, "namespace": settings.namespace, "labels": labels(settings, component)}


def cluster_wide(settings: Settings, suffix: str) -> str:
    """A name for what lies outside of the namespace: two registries must not meet there."""
    return f"{PART}-{settings.namespace}-{settings.name}-{suffix}"
