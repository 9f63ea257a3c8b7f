"""Issues client certificates for signing requests, as kube-controller-manager's signer does.

``cryptography`` is a slow import: import this module only where a certificate is issued.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from clusterregistry.api.certificates.v1 import pkcs10
from clusterregistry.api.certificates.v1.pkcs10 import MalformedRequestError
from clusterregistry.api.certificates.v1.types import CLIENT_AUTH, CLIENT_SIGNER, DIGITAL_SIGNATURE, KEY_ENCIPHERMENT
from clusterregistry.api.certificates.v1.validation import LEAST_SECONDS
from clusterregistry.apimachinery.certificates import Authority, certificate_pem
from clusterregistry.apimachinery.operator_error import CertificateError
from clusterregistry.apiserver.authn.user import MASTERS

_BACKDATED = dt.timedelta(minutes=5)
"""The clocks of clients may be behind."""

_SHORT = dt.timedelta(hours=8)
"""A shorter certificate does not lose the time by which it is backdated."""

_LEAST_RSA_BITS = 2048
"""TLS refuses weaker keys of clients: OpenSSL's security level 2."""

_CURVES = ("secp256r1", "secp384r1", "secp521r1")
"""Those of TLS 1.3."""

_REPEATED = (
    NameOID.COUNTRY_NAME,
    NameOID.ORGANIZATION_NAME,
    NameOID.ORGANIZATIONAL_UNIT_NAME,
    NameOID.LOCALITY_NAME,
    NameOID.STATE_OR_PROVINCE_NAME,
    NameOID.STREET_ADDRESS,
    NameOID.POSTAL_CODE,
)
_SINGLE = (NameOID.COMMON_NAME, NameOID.SERIAL_NUMBER)
"""The attributes of a subject that Go takes over, in its order. Others could claim more about a user, such as a uid."""

_NAMES = (x509.DNSName, x509.IPAddress, x509.RFC822Name, x509.UniformResourceIdentifier)


class UnsuitableRequestError(Exception):
    """A request that the signer refuses for ever. The message says why, for the person who asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What a request asks for besides its subject: its usages, and seconds of validity (None: as long as possible)."""

    usages: Sequence[str]
    seconds: int | None = None


def issue(data: bytes, terms: Terms, *, authority: Authority, lifetime: float, now: float) -> bytes:
    """A client certificate for a PKCS#10 request in PEM, as PEM. ``lifetime`` is the longest, in seconds.

    Raises UnsuitableRequestError, and CertificateError for an authority that has ended.
    """
    _check_usages(terms.usages)
    request = _checked_request(data)
    start, end = _period(terms, lifetime=lifetime, now=dt.datetime.fromtimestamp(int(now), dt.UTC), authority=authority)
    builder = (
        x509.CertificateBuilder()
        .subject_name(_subject(request.subject))
        .issuer_name(authority.certificate.subject)
        .public_key(request.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(end)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
        .add_extension(_authority_identifier(authority), critical=False)
    )
    if (usage := _key_usage(terms.usages)) is not None:
        builder = builder.add_extension(usage, critical=True)
    if names := list(_alternative_names(request)):
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return certificate_pem(_signed(builder, authority))


def _signed(builder: x509.CertificateBuilder, authority: Authority) -> x509.Certificate:
    key = authority.key
    has_own_hash = isinstance(key, (ed25519.Ed25519PrivateKey, ed448.Ed448PrivateKey))
    try:
        return builder.sign(key, None if has_own_hash else hashes.SHA256())
    except (ValueError, TypeError) as error:  # a name of the request that can be read, and not written
        raise UnsuitableRequestError(f"unable to sign: {error}") from None


def _check_usages(usages: Sequence[str]) -> None:
    for usage in usages:
        if usage not in (CLIENT_AUTH, DIGITAL_SIGNATURE, KEY_ENCIPHERMENT):
            raise UnsuitableRequestError(f"invalid usage for client certificate: {usage}")
    if CLIENT_AUTH not in usages:
        raise UnsuitableRequestError(f"missing required usage for client certificate: {CLIENT_AUTH}")


def _checked_request(data: bytes) -> x509.CertificateSigningRequest:
    try:
        request = pkcs10.parse_request(data)
        pkcs10.verify_signature(request)
    except MalformedRequestError as error:  # validation has let none through; other programs write to etcd, too
        raise UnsuitableRequestError(f"unable to parse csr: {error}") from None
    if MASTERS in pkcs10.organizations(request):  # likewise refused by the admission
        raise UnsuitableRequestError(f"use of {CLIENT_SIGNER} signer with {MASTERS} group is not allowed")
    match request.public_key():
        case rsa.RSAPublicKey(key_size=bits) if bits < _LEAST_RSA_BITS:
            raise UnsuitableRequestError(f"a key of {bits} bits is too weak for TLS: use one of {_LEAST_RSA_BITS} bits")
        case ec.EllipticCurvePublicKey(curve=curve) if curve.name not in _CURVES:
            raise UnsuitableRequestError(f"TLS has no keys on the curve {curve.name}: use {_CURVES[0]}")
    return request


def _period(
    terms: Terms, *, lifetime: float, now: dt.datetime, authority: Authority
) -> tuple[dt.datetime, dt.datetime]:
    """When the certificate begins and ends: never after its authority."""
    last = authority.certificate.not_valid_after_utc
    if now >= last:
        raise CertificateError(
            f"the authority that signs client certificates ended at {last:%Y-%m-%dT%H:%M:%SZ}",
            remedy="make a new authority: docs/guides/backup.md says how",
        )
    wanted = lifetime if terms.seconds is None else min(max(terms.seconds, LEAST_SECONDS), lifetime)
    length = dt.timedelta(seconds=wanted)
    start = now - _BACKDATED
    end = now + length if length < _SHORT else start + length
    return start, min(end, last)


def _subject(name: x509.Name) -> x509.Name:
    """Each attribute by itself, in the order of the request: in a set of several the order of groups would be lost."""
    repeated = [each for oid in _REPEATED for each in name if each.oid == oid]
    single = [each for oid in _SINGLE for each in [each for each in name if each.oid == oid][-1:]]
    return x509.Name(dict.fromkeys([*repeated, *single]))


def _alternative_names(request: x509.CertificateSigningRequest) -> Iterator[x509.GeneralName]:
    try:
        found = request.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return
    yield from (name for name in found if isinstance(name, _NAMES))


def _key_usage(usages: Sequence[str]) -> x509.KeyUsage | None:
    """None where a request names no usage of the key itself."""
    if DIGITAL_SIGNATURE not in usages and KEY_ENCIPHERMENT not in usages:
        return None
    return x509.KeyUsage(
        digital_signature=DIGITAL_SIGNATURE in usages,
        content_commitment=False,
        key_encipherment=KEY_ENCIPHERMENT in usages,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=False,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )


def _authority_identifier(authority: Authority) -> x509.AuthorityKeyIdentifier:
    try:
        own = authority.certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    except x509.ExtensionNotFound:
        return x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key())
    return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(own)
