"""Signing requests with real keys."""

from __future__ import annotations

import base64
from functools import cache
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from clusterregistry.api.certificates import GROUP
from clusterregistry.api.certificates.v1.types import CLIENT_SIGNER

Key = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey | ed448.Ed448PrivateKey

USAGES = ["client auth", "digital signature"]


@cache
def key(kind: str) -> Key:
    """A key: ``rsa2048``, ``secp256r1`` or ``ed25519``, for example. Each is made once."""
    if kind.startswith("rsa"):
        return rsa.generate_private_key(65537, int(kind.removeprefix("rsa")))
    if kind == "ed25519":
        return ed25519.Ed25519PrivateKey.generate()
    if kind == "ed448":
        return ed448.Ed448PrivateKey.generate()
    curves: dict[str, type[ec.EllipticCurve]] = {
        each.name: each for each in (ec.SECP224R1, ec.SECP256R1, ec.SECP384R1, ec.SECP521R1, ec.SECP256K1)
    }
    return ec.generate_private_key(curves[kind]())


def subject(name: str = "jane", *groups: str) -> x509.Name:
    attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    return x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, name)])


def pkcs10(
    kind: str = "ed25519", *, name: x509.Name | None = None, alternatives: tuple[x509.GeneralName, ...] = ()
) -> bytes:
    """A request in PEM, for jane of the group devs by default."""
    private = key(kind)
    builder = x509.CertificateSigningRequestBuilder().subject_name(name or subject("jane", "devs"))
    if alternatives:
        builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
    has_own_hash = isinstance(private, (ed25519.Ed25519PrivateKey, ed448.Ed448PrivateKey))
    return builder.sign(private, None if has_own_hash else hashes.SHA256()).public_bytes(Encoding.PEM)


def in_base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def pem(label: str, content: bytes) -> bytes:
    body = base64.encodebytes(content)
    return b"-----BEGIN %b-----\n%b-----END %b-----\n" % (label.encode(), body, label.encode())


def der(data: bytes) -> bytes:
    """The content of the first block of a text in PEM."""
    return base64.b64decode(b"".join(line for line in data.splitlines() if not line.startswith(b"-----")))


def signing_request(name: str = "jane", data: bytes | None = None, **spec: Any) -> dict[str, Any]:
    """A CertificateSigningRequest as a client sends it. A field of the spec that is None is left out."""
    fields: dict[str, Any] = {
        "request": in_base64(data if data is not None else pkcs10()),
        "signerName": CLIENT_SIGNER,
        "usages": USAGES,
    }
    fields |= spec
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"name": name},
        "spec": {field: value for field, value in fields.items() if value is not None},
        "status": {},
    }


def condition(kind: str, status: str = "True", **fields: str) -> dict[str, str]:
    return {"type": kind, "status": status, **fields}
