"""A real etcd, and a real kube-apiserver on it with users of its own: the base of host clusters and of members."""

from __future__ import annotations

import json
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric import rsa

from clusterregistry.apimachinery import certificates
from clusterregistry.client.kubeconfig import Context
from clusterregistry.client.rest_config import RestConfig
from clusterregistry.client.transport import Response
from clusterregistry.crinit.host.client import Client
from tests.remote_servers import Authority
from tests.system.e2e.real_programs import ETCD, ETCD_PROGRAM, HOST, KUBE_APISERVER, host_program
from tools import exchanges
from tools.ports import free_port, free_ports
from tools.processes import Process

ADMIN, REGISTRY, JANE, NOBODY = "admin-token", "registry-token", "jane-token", "nobody-token"
_TOKENS = f"""\
{ADMIN},admin,1,"system:masters"
{REGISTRY},registry,2
{JANE},jane,3,"developers"
{NOBODY},mallory,4
"""
_MERGE = "application/merge-patch+json"
_NAMES = ("127.0.0.1", "localhost", "kubernetes.default.svc")


class Etcd:
    """One member of etcd, without certificates, on loopback. ``within`` is a command that runs it elsewhere."""

    def __init__(self, directory: Path, *, within: Sequence[str] = ()) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        port, peer_port = free_ports(2)
        self.url, peers = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{peer_port}"
        command = [
            *within,
            str(host_program(ETCD, ETCD_PROGRAM)),
            f"--data-dir={directory / 'etcd'}",
            f"--listen-client-urls={self.url}",
            f"--advertise-client-urls={self.url}",
            f"--listen-peer-urls={peers}",
            f"--initial-advertise-peer-urls={peers}",
            f"--initial-cluster=default={peers}",
            "--unsafe-no-fsync",
        ]
        self.process = Process(command, log=directory / "etcd.log")

    def start(self) -> None:
        self.process.start()

    def end(self) -> None:
        self.process.end()


class KubeApiserver:
    """A kube-apiserver with authorities, an administrator and a few users; clients and kubeconfigs of them for tests.

    ``flags`` are more of kube-apiserver's. ``made_late`` are objects that are made after it has called itself ready.
    """

    made_late: tuple[str, ...] = ("/api/v1/namespaces/default", "/api/v1/namespaces/kube-system")

    def __init__(
        self, directory: Path, etcd_url: str, *flags: str, release: str = HOST, within: Sequence[str] = ()
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory, self.release, self.port = directory, release, free_port()
        self.url = f"https://127.0.0.1:{self.port}"
        self.users, self.serving = Authority(directory, "users"), Authority(directory, "host")
        (directory / "tokens.csv").write_text(_TOKENS)
        self.account_key.write_bytes(certificates.key_pem(rsa.generate_private_key(65537, 2048)))
        command = [*within, *self._command(etcd_url), *flags]
        self.apiserver = Process(command, log=directory / "kube-apiserver.log")
        self.admin = self.client(ADMIN)

    @property
    def account_key(self) -> Path:
        return self.directory / "sa.key"

    def _command(self, etcd_url: str) -> list[str]:
        certificate, key = self.serving.serving(*_NAMES)
        chosen = KUBE_APISERVER if self.release == HOST else ""
        return [
            str(host_program(chosen, f"kube-apiserver-{self.release}")),
            f"--etcd-servers={etcd_url}",
            f"--secure-port={self.port}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--cert-dir={self.directory / 'certs'}",
            f"--tls-cert-file={certificate}",
            f"--tls-private-key-file={key}",
            f"--client-ca-file={self.users.file}",
            f"--token-auth-file={self.directory / 'tokens.csv'}",
            f"--service-account-key-file={self.account_key}",
            f"--service-account-signing-key-file={self.account_key}",
            "--service-account-issuer=https://kubernetes.default.svc",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--authorization-mode=RBAC",
        ]

    def start(self) -> None:
        self.apiserver.start()
        self.apiserver.wait_until(self._is_ready)

    def go_away(self) -> None:
        """Kills kube-apiserver: on SIGTERM it would first wait for a minute for open watches."""
        self.apiserver.end(signal.SIGKILL)

    def restart(self) -> None:
        self.go_away()
        self.start()

    def _is_ready(self) -> bool:
        return all(exchanges.is_ok(self.access(ADMIN), path) for path in ("/readyz", *self.made_late))

    def call(self, method: str, path: str, body: Any = None, *, token: str = ADMIN, **headers: str) -> Response:
        """The answer, whatever its status."""
        return exchanges.send(self.access(token), method, path, body, **headers)

    def access(self, token: str) -> RestConfig:
        return exchanges.access(self.url, ca_file=self.serving.file, token=token)

    def client(self, token: str) -> Client:
        """A client whose failures are exceptions, where ``call`` answers with a status."""
        return Client(Context(name="host", cluster=self._cluster(), user={"token": token}))

    def create(self, path: str, document: Any) -> dict[str, Any]:
        return self.admin.call("POST", path, body=document)

    def merge(self, path: str, document: Any) -> dict[str, Any]:
        return self.admin.call("PATCH", path, body=document, media_type=_MERGE)

    def kubeconfig(self, path: Path, token: str = ADMIN) -> Path:
        """Writes a user's kubeconfig with the context ``host``, and an entry of another cluster."""
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "host",
            "clusters": [
                {"name": "host", "cluster": self._cluster()},
                {"name": "other", "cluster": {"server": "https://other.example.com"}},
            ],
            "users": [{"name": "me", "user": {"token": token}}],
            "contexts": [{"name": "host", "context": {"cluster": "host", "user": "me"}}],
        }
        path.write_text(json.dumps(document))
        return path

    def _cluster(self) -> dict[str, str]:
        return {"server": self.url, "certificate-authority": str(self.serving.file)}
