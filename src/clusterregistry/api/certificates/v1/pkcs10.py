"""The PKCS#10 request in a CertificateSigningRequest, and the messages of Go's crypto/x509 for one that is wrong.

``cryptography`` is imported with the first request: most servers never see one.
"""

from __future__ import annotations

import re
import warnings
from typing import TYPE_CHECKING

from clusterregistry.api.certificates.v1.pem_blocks import pem_blocks

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.types import CertificateIssuerPublicKeyTypes

LABEL = "CERTIFICATE REQUEST"

MAX_BYTES = 64 * 1024
"""The PEM of a request with the largest usual key takes 6 KiB. Kubernetes has no limit of its own."""

ORGANIZATION_OID = "2.5.4.10"
COMMON_NAME_OID = "2.5.4.3"

_CURVES = ("secp224r1", "secp256r1", "secp384r1", "secp521r1")
_SEQUENCE = 0x30
_LEAST_RSA_BITS = 1024
_TRUNCATED = re.compile(r"kind: ShortData\b")
_EXTRA = re.compile(r"kind: ExtraData\b")


class MalformedRequestError(ValueError):
    """A request that cannot be read, or whose signature is wrong. The message is Go's, where Go has one."""


def parse_request(data: bytes) -> x509.CertificateSigningRequest:
    """The request in the first PEM block. Raises MalformedRequestError; the signature is not verified.

    Everything in it that is used later has been read: reading that again raises nothing. The caller limits the size.
    """
    block = next(pem_blocks(data), None)
    if block is None or block.label != LABEL:
        raise MalformedRequestError(f"PEM block type must be {LABEL}")
    return _parse_der(block.content)


def verify_signature(request: x509.CertificateSigningRequest) -> None:
    """Raises MalformedRequestError unless the request is signed with its own key."""
    from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415 - slow import
    from cryptography.hazmat.primitives import hashes  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa  # noqa: PLC0415

    key = request.public_key()
    if not isinstance(key, (rsa.RSAPublicKey, ec.EllipticCurvePublicKey, ed25519.Ed25519PublicKey)):
        raise MalformedRequestError("x509: cannot verify signature: algorithm unimplemented")
    try:
        weak = request.signature_hash_algorithm
    except UnsupportedAlgorithm:
        raise MalformedRequestError("x509: cannot verify signature: algorithm unimplemented") from None
    if isinstance(weak, (hashes.MD5, hashes.SHA1)):  # Go still accepts SHA-1 here
        name = f"{weak.name.upper()}-RSA" if isinstance(key, rsa.RSAPublicKey) else f"ECDSA-{weak.name.upper()}"
        raise MalformedRequestError(f"x509: cannot verify signature: insecure algorithm {name}")
    if isinstance(key, rsa.RSAPublicKey) and key.key_size < _LEAST_RSA_BITS:
        see = "see https://go.dev/pkg/crypto/rsa#hdr-Minimum_key_size"
        raise MalformedRequestError(f"crypto/rsa: {key.key_size}-bit keys are insecure ({see})")
    if not _is_signed(request):
        raise MalformedRequestError(_failure(key))


def _is_signed(request: x509.CertificateSigningRequest) -> bool:
    try:
        return request.is_signature_valid
    except Exception:  # noqa: BLE001 - the library has no common error for algorithms and keys that do not fit
        return False


def organizations(request: x509.CertificateSigningRequest) -> list[str]:
    """The organizations of the subject: the groups of the user that a client certificate is for."""
    return [str(each.value) for each in request.subject if each.oid.dotted_string == ORGANIZATION_OID]


def _failure(key: CertificateIssuerPublicKeyTypes) -> str:
    match type(key).__name__:
        case "RSAPublicKey":
            return "crypto/rsa: verification error"
        case "ECPublicKey":
            return "x509: ECDSA verification failure"
    return "x509: Ed25519 verification failure"


def _parse_der(content: bytes) -> x509.CertificateSigningRequest:
    from cryptography import x509  # noqa: PLC0415 - slow import
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415

    if wrong := _header_problem(content):
        raise MalformedRequestError(wrong)
    # The library warns of names that are longer than X.520 has them, as names of users may be.
    warnings.filterwarnings("ignore", message="Attribute's length must be")
    try:
        request = x509.load_der_x509_csr(content)
        key, _, _ = request.public_key(), request.subject, request.extensions
    except Exception as error:  # noqa: BLE001 - the library has no common error type for what is malformed
        raise MalformedRequestError(_parse_problem(error)) from None
    if isinstance(key, ec.EllipticCurvePublicKey) and key.curve.name not in _CURVES:
        raise MalformedRequestError("x509: unsupported elliptic curve")
    return request


def _parse_problem(error: Exception) -> str:
    text = str(error)
    if _TRUNCATED.search(text):
        return "asn1: syntax error: data truncated"
    if _EXTRA.search(text):
        return "asn1: syntax error: trailing data"
    return "asn1: structure error: it is no certificate request"


def _header_problem(content: bytes) -> str:
    """What Go says of a content that does not begin with a sequence; empty where it does, or where that is unclear."""
    if not content:
        return "asn1: syntax error: sequence truncated"
    tag = content[0]
    if tag == _SEQUENCE or tag & 0x1F == 0x1F or len(content) < 2 or content[1] >= 0x80:  # noqa: PLR2004 - long forms
        return ""
    compound = "true" if tag & 0x20 else "false"
    found = f"{{class:{tag >> 6} tag:{tag & 0x1F} length:{content[1]} isCompound:{compound}}}"
    wanted = (
        "{optional:false explicit:false application:false private:false defaultValue:<nil> tag:<nil> stringType:0 "
        "timeType:0 set:false omitEmpty:false} certificateRequest @2"
    )
    return f"asn1: structure error: tags don't match (16 vs {found}) {wanted}"
