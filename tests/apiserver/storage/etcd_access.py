"""Access to the etcd of a test: certificates and a user, created for each cluster."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from clusterregistry.apimachinery import certificates


@dataclass(frozen=True, kw_only=True)
class Access:
    """What is not asked for is None, or empty."""

    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None
    user: str = ""
    password: str = ""

    def without_certificate(self) -> Access:
        return replace(self, certificate=None, key=None)

    def as_user(self, user: str, password: str) -> Access:
        return replace(self, user=user, password=password)

    def flags(self) -> Iterator[str]:
        """The same for etcdctl."""
        for flag, file in {"cacert": self.ca, "cert": self.certificate, "key": self.key}.items():
            if file is not None:
                yield f"--{flag}={file}"
        if self.user:
            yield f"--user={self.user}:{self.password}"


@dataclass(frozen=True)
class EtcdAuthority:
    """A certificate authority that has issued one certificate to the servers and one to the clients."""

    directory: Path

    @property
    def access(self) -> Access:
        named = {name: self.directory / f"{name}.pem" for name in ("ca", "client", "client-key")}
        return Access(ca=named["ca"], certificate=named["client"], key=named["client-key"])

    def server_flags(self, *, client_certificates: bool) -> Iterator[str]:
        yield f"--cert-file={self.directory / 'server.pem'}"
        yield f"--key-file={self.directory / 'server-key.pem'}"
        if client_certificates:
            yield "--client-cert-auth"
            yield f"--trusted-ca-file={self.directory / 'ca.pem'}"


def authority_in(directory: Path) -> EtcdAuthority:
    """Makes an authority and its certificates in a directory."""
    now = time.time()
    authority = certificates.new_authority(certificates.new_key(), now=now)
    server, client = certificates.new_key(), certificates.new_key()
    names = ("127.0.0.1", "localhost")
    written = {
        "ca": certificates.certificate_pem(authority.certificate),
        "server": certificates.serving_certificate(authority, server, names=names, now=now),
        "server-key": certificates.key_pem(server),
        "client": certificates.client_certificate(authority, client, user="registry", group="", now=now),
        "client-key": certificates.key_pem(client),
    }
    for name, content in written.items():
        (directory / f"{name}.pem").write_bytes(content)
    return EtcdAuthority(directory)
