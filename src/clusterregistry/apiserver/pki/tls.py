"""The server's TLS context."""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from clusterregistry.apiserver.pki import files
from clusterregistry.apiserver.pki.errors import CertificateError
from clusterregistry.apiserver.pki.handshake import ServerContext

VERSIONS = {"VersionTLS12": ssl.TLSVersion.TLSv1_2, "VersionTLS13": ssl.TLSVersion.TLSv1_3}

# Those of TLS 1.2 with forward secrecy and authenticated encryption, by the names that kube-apiserver's flag has.
CIPHER_SUITES = {
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": "ECDHE-ECDSA-AES128-GCM-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384": "ECDHE-RSA-AES256-GCM-SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-RSA-CHACHA20-POLY1305",
}

NO_CHECK_TIME = 0x200000  # X509_V_FLAGNO_CHECK_TIME, which the module does not name


@dataclass(frozen=True, slots=True)
class Bundle:
    """A file of certificate authorities, as it was when it was read."""

    path: Path
    pem: str


def read_bundle(path: Path) -> Bundle:
    """Raises CertificateError for a file that is missing or cannot be read; what is in it is looked at later."""
    content = files.read(path)
    if content is None:
        raise CertificateError(f"{path} is missing", remedy="put the certificate authorities there, in PEM")
    # What is not ASCII can only be a remark between certificates.
    return Bundle(path, content.decode("ascii", "ignore"))


def server_context(
    *, certificate: Path, key: Path, client_cas: Sequence[Bundle], minimum: str, suites: Sequence[str] = ()
) -> ssl.SSLContext:
    """A context that serves a certificate and asks for, but does not demand, a client's.

    ``client_cas`` are the authorities for all purposes. A client certificate of an unknown authority, or one that is
    not for clients, ends the handshake: Python has no way to look at it and go on. Whether it is valid now is left to
    authentication, which answers a 401. Raises CertificateError for what cannot be used.
    """
    context = ServerContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = VERSIONS[minimum]
    context.set_ciphers(":".join(CIPHER_SUITES[name] for name in suites or CIPHER_SUITES))
    context.set_alpn_protocols(["http/1.1"])
    load_certificate(context, certificate, key)
    for bundle in client_cas:
        _load_authorities(context, bundle)
    context.verify_mode = ssl.CERT_OPTIONAL
    # As in Go, an authority need not be a root to be trusted.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN | ssl.VerifyFlags(NO_CHECK_TIME)
    return context


def load_certificate(context: ssl.SSLContext, certificate: Path, key: Path) -> None:
    """Has a context serve a certificate. Raises CertificateError."""
    try:
        # OpenSSL would ask at the terminal for a passphrase; an empty one makes it refuse instead.
        context.load_cert_chain(certificate, key, password=lambda: "")
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise CertificateError(
            f"{certificate} and {key} cannot be used for TLS: {_why(error)}",
            remedy="check that both are PEM, belong together, and that the key has no passphrase",
        ) from None


def _load_authorities(context: ssl.SSLContext, bundle: Bundle) -> None:
    try:
        context.load_verify_locations(cadata=bundle.pem)
    except (OSError, ValueError) as error:
        raise CertificateError(
            f"{bundle.path} cannot be used as a client CA: {_why(error)}",
            remedy="check that it holds certificates in PEM",
        ) from None


def _why(error: Exception) -> str:
    return str(getattr(error, "reason", "") or getattr(error, "strerror", "") or error)
