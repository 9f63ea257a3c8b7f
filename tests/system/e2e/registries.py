"""``clusterregistry aggregated`` behind a host cluster, registered there as an operator does it."""

from __future__ import annotations

import base64
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import clusterregistry
from clusterregistry.client.rest_config import RestConfig
from clusterregistry.client.transport import Response
from tests.system.e2e.host_clusters import REGISTRY, HostCluster
from tools import exchanges
from tools.ports import free_port
from tools.processes import Process, wait_for

NAMESPACE, SERVICE = "clusterregistry", "registry"
GROUP = "clusterregistry.k8s.io"
PRIORITIES = {"v1beta1": 20, "v1alpha1": 15}
CLUSTERS = f"/apis/{GROUP}/v1alpha1/clusters"
_SOURCES = Path(clusterregistry.__file__).parent.parent
_API_SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
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
            wait_for(self.is_available, lambda: f"{self.api_services()}\n{self.process.logged()[-4000:]}")
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
        """The service and the APIServices by which kube-apiserver finds the registry."""
        self.host.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        # Endpoints must not be on loopback, a name may be.
        self.host.create(
            f"/api/v1/namespaces/{NAMESPACE}/services",
            {"metadata": {"name": SERVICE}, "spec": {"type": "ExternalName", "externalName": "localhost"}},
        )
        for version, priority in PRIORITIES.items():
            self.host.create(
                _API_SERVICES,
                {
                    "metadata": {"name": f"{version}.{GROUP}"},
                    "spec": {
                        "group": GROUP,
                        "version": version,
                        "groupPriorityMinimum": 1000,
                        "versionPriority": priority,
                        "service": {"namespace": NAMESPACE, "name": SERVICE, "port": self.port},
                        "caBundle": base64.b64encode((self.data / "ca.crt").read_bytes()).decode(),
                    },
                },
            )

    def api_services(self) -> list[Any]:
        paths = [f"{_API_SERVICES}/{version}.{GROUP}" for version in PRIORITIES]
        return [exchanges.decoded(self.host.call("GET", path)) for path in paths]

    def is_available(self) -> bool:
        """Whether kube-apiserver says so of every version, and serves what is behind."""
        for found in self.api_services():
            conditions = found.get("status", {}).get("conditions", [])
            if not any(each["type"] == "Available" and each["status"] == "True" for each in conditions):
                return False
        paths = [f"/apis/{GROUP}/{version}/clusters" for version in PRIORITIES]
        return all(self.host.call("GET", path).status == 200 for path in paths)

    def is_ready(self) -> bool:
        return exchanges.is_ok(self._access(), "/readyz")

    def call(self, path: str, *, token: str = "", client: Sequence[Path] = (), **headers: str) -> Response:
        """The answer of the registry itself, without kube-apiserver in front of it."""
        return exchanges.send(self._access(token=token, identity=client), "GET", path, **headers)

    def _access(self, **credentials: Any) -> RestConfig:
        name = f"{SERVICE}.{NAMESPACE}.svc"
        url, ca_file = f"https://127.0.0.1:{self.port}", self.data / "ca.crt"
        return exchanges.access(url, ca_file=ca_file, tls_server_name=name, **credentials)


def _role(kind: str, name: str) -> dict[str, str]:
    return {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name}
