"""Client certificates for tests, as TLS would hand them over."""

from __future__ import annotations

import datetime as dt
from functools import cache

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID, ObjectIdentifier

CN, O = NameOID.COMMON_NAME, NameOID.ORGANIZATION_NAME  # noqa: E741 - what they are called in a subject
UID = ObjectIdentifier("1.3.6.1.4.1.57683.2")
CLIENT, SERVER, ANY = (
    ExtendedKeyUsageOID.CLIENT_AUTH,
    ExtendedKeyUsageOID.SERVER_AUTH,
    ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE,
)
START = 1_800_000_000.0
END = START + 3600


@cache
def _key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def der(*subject: tuple[ObjectIdentifier, str], usages: tuple[ObjectIdentifier, ...] | None = (CLIENT,)) -> bytes:
    name = x509.Name([x509.NameAttribute(oid, value) for oid, value in subject])
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(_key().public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(dt.datetime.fromtimestamp(START, dt.UTC))
        .not_valid_after(dt.datetime.fromtimestamp(END, dt.UTC))
    )
    if usages is not None:
        builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
    return builder.sign(_key(), hashes.SHA256()).public_bytes(Encoding.DER)
