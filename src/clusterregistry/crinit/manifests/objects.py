"""The names and labels of all objects, and the namespace."""

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
CONTROLLER = "controller"


def labels(settings: Settings, component: str = SERVER) -> dict[str, str]:
    return {**selector(settings, component), MANAGED_BY: CRINIT}


def selector(settings: Settings, component: str = SERVER) -> dict[str, str]:
    """Returns the labels that select pods. The selector of a Deployment is immutable: these must never change."""
    return {NAME: PART, INSTANCE: settings.name, COMPONENT: component}


def metadata(settings: Settings, name: str, *, component: str = SERVER) -> Manifest:
    """Returns the metadata of an object in the namespace of the registry."""
    return {"name": name, "namespace": settings.namespace, "labels": labels(settings, component)}


def cluster_wide(settings: Settings, suffix: str) -> str:
    """Returns a name for a cluster-scoped object that no other registry has."""
    return f"{PART}-{settings.namespace}-{settings.name}-{suffix}"


def namespace(settings: Settings) -> Manifest:
    """Returns the namespace. It takes only pods of the ``restricted`` level.

    Several registries may share it, so that it has the labels of none of them.
    """
    own = {MANAGED_BY: CRINIT, "pod-security.kubernetes.io/enforce": "restricted"}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": settings.namespace, "labels": own}}
