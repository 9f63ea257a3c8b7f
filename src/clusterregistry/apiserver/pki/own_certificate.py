"""The operator's own serving certificate, and the authorities by which clients verify it.

Whether a client accepts the certificate is tested with a handshake in memory: that takes a millisecond or two, and no
further import at start.
"""

from __future__ import annotations

import re
import ssl
from dataclasses import dataclass
from pathlib import Path

from clusterregistry.apimachinery.operator_error import CertificateError
from clusterregistry.apiserver.pki import files, tls

_BLOCK = re.compile(rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnCertificate:
    """The files of --tls-cert-file, --tls-private-key-file and --tls-ca-file."""

    certificate: Path
    key: Path
    authorities: Path | None = None


@dataclass(frozen=True, slots=True)
class ServerAuthorities:
    """The authorities by which clients verify the server, as PEM, and warnings for the operator.

    ``until_renewal``: without a known authority it is the certificate itself, and invalid after the next renewal.
    """

    pem: bytes
    warnings: tuple[str, ...] = ()
    until_renewal: bool = False


def server_authorities(own: OwnCertificate) -> ServerAuthorities:
    """The authorities for clients: the configured ones, else the one in the file of the certificate.

    As the last resort clients trust the certificate itself. Raises CertificateError for files that cannot be used.
    """
    server = _serving_context(own)
    if own.authorities is not None:
        return _named(own, own.authorities, server)
    leaf, *above = _certificates(own.certificate)
    for each in reversed(above):
        if _is_authority(each) and not _complaint(server, each, any_anchor=True):
            return ServerAuthorities(each)
    if not _complaint(server, leaf, any_anchor=False):  # it has signed itself
        return ServerAuthorities(leaf)
    return ServerAuthorities(leaf, until_renewal=True)


def verifies(own: OwnCertificate, authorities: bytes) -> bool:
    """Whether clients that trust these authorities, as PEM, accept the certificate. Raises CertificateError."""
    return not _complaint(_serving_context(own), authorities, any_anchor=True)


def _named(own: OwnCertificate, path: Path, server: ssl.SSLContext) -> ServerAuthorities:
    pem = b"".join(_certificates(path))
    complaint = _complaint(server, pem, any_anchor=True)
    if not complaint:
        return ServerAuthorities(pem)
    warning = (
        f"{path} (--tls-ca-file) does not verify {own.certificate} ({complaint}): clients that trust it refuse this "
        "server. Put the authority there that signed the certificate"
    )
    return ServerAuthorities(pem, (warning,))


def _serving_context(own: OwnCertificate) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_certificate(context, own.certificate, own.key)
    return context


def _certificates(path: Path) -> list[bytes]:
    """The certificates of a PEM file in their order, without comments. At least one."""
    content = files.read(path)
    if content is None:
        raise CertificateError(f"{path} is missing", remedy="put it back; the former content stays in use until then")
    found = [block + b"\n" for block in _BLOCK.findall(content)]
    if not found:
        raise CertificateError(f"{path} holds no certificate in PEM", remedy="put certificates in PEM there")
    return found


def _is_authority(pem: bytes) -> bool:
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(cadata=pem.decode())
    except (OSError, ValueError):
        return False
    return context.cert_store_stats()["x509_ca"] > 0


def _complaint(server: ssl.SSLContext, authorities: bytes, *, any_anchor: bool) -> str:
    """The error of a client that trusts these authorities; empty if it accepts the certificate.

    ``any_anchor``: an authority need not be a root to be trusted, as in Go's clients. Names and times are not checked:
    they do not depend on the authorities.
    """
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname = False
    client.verify_flags |= ssl.VerifyFlags(tls.NO_CHECK_TIME)
    if any_anchor:
        client.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    try:
        client.load_verify_locations(cadata=authorities.decode())
        _shake_hands(server, client)
    except ssl.SSLCertVerificationError as error:
        return error.verify_message
    except (OSError, ValueError) as error:
        return str(error)
    return ""


def _shake_hands(server: ssl.SSLContext, client: ssl.SSLContext) -> None:
    """A handshake up to the client's verification. Raises ssl.SSLError."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = server.wrap_bio(to_server, to_client, server_side=True)
    theirs = client.wrap_bio(to_client, to_server)
    for side in (theirs, ours, theirs):
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            continue
