"""Trust in a registry that was never seen before: by its authority, or by the hash of the authority's public key.

With a hash the authority is taken from the chain that the server presents, before anything is sent. The connection that
is then used is verified by that authority alone, name and all.
"""

from __future__ import annotations

import hashlib
import re
import socket
import ssl
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import urlsplit

from clusterregistry.apimachinery.operator_error import OperatorError
from clusterregistry.client.credentials import tls_context

HASH_PREFIX = "sha256:"
_SECONDS = 10.0
_MOST = 20
"""Certificates of a chain that are looked at."""

_HASH = re.compile(r"sha256:[0-9a-f]{64}", re.ASCII)
_BLOCK = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
_DER = 2
"""``_ssl.ENCODING_DER``."""


def parse_hash(text: str) -> str:
    """A pinned hash. Raises ValueError."""
    if not _HASH.fullmatch(text.lower()):
        raise ValueError(f'"{text}" is no hash: write sha256: and 64 hexadecimal digits')
    return text.lower()


def authority_with_hash(server: str, pinned: str) -> bytes:
    """The certificate, in PEM, of the presented chain whose public key has the hash. Raises OperatorError.

    Nothing but a TLS handshake is sent.
    """
    presented = presented_chain(server, tls_context(authorities=b"", insecure=True))
    for certificate in presented:
        if key_hash(certificate) == pinned:
            return ssl.DER_cert_to_PEM_cert(certificate).encode()
    raise OperatorError(
        f"{server} presents no certificate with the pinned public key {pinned}",
        remedy="compare the address and the hash with those of the registry's administrator: another server may pose "
        "as the registry. If the registry has a new authority, make a new token, which names its hash",
    )


def hash_of_presented_authority(server: str, authorities: bytes, *, server_name: str = "") -> str:
    """The hash of the topmost authority that the server presents, verified by known ones; empty if it presents none.

    Raises OperatorError if the server cannot be reached or verified.
    """
    chain = presented_chain(server, tls_context(authorities=authorities, insecure=False), server_name=server_name)
    return key_hash(chain[-1]) if len(chain) > 1 else ""


def presented_chain(server: str, context: ssl.SSLContext, *, server_name: str = "") -> Sequence[bytes]:
    """The certificates that a server presents, its own first, in DER. Raises OperatorError."""
    parts = urlsplit(server)
    host, port = parts.hostname or "", parts.port or 443
    try:
        with (
            socket.create_connection((host, port), timeout=_SECONDS) as plain,
            context.wrap_socket(plain, server_hostname=server_name or host) as secured,
        ):
            return _unverified_chain(secured)[:_MOST]
    except OSError as error:
        raise OperatorError(
            f"{server} cannot be reached: {error.strerror or error}",
            remedy="check the address, and that a connection from here to there is let through",
        ) from None


def key_hash(certificate: bytes) -> str:
    """``sha256:`` and the hash of the public key (SubjectPublicKeyInfo) of a certificate, as kubeadm has it."""
    from cryptography import x509  # noqa: PLC0415 - slow import
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat  # noqa: PLC0415

    try:
        key = x509.load_der_x509_certificate(certificate).public_key()
        encoded = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    except Exception:  # noqa: BLE001 - what OpenSSL accepts may be refused by the other parser, in many ways
        return ""
    return HASH_PREFIX + hashlib.sha256(encoded).hexdigest()


def _unverified_chain(session: ssl.SSLSocket) -> list[bytes]:
    """What the server sent, in DER. Public since Python 3.13."""
    public = getattr(session, "get_unverified_chain", None)
    if public is not None:
        return list(public())
    inner: Any = getattr(session, "_sslobj", None)
    get_chain: Callable[[], list[Any]] | None = getattr(inner, "get_unverified_chain", None)
    return [_der(certificate) for certificate in get_chain() or []] if get_chain is not None else []


def _der(certificate: Any) -> bytes:
    encoded = certificate.public_bytes(_DER)
    return encoded if isinstance(encoded, bytes) else ssl.PEM_cert_to_DER_cert(encoded)
