"""Requests travel as protobuf, too: client-go sends them so."""

from __future__ import annotations

from typing import Any

from clusterregistry.api.certificates.v1.types import CERTIFICATE_SIGNING_REQUEST
from clusterregistry.apimachinery.codecs.protobuf_codec import decode, encode
from clusterregistry.apimachinery.schema import native
from tests.api.certificates.signing_requests import condition, in_base64, pkcs10, signing_request

WHEN = "2026-01-02T03:04:05Z"


def test_a_request_survives_a_round_trip() -> None:
    request = signing_request(
        expirationSeconds=600, username="jane", uid="u1", groups=["devs"], extra={"a": ["b", "c"]}
    )
    request["status"] = {
        "conditions": [
            condition("Approved", reason="a", message="b", lastUpdateTime=WHEN, lastTransitionTime=WHEN),
            condition("Own", "False"),
        ],
        "certificate": in_base64(b"any bytes \x00\xff"),
    }
    assert decode(encode(request)).value == request


def test_an_object_of_protobuf_gets_the_form_of_the_struct() -> None:
    sent: dict[str, Any] = signing_request(signerName="")
    del sent["status"]
    found = decode(encode(sent)).value
    assert native.decoder(CERTIFICATE_SIGNING_REQUEST, kind="CertificateSigningRequest")(found) == []
    assert found == sent | {"status": {}}


def test_the_fields_have_the_numbers_of_kubernetes() -> None:
    body = encode(
        {
            "apiVersion": "certificates.k8s.io/v1",
            "kind": "CertificateSigningRequest",
            "spec": {"request": in_base64(pkcs10()), "signerName": "a/b", "usages": ["any"], "expirationSeconds": 7},
            "status": {"conditions": [condition("T", "S")], "certificate": in_base64(b"c")},
        }
    )
    # In the order of the numbers: request 1, usages 5, signerName 7, expirationSeconds 8.
    assert b"\x0a" + bytes([len(pkcs10()) & 0x7F | 0x80, len(pkcs10()) >> 7]) + pkcs10() in body
    assert b"\x2a\x03any\x3a\x03a/b\x40\x07" in body
    # The status is field 3: a condition with type 1 and status 6, and the certificate 2.
    assert b"\x1a\x0b\x0a\x06\x0a\x01T\x32\x01S\x12\x01c" in body
