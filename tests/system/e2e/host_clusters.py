"""A host cluster without nodes: a real etcd and a real kube-apiserver with its aggregation layer, on loopback."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Self

from tests.remote_servers import Authority
from tests.system.e2e.kube_apiservers import ADMIN, JANE, NOBODY, REGISTRY, Etcd, KubeApiserver
from tests.system.e2e.real_programs import HOST

__all__ = ["ADMIN", "CONFIGMAP", "JANE", "NOBODY", "PROXY_NAME", "REGISTRY", "HostCluster"]

PROXY_NAME = "front-proxy-client"
CONFIGMAP = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"


class HostCluster(KubeApiserver):
    """What a registry needs to know of it is in files. ``flags`` are more of kube-apiserver's."""

    made_late = (CONFIGMAP, "/api/v1/namespaces/default")

    def __init__(self, directory: Path, *flags: str) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.proxies = Authority(directory, "proxies")
        # Under one name in all its life, so that a new certificate takes effect at a restart.
        self._proxy_files = directory / "proxy.crt", directory / "proxy.key"
        self._proxy_ca = directory / "proxy-ca.crt"
        self.use_proxy_authority(self.proxies)
        self._etcd = Etcd(directory)
        super().__init__(directory, self._etcd.url, *self._proxy_flags(), *flags)

    def use_proxy_authority(self, authority: Authority, *also_trusted: Authority) -> None:
        """From the next start on kube-apiserver speaks to its extensions with a certificate of this authority.

        They are configured to trust this authority and the others.
        """
        for kept, made in zip(self._proxy_files, authority.client(PROXY_NAME), strict=True):
            kept.write_bytes(made.read_bytes())
        self._proxy_ca.write_bytes(b"".join(each.pem for each in (authority, *also_trusted)))

    def _proxy_flags(self) -> list[str]:
        return [
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


def _uid_headers() -> list[str]:
    """Before 1.33 this flag is refused unless a feature gate is open, which operators do not open."""
    minor = int(HOST.partition(".")[2])
    return ["--requestheader-uid-headers=X-Remote-Uid"] if minor >= 33 else []
