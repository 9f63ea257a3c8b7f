"""Requests are read and verified as Go does it, with its messages."""

from __future__ import annotations

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import dsa
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from clusterregistry.api.certificates.v1.pem_blocks import Block, pem_blocks
from clusterregistry.api.certificates.v1.pkcs10 import (
    MalformedRequestError,
    organizations,
    parse_request,
    verify_signature,
)
from tests.api.certificates.signing_requests import der, key, pem, pkcs10, subject

LABEL = "CERTIFICATE REQUEST"
NO_SEQUENCE = (
    "asn1: structure error: tags don't match (16 vs {class:1 tag:10 length:117 isCompound:true}) {optional:false "
    "explicit:false application:false private:false defaultValue:<nil> tag:<nil> stringType:0 timeType:0 "
    "set:false omitEmpty:false} certificateRequest @2"
)


def problem(data: bytes) -> str:
    try:
        verify_signature(parse_request(data))
    except MalformedRequestError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("kind", ["rsa1024", "rsa2048", "secp224r1", "secp256r1", "secp384r1", "secp521r1", "ed25519"])
def test_a_signed_request_is_good(kind: str) -> None:
    data = pkcs10(kind)
    assert problem(data) == ""
    assert problem(b"Subject: jane\r\n" + data.replace(b"\n", b"\r\n") + b"the end") == ""
    assert problem(data + pem("CERTIFICATE", b"more")) == ""


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("rsa2048", "crypto/rsa: verification error"),
        ("secp256r1", "x509: ECDSA verification failure"),
        ("ed25519", "x509: Ed25519 verification failure"),
    ],
)
def test_a_changed_request_is_refused(kind: str, message: str) -> None:
    content = der(pkcs10(kind, name=subject("jane"))).replace(b"jane", b"joan")
    assert problem(pem(LABEL, content)) == message


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "PEM block type must be CERTIFICATE REQUEST"),
        (b"no PEM at all", "PEM block type must be CERTIFICATE REQUEST"),
        (pem("CERTIFICATE", der(pkcs10())), "PEM block type must be CERTIFICATE REQUEST"),
        (pem("NEW CERTIFICATE REQUEST", der(pkcs10())), "PEM block type must be CERTIFICATE REQUEST"),
        (pem(LABEL, b""), "asn1: syntax error: sequence truncated"),
        (pem(LABEL, der(pkcs10())[:-10]), "asn1: syntax error: data truncated"),
        (pem(LABEL, der(pkcs10()) + b"\0\0"), "asn1: syntax error: trailing data"),
        (
            pem(LABEL, b"junkjunk"),
            NO_SEQUENCE,
        ),
        (pem(LABEL, b"\x30\x03\x02\x01\x01"), "asn1: structure error: it is no certificate request"),
        (pkcs10("secp256k1"), "x509: unsupported elliptic curve"),
        (pkcs10("ed448"), "x509: cannot verify signature: algorithm unimplemented"),
    ],
)
def test_a_text_that_is_no_request_is_refused(data: bytes, message: str) -> None:
    assert problem(data).startswith(message)


def test_other_algorithms_are_refused() -> None:
    private = dsa.generate_private_key(1024)
    request = x509.CertificateSigningRequestBuilder().subject_name(subject()).sign(private, hashes.SHA256())
    message = "x509: cannot verify signature: algorithm unimplemented"
    assert problem(request.public_bytes(Encoding.PEM)) == message


def test_a_weak_hash_is_refused() -> None:
    content = der(pkcs10("rsa2048"))
    sha256, sha1 = bytes.fromhex("2a864886f70d01010b"), bytes.fromhex("2a864886f70d010105")
    assert content.count(sha256) == 1
    message = "x509: cannot verify signature: insecure algorithm SHA1-RSA"
    assert problem(pem(LABEL, content.replace(sha256, sha1))) == message


def test_all_organizations_count() -> None:
    names = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, each) for each in ("a", "b", "c")]
    name = x509.Name(
        [x509.RelativeDistinguishedName(names[:2]), x509.RelativeDistinguishedName(names[2:]), *subject("jane").rdns]
    )
    assert sorted(organizations(parse_request(pkcs10(name=name)))) == ["a", "b", "c"]


def test_names_may_be_longer_than_the_standard_has_them() -> None:
    with pytest.warns(UserWarning, match="Attribute's length"):
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "x" * 200, _validate=False)])
    request = x509.CertificateSigningRequestBuilder().subject_name(name).sign(key("ed25519"), None)
    assert problem(request.public_bytes(Encoding.PEM)) == ""


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (b"-----BEGIN A-----\nAAAA\n-----END A-----", [Block("A", False, b"\0\0\0")]),
        (b"x-----BEGIN A-----\nAAAA\n-----END A-----\n", []),
        (b"-----BEGIN A-----\nAAAA\n-----END B-----\n", []),
        (b"-----BEGIN A----\nAAAA\n-----END A-----\n", []),
        (b"-----BEGIN A-----\n-----END A-----\n", [Block("A", False, b"")]),
        (b"-----BEGIN A-----\nkey: value\n\nAAAA\n-----END A-----\n", [Block("A", True, b"\0\0\0")]),
        (b"-----BEGIN A-----\nAA AA\t\r\n-----END A-----  \r\n", [Block("A", False, b"\0\0\0")]),
        (b"-----BEGIN A-----\nAAA\n-----END A-----\n", []),
        (b"-----BEGIN A-----\nA*AA\n-----END A-----\n", []),
        (b"-----BEGIN A-----\n-----BEGIN B-----\nAAAA\n-----END B-----\n", [Block("B", False, b"\0\0\0")]),
        (
            b"text\n-----BEGIN A-----\nAAAA\n-----END A-----\ntext\n-----BEGIN B-----\nAAAA\n-----END B-----\n",
            [Block("A", False, b"\0\0\0"), Block("B", False, b"\0\0\0")],
        ),
    ],
)
def test_blocks_of_pem(text: bytes, found: list[Block]) -> None:
    assert list(pem_blocks(text)) == found
