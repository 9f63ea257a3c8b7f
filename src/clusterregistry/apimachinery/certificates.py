"""Keys and X.509 certificates as values: issued and inspected.

``cryptography`` is a slow import: import this module late, and only where there is something to issue or inspect.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, rsa
from cryptography.hazmat.primitives.asymmetric.types import CertificatePublicKeyTypes
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from clusterregistry.apimachinery.operator_error import CertificateError

# Ours are of the second kind; an operator's own authority may use any of them.
Key = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey | ed448.Ed448PrivateKey

# Clients' clocks may be behind ours.
BACKDATED = dt.timedelta(hours=1)
CA_LIFETIME = dt.timedelta(days=3650)
LEAF_LIFETIME = dt.timedelta(days=365)
PROGRAM = "apiserver"
"""After which certificates are named, where no program is named."""


@dataclass(frozen=True, slots=True)
class Authority:
    certificate: x509.Certificate
    key: Key


def new_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def new_authority(key: Key, *, now: float, program: str = PROGRAM) -> Authority:
    """A self-signed authority for a key, good for ten years, that is named after a program."""
    start = dt.datetime.fromtimestamp(now, dt.UTC)
    # The time in the name tells two authorities apart, so that no client mixes up their certificates.
    name = _subject(f"{program}-ca@{now:.0f}", "")
    builder = (
        _unsigned(subject=name, issuer=name, key=key)
        .not_valid_before(start - BACKDATED)
        .not_valid_after(start + CA_LIFETIME)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    return Authority(builder.sign(key, _hash_for(key)), key)


def serving_certificate(
    authority: Authority, key: Key, *, names: tuple[str, ...], now: float, program: str = PROGRAM
) -> bytes:
    """A certificate for a server that is reached by these names and addresses, as PEM."""
    usages = [ExtendedKeyUsageOID.SERVER_AUTH]
    return _named_certificate(authority, key, program, names=names, usages=usages, now=now)


def peer_certificate(
    authority: Authority, key: Key, *, names: tuple[str, ...], now: float, program: str = PROGRAM
) -> bytes:
    """A certificate for a server that calls others of its kind, such as a member of etcd, as PEM."""
    usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    return _named_certificate(authority, key, program, names=names, usages=usages, now=now)


def client_certificate(authority: Authority, key: Key, *, user: str, group: str, now: float) -> bytes:
    """A certificate for a user in a group, as PEM."""
    builder = _leaf(authority, key, subject=_subject(user, group), now=now)
    builder = builder.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
    return _signed(builder, authority)


def certificate_pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(Encoding.PEM)


def key_pem(key: Key) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _named_certificate(  # noqa: PLR0913 - half of them by keyword
    authority: Authority,
    key: Key,
    common_name: str,
    *,
    names: tuple[str, ...],
    usages: list[x509.ObjectIdentifier],
    now: float,
) -> bytes:
    builder = _leaf(authority, key, subject=_subject(common_name, ""), now=now)
    builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
    alternatives = x509.SubjectAlternativeName([_general_name(name) for name in names])
    return _signed(builder.add_extension(alternatives, critical=False), authority)


def _leaf(authority: Authority, key: Key, *, subject: x509.Name, now: float) -> x509.CertificateBuilder:
    issuer = authority.certificate
    start = dt.datetime.fromtimestamp(now, dt.UTC)
    identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key())
    return (
        _unsigned(subject=subject, issuer=issuer.subject, key=key)
        .not_valid_before(max(start - BACKDATED, issuer.not_valid_before_utc))
        .not_valid_after(min(start + LEAF_LIFETIME, issuer.not_valid_after_utc))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(signs_certificates=False), critical=True)
        .add_extension(identifier, critical=False)
    )


def _unsigned(*, subject: x509.Name, issuer: x509.Name, key: Key) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
    )


def _signed(builder: x509.CertificateBuilder, authority: Authority) -> bytes:
    return certificate_pem(builder.sign(authority.key, _hash_for(authority.key)))


def _hash_for(key: Key) -> hashes.SHA256 | None:
    """None for the kinds of key that bring their hash along."""
    return None if isinstance(key, (ed25519.Ed25519PrivateKey, ed448.Ed448PrivateKey)) else hashes.SHA256()


def _subject(common_name: str, organization: str) -> x509.Name:
    attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization)] if organization else []
    return x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def certificate(path: Path, content: bytes, *, remedy: str) -> x509.Certificate:
    """The first certificate of a PEM file."""
    try:
        return x509.load_pem_x509_certificates(content)[0]
    except ValueError:
        raise CertificateError(f"{path} is damaged: it holds no certificate in PEM", remedy=remedy) from None


def key(path: Path, content: bytes, *, remedy: str) -> Key:
    try:
        held = load_pem_private_key(content, password=None)
    except TypeError:
        raise CertificateError(f"{path} has a passphrase", remedy="store the key without a passphrase") from None
    except Exception:  # noqa: BLE001 - the library has no common error type for what is malformed
        raise CertificateError(f"{path} is damaged: it holds no private key in PEM", remedy=remedy) from None
    if not isinstance(held, Key):
        raise CertificateError(f"{path} holds a kind of key that cannot sign: use ECDSA or RSA", remedy=remedy)
    return held


def require_match(named: Path, held: x509.Certificate, private: Key, *, remedy: str) -> None:
    """Raises unless a certificate and a key belong together."""
    if _public(held.public_key()) != _public(private.public_key()):
        raise CertificateError(f"{named} and its key do not belong together", remedy=remedy)


def require_authority(path: Path, held: x509.Certificate, *, remedy: str) -> None:
    try:
        is_authority = held.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except (x509.ExtensionNotFound, ValueError):
        is_authority = False
    if not is_authority:
        raise CertificateError(f"{path} is not the certificate of an authority (CA)", remedy=remedy)


def require_issued_by(named: Path, held: x509.Certificate, authority: x509.Certificate, *, remedy: str) -> None:
    try:
        held.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        raise CertificateError(f"{named} is foreign: it is not signed by this server's CA", remedy=remedy) from None


def names(held: x509.Certificate) -> tuple[str, ...]:
    """The DNS names and IP addresses that a certificate is good for."""
    try:
        found = held.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, ValueError):
        return ()
    addresses = (str(address) for address in found.get_values_for_type(x509.IPAddress))
    return (*found.get_values_for_type(x509.DNSName), *addresses)


def _public(public_key: CertificatePublicKeyTypes) -> bytes:
    return public_key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
