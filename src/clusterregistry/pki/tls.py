"""The server's TLS context."""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from pathlib import Path

from clusterregistry.pki.errors import CertificateError

VERSIONS = {"VersionTLS12": ssl.TLSVersion.TLSv1_2, "VersionTLS13": ssl.TLSVersion.TLSv1_3}


def server_context(*, certificate: Path, key: Path, client_cas: Sequence[Path], minimum: str) -> ssl.SSLContext:
    """A context that serves a certificate and asks for, but does not demand, a client's.

    A client certificate of an unknown authority ends the handshake. Raises CertificateError for files that cannot be
    used.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = VERSIONS[minimum]
    context.set_alpn_protocols(["http/1.1"])
    _load_certificate(context, certificate, key)
    for path in client_cas:
        _load_authority(context, path)
    context.verify_mode = ssl.CERT_OPTIONAL
    return context


def _load_certificate(context: ssl.SSLContext, certificate: Path, key: Path) -> None:
    try:
        # OpenSSL would ask at the terminal for a passphrase; an empty one makes it refuse instead.
        context.load_cert_chain(certificate, key, password=lambda: "")
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise CertificateError(
            f"{certificate} and {key} cannot be used for TLS: {_why(error)}",
            remedy="check that both are PEM, belong together, and that the key has no passphrase",
        ) from None


def _load_authority(context: ssl.SSLContext, path: Path) -> None:
    try:
        context.load_verify_locations(cafile=path)
    except (OSError, ValueError) as error:
        raise CertificateError(
            f"{path} cannot be used as a client CA: {_why(error)}",
            remedy="check that it holds certificates in PEM",
        ) from None


def _why(error: Exception) -> str:
    return str(getattr(error, "reason", "") or getattr(error, "strerror", "") or error)
