"""``clusterregistry aggregated`` behind a host cluster, registered there as an operator does it."""

from __future__ import annotations

import base64
import ssl
import sys
from pathlib import Path
from typing import Any, Self

import clusterregistry
from tests.system.e2e.host_clusters import REGISTRY, HostCluster
from tools import https
from tools.https import Answer
from tools.ports import free_port
from tools.processes import Process, wait_for

NAMESPACE, SERVICE = "clusterregistry", "registry"
GROUP = "clusterregistry.k8s.io"
API_SERVICE = f"/apis/apiregistration.k8s.io/v1/apiservices/v1alpha1.{GROUP}"
CLUSTERS = f"/apis/{GROUP}/v1alpha1/clusters"
_SOURCES = Path(clusterregistry.__file__).parent.parent
_RBAC = "/apis/rbac.authorization.k8s.io/v1"


class Registry:
    """The registry's process, and what the host cluster has to know of it."""

    def __init__(self, host: HostCluster, directory: Path, *flags: str) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.host, self.data = host, directory / "data"
        self.port = free_port()
        command = [
            sys.executable, "-m", "clusterregistry", "aggregated",
            "--bind-address=127.0.0.1",
            f"--secure-port={self.port}",
            f"--advertise-address={SERVICE}.{NAMESPACE}.svc",
            f"--data-dir={self.data}",
            f"--kubeconfig={host.kubeconfig(directory / 'kubeconfig', REGISTRY)}",
            *flags,
        ]  # fmt: skip
        self.process = Process(command, log=directory / "registry.log", environ={"PYTHONPATH": str(_SOURCES)})

    def __enter__(self) -> Self:
        self.grant()
        self.process.start()
        try:
            self.process.wait_until(self.is_ready)
            self.register()
            wait_for(self.is_available, lambda: f"{self.api_service()}\n{self.process.logged()[-4000:]}")
        except BaseException:
            self.process.end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.process.end()

    def grant(self) -> None:
        """The rights that a registry needs in its host cluster."""
        subject = [{"kind": "User", "name": "registry", "apiGroup": "rbac.authorization.k8s.io"}]
        self.host.create(
            f"{_RBAC}/clusterrolebindings",
            {
                "metadata": {"name": "registry-auth-delegator"},
                "roleRef": _role("ClusterRole", "system:auth-delegator"),
                "subjects": subject,
            },
        )
        self.host.create(
            f"{_RBAC}/namespaces/kube-system/rolebindings",
            {
                "metadata": {"name": "registry-auth-reader"},
                "roleRef": _role("Role", "extension-apiserver-authentication-reader"),
                "subjects": subject,
            },
        )

    def register(self) -> None:
        """The service and the APIService by which kube-apiserver finds the registry."""
        self.host.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        # Endpoints must not be on loopback, a name may be.
        self.host.create(
            f"/api/v1/namespaces/{NAMESPACE}/services",
            {"metadata": {"name": SERVICE}, "spec": {"type": "ExternalName", "externalName": "localhost"}},
        )
        self.host.create(
            "/apis/apiregistration.k8s.io/v1/apiservices",
            {
                "metadata": {"name": f"v1alpha1.{GROUP}"},
                "spec": {
                    "group": GROUP,
                    "version": "v1alpha1",
                    "groupPriorityMinimum": 1000,
                    "versionPriority": 10,
                    "service": {"namespace": NAMESPACE, "name": SERVICE, "port": self.port},
                    "caBundle": base64.b64encode((self.data / "ca.crt").read_bytes()).decode(),
                },
            },
        )

    def api_service(self) -> Any:
        return self.host.call("GET", API_SERVICE).body

    def is_available(self) -> bool:
        """Whether kube-apiserver says so, and serves what is behind."""
        conditions = self.api_service().get("status", {}).get("conditions", [])
        if not any(each["type"] == "Available" and each["status"] == "True" for each in conditions):
            return False
        return self.host.call("GET", CLUSTERS).status == 200

    def is_ready(self) -> bool:
        try:
            return self.call("/readyz").status == 200
        except OSError:
            return False

    def call(self, path: str, *, token: str = "", client: tuple[Path, Path] | None = None, **headers: str) -> Answer:
        """The answer of the registry itself, without kube-apiserver in front of it."""
        trust = ssl.create_default_context(cafile=self.data / "ca.crt")
        trust.check_hostname = False
        if client:
            trust.load_cert_chain(*client)
        return https.Server(f"https://127.0.0.1:{self.port}", trust, token).call("GET", path, **headers)


def _role(kind: str, name: str) -> dict[str, str]:
    return {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name}
