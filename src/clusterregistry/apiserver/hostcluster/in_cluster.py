"""The access that Kubernetes gives to every pod. Imported at every start: it imports nothing of the client."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class InCluster:
    """The address of the kube-apiserver. ``files``: the service account, if it is not where a kubelet mounts it."""

    host: str
    port: str
    files: Path | None = None


Access = InCluster | Path
"""How to reach a host cluster: as a pod of it, or with a kubeconfig."""


def in_cluster(environ: Mapping[str, str]) -> InCluster | None:
    """None outside of a pod."""
    host, port = environ.get("KUBERNETES_SERVICE_HOST", ""), environ.get("KUBERNETES_SERVICE_PORT", "")
    return InCluster(host=host, port=port) if host and port else None
