"""Looks at certificates that are already there. Imported only when the record does not know them."""

from __future__ import annotations

from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.types import CertificatePublicKeyTypes
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

from clusterregistry.apimachinery.certificates.issuer import Key
from clusterregistry.apiserver.pki.errors import CertificateError


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
