"""Serving certificates of operators, made with the openssl command."""

from __future__ import annotations

from pathlib import Path

from clusterregistry.apiserver.pki.own_certificate import OwnCertificate
from tests.apiserver.server.authorities import EC, Holder, openssl

FOR_SERVERS = (
    "subjectAltName=IP:127.0.0.1,DNS:registry.example.com\nextendedKeyUsage=serverAuth\nauthorityKeyIdentifier=keyid\n"
)
"""Clients in Python 3.13 and newer want to see the identifier of the authority."""


def serving(signer: Holder, name: str) -> Holder:
    return signer.issue(name, extensions=FOR_SERVERS)


def self_signed(directory: Path, name: str = "self-signed") -> Holder:
    """Signed by itself, and no authority."""
    directory.mkdir(parents=True, exist_ok=True)
    made = Holder(directory, name)
    openssl("req", "-x509", "-newkey", *EC, "-nodes", "-keyout", made.key, "-out", made.certificate,
            "-subj", f"/CN={name}", "-days", "10", "-addext", "subjectAltName=IP:127.0.0.1",
            "-addext", "basicConstraints=critical,CA:false")  # fmt: skip
    return made


def own(holder: Holder, *behind: Path, authorities: Path | None = None) -> OwnCertificate:
    """A file with the certificate and those that follow it, as --tls-cert-file names it."""
    path = holder.directory / f"{holder.name}.pem"
    path.write_text("".join(each.read_text() for each in (holder.certificate, *behind)))
    return OwnCertificate(certificate=path, key=holder.key, authorities=authorities)
