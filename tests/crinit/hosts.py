"""A host cluster without nodes: a real etcd and a real kube-apiserver on loopback."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric import rsa

from clusterregistry.crinit.errors import HostError
from clusterregistry.crinit.host.client import Client
from clusterregistry.crinit.host.kubeconfigs import Access
from clusterregistry.pki import issuing
from tests.e2e.real_programs import ETCD, ETCD_RELEASE, HOST_RELEASE, KUBE_APISERVER, host_program

PATIENCE = 90.0
ADMIN, NOBODY = "admin-token", "nobody-token"
_TOKENS = f'{ADMIN},admin,1,"system:masters"\n{NOBODY},mallory,2\n'
_MERGE = "application/merge-patch+json"


def free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in sockets]


class Host:
    """What tests need of a host cluster: kubeconfigs for users, and an administrator's client."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.port, self._etcd_port, self._peer_port = free_ports(3)
        self._make_files()
        self.admin = self.client(ADMIN)

    def _make_files(self) -> None:
        now = time.time()
        authority, key = issuing.new_authority(issuing.new_key(), now=now), issuing.new_key()
        self.ca = issuing.certificate_pem(authority.certificate)
        (self.directory / "ca.crt").write_bytes(self.ca)
        (self.directory / "tls.key").write_bytes(issuing.key_pem(key))
        serving = issuing.serving_certificate(authority, key, names=("127.0.0.1", "localhost"), now=now)
        (self.directory / "tls.crt").write_bytes(serving)
        (self.directory / "front-proxy.crt").write_bytes(
            issuing.client_certificate(authority, key, user="front-proxy", group="", now=now)
        )
        (self.directory / "sa.key").write_bytes(issuing.key_pem(rsa.generate_private_key(65537, 2048)))
        (self.directory / "tokens.csv").write_text(_TOKENS)

    def commands(self) -> tuple[list[str], list[str]]:
        clients, peers = f"http://127.0.0.1:{self._etcd_port}", f"http://127.0.0.1:{self._peer_port}"
        etcd = [
            str(host_program(ETCD, ETCD_RELEASE)),
            f"--data-dir={self.directory / 'etcd'}",
            f"--listen-client-urls={clients}",
            f"--advertise-client-urls={clients}",
            f"--listen-peer-urls={peers}",
            f"--initial-advertise-peer-urls={peers}",
            f"--initial-cluster=default={peers}",
            "--unsafe-no-fsync",
        ]
        files = self.directory
        apiserver = [
            str(host_program(KUBE_APISERVER, HOST_RELEASE)),
            f"--etcd-servers={clients}",
            f"--secure-port={self.port}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--cert-dir={files / 'certs'}",
            f"--tls-cert-file={files / 'tls.crt'}",
            f"--tls-private-key-file={files / 'tls.key'}",
            f"--token-auth-file={files / 'tokens.csv'}",
            f"--service-account-key-file={files / 'sa.key'}",
            f"--service-account-signing-key-file={files / 'sa.key'}",
            f"--requestheader-client-ca-file={files / 'ca.crt'}",
            "--requestheader-allowed-names=front-proxy",
            "--requestheader-username-headers=X-Remote-User",
            "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
            f"--proxy-client-cert-file={files / 'front-proxy.crt'}",
            f"--proxy-client-key-file={files / 'tls.key'}",
            "--service-account-issuer=https://kubernetes.default.svc",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--authorization-mode=RBAC",
            "--disable-admission-plugins=ServiceAccount",
        ]
        return etcd, apiserver

    def client(self, token: str) -> Client:
        cluster = {"server": f"https://127.0.0.1:{self.port}", "certificate-authority": str(self.directory / "ca.crt")}
        return Client(Access("host", cluster, {"token": token}, {}))

    def kubeconfig(self, path: Path, token: str = ADMIN) -> Path:
        """A user's kubeconfig with the context ``host``, and an entry of somebody else."""
        server = f"https://127.0.0.1:{self.port}"
        clusters = [
            {"name": "host", "cluster": {"server": server, "certificate-authority": str(self.directory / "ca.crt")}}
        ]
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "host",
            "clusters": [*clusters, {"name": "other", "cluster": {"server": "https://other.example.com"}}],
            "users": [{"name": "me", "user": {"token": token}}],
            "contexts": [{"name": "host", "context": {"cluster": "host", "user": "me"}}],
        }
        path.write_text(json.dumps(document))
        return path

    def create(self, path: str, document: Any) -> dict[str, Any]:
        return self.admin.call("POST", path, body=document)

    def merge(self, path: str, document: Any) -> dict[str, Any]:
        return self.admin.call("PATCH", path, body=document, media_type=_MERGE)

    def is_ready(self) -> bool:
        try:
            return self.admin.text("/readyz") == "ok" and self.admin.get("/api/v1/namespaces/default") is not None
        except HostError:
            return False


@contextlib.contextmanager
def running(directory: Path) -> Iterator[Host]:
    """From when the host cluster is ready to the end of the block."""
    host = Host(directory)
    with contextlib.ExitStack() as stack:
        for command in host.commands():
            log = stack.enter_context((directory / f"{Path(command[0]).name}.log").open("wb"))
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
            stack.callback(end, process)
        wait_for(host.is_ready)
        yield host


def end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(30)


def wait_for(come_true: Any) -> None:
    until = time.monotonic() + PATIENCE
    while not come_true():
        assert time.monotonic() < until, f"waited for {PATIENCE:.0f} s"
        time.sleep(0.1)
