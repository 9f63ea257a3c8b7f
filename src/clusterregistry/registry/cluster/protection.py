"""Deletion protection: no request and no controller deletes a cluster with the annotation."""

from __future__ import annotations

from clusterregistry.api.clusterregistry import GROUP
from clusterregistry.apiserver.registry.strategy import Object

PROTECTED = f"{GROUP}/protected"
"""The annotation that protects a cluster, when it is "true"."""


def check_delete(cluster: Object) -> str:
    """Says why a cluster must not be deleted, and how it can be; empty if it may be deleted."""
    metadata = cluster["metadata"]
    if metadata.get("annotations", {}).get(PROTECTED) != "true":
        return ""
    return (
        f"the annotation {PROTECTED} protects it from deletion. "
        f"To delete it, first remove the annotation: kubectl annotate cluster {metadata['name']} {PROTECTED}-"
    )
