"""The namespace. It takes only pods of the ``restricted`` level, which ours are."""

from __future__ import annotations

from clusterregistry.crinit.manifests.objects import CRINIT, MANAGED_BY, Manifest
from clusterregistry.crinit.settings import Settings


def namespace(settings: Settings) -> Manifest:
    """Several registries may share it, so that it names none of them."""
    labels = {MANAGED_BY: CRINIT, "pod-security.kubernetes.io/enforce": "restricted"}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": settings.namespace, "labels": labels}}
