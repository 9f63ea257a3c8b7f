"""Client certificates for tests, as TLS would hand them over."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from functools import cache
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID, ObjectIdentifier

from clusterregistry.apiserver.authn.certificates import Authorities

CN, O = NameOID.COMMON_NAME, NameOID.ORGANIZATION_NAME  # noqa: E741 - what they are called in a subject
UID = ObjectIdentifier("1.3.6.1.4.1.57683.2")
CLIENT, SERVER, ANY = (
    ExtendedKeyUsageOID.CLIENT_AUTH,
    ExtendedKeyUsageOID.SERVER_AUTH,
    ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE,
)
START = 1_800_000_000.0
END = START + 3600
Subject = tuple[tuple[ObjectIdentifier, str], ...]
CA = x509.BasicConstraints(ca=True, path_length=None)


@dataclass(frozen=True)
class Party:
    """A certificate and its key: of an authority or of a client."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def der(self) -> bytes:
        return self.certificate.public_bytes(Encoding.DER)

    @property
    def pem(self) -> str:
        return self.certificate.public_bytes(Encoding.PEM).decode()

    def issue(self, name: str, **how: Any) -> Party:
        """A certificate for a name, signed by this party; ``how`` as in ``issued``."""
        return issued(((CN, name),), by=self, **how)

    def authority(self, name: str, **how: Any) -> Party:
        return self.issue(name, **{"extensions": (CA,), **how})


def issued(  # noqa: PLR0913 - what a certificate is made of, all by keyword
    subject: Subject,
    *,
    by: Party | None = None,
    start: float = START,
    end: float = END,
    extensions: tuple[x509.ExtensionType, ...] = (),
    key: ec.EllipticCurvePrivateKey | None = None,
) -> Party:
    """A certificate signed by a party, or self-signed."""
    name = x509.Name([x509.NameAttribute(oid, value) for oid, value in subject])
    own = key or ec.generate_private_key(ec.SECP256R1())
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(by.certificate.subject if by else name)
        .public_key(own.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(dt.datetime.fromtimestamp(start, dt.UTC))
        .not_valid_after(dt.datetime.fromtimestamp(end, dt.UTC))
    )
    for extension in extensions:
        builder = builder.add_extension(extension, critical=False)
    return Party(builder.sign(by.key if by else own, hashes.SHA256()), own)


def root(name: str = "root", **how: Any) -> Party:
    return issued(((CN, name),), **{"extensions": (CA,), **how})


def use(*usages: ObjectIdentifier) -> x509.ExtendedKeyUsage:
    return x509.ExtendedKeyUsage(usages)


@cache
def client_root() -> Party:
    """The authority of those tests that do not care which one it is."""
    return root("clients")


def clients() -> Authorities:
    return Authorities(client_root().pem)


def der(*subject: tuple[ObjectIdentifier, str], usages: tuple[ObjectIdentifier, ...] | None = (CLIENT,)) -> bytes:
    """A client certificate of that authority."""
    return issued(subject, by=client_root(), extensions=() if usages is None else (use(*usages),)).der
