"""What is in an issued certificate, and how long it is valid."""

from __future__ import annotations

import datetime as dt
import ipaddress

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ed25519
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID, ObjectIdentifier

from clusterregistry.apimachinery import certificates
from clusterregistry.apimachinery.operator_error import CertificateError
from clusterregistry.apiserver.registry.certificates.issuance import Terms, UnsuitableRequestError, issue
from tests.api.certificates.signing_requests import key, pkcs10, subject

NOW = 1_750_000_000.0
START = dt.datetime.fromtimestamp(NOW, dt.UTC)
AUTHORITY = certificates.new_authority(certificates.new_key(), now=NOW)
HOUR, DAY, YEAR = 3600, 86400, 365 * 86400
USAGES = ("client auth", "digital signature", "key encipherment")


def issued(data: bytes, terms: Terms | None = None, *, lifetime: float = YEAR, now: float = NOW) -> x509.Certificate:
    return x509.load_pem_x509_certificate(
        issue(data, terms or Terms(usages=USAGES), authority=AUTHORITY, lifetime=lifetime, now=now)
    )


@pytest.mark.parametrize(
    ("seconds", "lifetime", "end"),
    [
        (None, YEAR, YEAR - 300),
        (600, YEAR, 600),
        (8 * HOUR - 1, YEAR, 8 * HOUR - 1),
        (8 * HOUR, YEAR, 8 * HOUR - 300),
        (2 * YEAR, YEAR, YEAR - 300),
        (DAY, HOUR, HOUR),
        (1, YEAR, 600),
    ],
)
def test_how_long_a_certificate_is_valid(seconds: int | None, lifetime: float, end: int) -> None:
    found = issued(pkcs10(), Terms(usages=USAGES, seconds=seconds), lifetime=lifetime)
    assert found.not_valid_before_utc == START - dt.timedelta(minutes=5)
    assert found.not_valid_after_utc == START + dt.timedelta(seconds=end)


def test_a_certificate_ends_with_its_authority() -> None:
    last = AUTHORITY.certificate.not_valid_after_utc
    assert issued(pkcs10(), now=last.timestamp() - DAY).not_valid_after_utc == last
    with pytest.raises(CertificateError, match="ended at"):
        issued(pkcs10(), now=last.timestamp())


def test_the_subject_is_that_of_the_request_without_what_says_more_of_a_user() -> None:
    def attribute(oid: ObjectIdentifier, value: str) -> x509.NameAttribute[str]:
        return x509.NameAttribute(oid, value)

    uid = ObjectIdentifier("1.3.6.1.4.1.57683.2")
    name = x509.Name(
        [
            attribute(NameOID.COMMON_NAME, "first"),
            attribute(uid, "42"),
            attribute(NameOID.ORGANIZATION_NAME, "b"),
            attribute(NameOID.ORGANIZATION_NAME, "a"),
            attribute(NameOID.ORGANIZATION_NAME, "b"),
            attribute(NameOID.EMAIL_ADDRESS, "jane@example.com"),
            attribute(NameOID.COUNTRY_NAME, "NO"),
            attribute(NameOID.COMMON_NAME, "jane"),
        ]
    )
    found = [(each.oid, each.value) for each in issued(pkcs10(name=name)).subject]
    assert found == [
        (NameOID.COUNTRY_NAME, "NO"),
        (NameOID.ORGANIZATION_NAME, "b"),
        (NameOID.ORGANIZATION_NAME, "a"),
        (NameOID.COMMON_NAME, "jane"),
    ]


def test_extensions() -> None:
    names = (
        x509.DNSName("a.example.com"),
        x509.IPAddress(ipaddress.ip_address("10.0.0.1")),
        x509.RFC822Name("jane@example.com"),
        x509.UniformResourceIdentifier("urn:a"),
    )
    other = x509.DirectoryName(subject("root"))
    found = issued(pkcs10(alternatives=(*names, other))).extensions
    assert found.get_extension_for_class(x509.BasicConstraints).value == x509.BasicConstraints(False, None)
    assert list(found.get_extension_for_class(x509.ExtendedKeyUsage).value) == [ExtendedKeyUsageOID.CLIENT_AUTH]
    assert tuple(found.get_extension_for_class(x509.SubjectAlternativeName).value) == names
    usage = found.get_extension_for_class(x509.KeyUsage).value
    assert (usage.digital_signature, usage.key_encipherment, usage.key_cert_sign) == (True, True, False)
    assert len(list(found)) == 5


def test_a_request_without_usages_of_the_key_gets_none() -> None:
    found = issued(pkcs10(), Terms(usages=["client auth"])).extensions
    with pytest.raises(x509.ExtensionNotFound):
        found.get_extension_for_class(x509.KeyUsage)


def test_a_certificate_for_administrators_is_refused() -> None:
    data = pkcs10(name=subject("jane", "devs", "system:masters"))
    with pytest.raises(UnsuitableRequestError, match="system:masters group is not allowed"):
        issued(data)


def test_an_authority_with_another_kind_of_key() -> None:
    private = key("ed25519")
    assert isinstance(private, ed25519.Ed25519PrivateKey)
    authority = certificates.new_authority(private, now=NOW)
    pem = issue(pkcs10(), Terms(usages=USAGES), authority=authority, lifetime=YEAR, now=NOW)
    x509.load_pem_x509_certificate(pem).verify_directly_issued_by(authority.certificate)
