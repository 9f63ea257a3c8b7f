"""A host cluster without nodes: a real etcd and a real kube-apiserver with its aggregation layer, on loopback."""

from __future__ import annotations

import contextlib
import json
import signal
from pathlib import Path
from typing import Any, Self

from cryptography.hazmat.primitives.asymmetric import rsa

from clusterregistry.apimachinery import certificates
from clusterregistry.client.kubeconfig import Context
from clusterregistry.client.rest_config import RestConfig
from clusterregistry.client.transport import Response
from clusterregistry.crinit.host.client import Client
from tests.remote_servers import Authority
from tests.system.e2e.real_programs import ETCD, ETCD_PROGRAM, HOST, HOST_PROGRAM, KUBE_APISERVER, host_program
from tools import exchanges
from tools.ports import free_ports
from tools.processes import Process

ADMIN, REGISTRY, JANE, NOBODY = "admin-token", "registry-token", "jane-token", "nobody-token"
_TOKENS = f"""\
{ADMIN},admin,1,"system:masters"
{REGISTRY},registry,2
{JANE},jane,3,"developers"
{NOBODY},mallory,4
"""
PROXY_NAME = "front-proxy-client"
CONFIGMAP = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
_MADE_LATE = (CONFIGMAP, "/api/v1/namespaces/default")
"""What kube-apiserver makes after it has called itself ready."""
_MERGE = "application/merge-patch+json"


class HostCluster:
    """What a registry needs to know of it is in files; for tests there are clients and kubeconfigs of its users.

    ``flags`` are more of kube-apiserver's.
    """

    def __init__(self, directory: Path, *flags: str) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self.port, etcd_port, peer_port = free_ports(3)
        self.users, self.serving = Authority(directory, "users"), Authority(directory, "host")
        self.proxies = Authority(directory, "proxies")
        # Under one name in all its life, so that a new certificate takes effect at a restart.
        self._proxy_files = directory / "proxy.crt", directory / "proxy.key"
        self._proxy_ca = directory / "proxy-ca.crt"
        self.use_proxy_authority(self.proxies)
        (directory / "tokens.csv").write_text(_TOKENS)
        (directory / "sa.key").write_bytes(certificates.key_pem(rsa.generate_private_key(65537, 2048)))
        self._etcd = Process(self._etcd_command(etcd_port, peer_port), log=directory / "etcd.log")
        self.apiserver = Process([*self._apiserver_command(etcd_port), *flags], log=directory / "kube-apiserver.log")
        self.admin = self.client(ADMIN)

    def use_proxy_authority(self, authority: Authority, *also_trusted: Authority) -> None:
        """From the next start on kube-apiserver speaks to its extensions with a certificate of this authority.

        They are configured to trust this authority and the others.
        """
        for kept, made in zip(self._proxy_files, authority.client(PROXY_NAME), strict=True):
            kept.write_bytes(made.read_bytes())
        self._proxy_ca.write_bytes(b"".join(each.pem for each in (authority, *also_trusted)))

    def _etcd_command(self, client: int, peer: int) -> list[str]:
        clients, peers = f"http://127.0.0.1:{client}", f"http://127.0.0.1:{peer}"
        return [
            str(host_program(ETCD, ETCD_PROGRAM)),
            f"--data-dir={self.directory / 'etcd'}",
            f"--listen-client-urls={clients}",
            f"--advertise-client-urls={clients}",
            f"--listen-peer-urls={peers}",
            f"--initial-advertise-peer-urls={peers}",
            f"--initial-cluster=default={peers}",
            "--unsafe-no-fsync",
        ]

    def _apiserver_command(self, etcd_port: int) -> list[str]:
        certificate, key = self.serving.serving("127.0.0.1", "localhost", "kubernetes.default.svc")
        account_key = self.directory / "sa.key"
        return [
            str(host_program(KUBE_APISERVER, HOST_PROGRAM)),
            f"--etcd-servers=http://127.0.0.1:{etcd_port}",
            f"--secure-port={self.port}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--cert-dir={self.directory / 'certs'}",
            f"--tls-cert-file={certificate}",
            f"--tls-private-key-file={key}",
            f"--client-ca-file={self.users.file}",
            f"--token-auth-file={self.directory / 'tokens.csv'}",
            f"--service-account-key-file={account_key}",
            f"--service-account-signing-key-file={account_key}",
            "--service-account-issuer=https://kubernetes.default.svc",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--authorization-mode=RBAC",
            f"--requestheader-client-ca-file={self._proxy_ca}",
            f"--requestheader-allowed-names={PROXY_NAME}",
            "--requestheader-username-headers=X-Remote-User",
            *_uid_headers(),
            "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
            f"--proxy-client-cert-file={self._proxy_files[0]}",
            f"--proxy-client-key-file={self._proxy_files[1]}",
        ]

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            stack.callback(self._etcd.end)
            self._etcd.start()
            stack.callback(self.go_away)
            self.start()
            stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self.go_away()
        self._etcd.end()

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
        return all(exchanges.is_ok(self._access(ADMIN), path) for path in ("/readyz", *_MADE_LATE))

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    def call(self, method: str, path: str, body: Any = None, *, token: str = ADMIN, **headers: str) -> Response:
        """The answer, whatever its status."""
        return exchanges.send(self._access(token), method, path, body, **headers)

    def _access(self, token: str) -> RestConfig:
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


def _uid_headers() -> list[str]:
    """Before 1.33 this flag is refused unless a feature gate is open, which operators do not open."""
    minor = int(HOST.partition(".")[2])
    return ["--requestheader-uid-headers=X-Remote-Uid"] if minor >= 33 else []
