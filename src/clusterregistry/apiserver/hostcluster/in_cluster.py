"""What Kubernetes gives to every pod: where its kube-apiserver is, and files of a service account."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


@dataclass(frozen=True, slots=True, kw_only=True)
class InCluster:
    """The address of the kube-apiserver, and the directory with the service account's ``ca.crt`` and ``token``."""

    host: str
    port: str
    files: Path = SERVICE_ACCOUNT

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"https://{host}:{self.port}"


Access = InCluster | Path
"""How to reach a host cluster: as a pod of it, or with a kubeconfig."""


def in_cluster(environ: Mapping[str, str]) -> InCluster | None:
    """None: this is no pod."""
    host, port = environ.get("KUBERNETES_SERVICE_HOST", ""), environ.get("KUBERNETES_SERVICE_PORT", "")
    return InCluster(host=host, port=port) if host and port else None
