"""Client certificates: the common name is the user, each organization a group.

TLS has verified the chain against the client CAs before a request arrives. What is left: the certificate may have
expired while the connection lives, and it must be meant for clients.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clusterregistry.apis.meta import errors
from clusterregistry.authn.interface import AuthRequest
from clusterregistry.authn.users import User, authenticated

if TYPE_CHECKING:
    from cryptography import x509

log = logging.getLogger(__name__)

MAX_REMEMBERED = 4096
CREDENTIAL_ID = "authentication.kubernetes.io/credential-id"
UID_OID = "1.3.6.1.4.1.57683.2"  # the subject attribute in which Kubernetes carries a user's uid


@dataclass(frozen=True, slots=True)
class Recognised:
    """What a certificate says: a user within a period, nobody (it has no common name), or why it is refused."""

    user: User | None = None
    not_before: float = 0.0
    not_after: float = float("inf")
    refusal: str = ""


class ClientCertificates:
    """Users by client certificate. Each certificate is parsed once; its validity is checked at each request."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._seen: dict[bytes, Recognised] = {}

    def authenticate(self, request: AuthRequest) -> User | None:
        der = request.client_certificate
        if der is None:
            return None
        seen = self._seen.get(der) or self._recognise(der)
        if seen.refusal or not seen.not_before <= self._clock() <= seen.not_after:
            raise errors.unauthorized()
        return seen.user

    def _recognise(self, der: bytes) -> Recognised:
        seen = recognise(der)
        if seen.refusal:
            log.info("client certificate refused: %s", seen.refusal)
        if len(self._seen) >= MAX_REMEMBERED:
            self._seen.clear()
        self._seen[der] = seen
        return seen


def recognise(der: bytes) -> Recognised:
    """Reads a certificate. Never raises: what cannot be read is refused."""
    from cryptography import x509  # noqa: PLC0415 - 60 ms that only servers with certificate users pay

    try:
        certificate = x509.load_der_x509_certificate(der)
        refusal = _refusal(certificate)
        return Recognised(refusal=refusal) if refusal else _recognised(certificate, der)
    except Exception as error:  # noqa: BLE001 - the library has no common error type for what is malformed
        return Recognised(refusal=f"it cannot be read: {type(error).__name__}")


def _recognised(certificate: x509.Certificate, der: bytes) -> Recognised:
    from cryptography.x509.oid import NameOID  # noqa: PLC0415

    names = _attributes(certificate, NameOID.COMMON_NAME.dotted_string)
    if not names or not names[-1]:
        return Recognised()
    return Recognised(
        user=authenticated(
            name=names[-1],  # of several common names the last counts, as Go reads a subject
            uid="".join(_attributes(certificate, UID_OID)),
            groups=_attributes(certificate, NameOID.ORGANIZATION_NAME.dotted_string),
            extra={CREDENTIAL_ID: (f"X509SHA256={hashlib.sha256(der).hexdigest()}",)},
        ),
        not_before=certificate.not_valid_before_utc.timestamp(),
        not_after=certificate.not_valid_after_utc.timestamp(),
    )


def _refusal(certificate: x509.Certificate) -> str:
    if not _meant_for_clients(certificate):
        return "its extended key usage does not allow client authentication"
    uids = _attributes(certificate, UID_OID)
    if len(uids) > 1 or "" in uids:
        return "its subject must name one uid, not several and not an empty one"
    return ""


def _meant_for_clients(certificate: x509.Certificate) -> bool:
    from cryptography import x509  # noqa: PLC0415
    from cryptography.x509.oid import ExtendedKeyUsageOID as Usage  # noqa: PLC0415

    try:
        usages = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except x509.ExtensionNotFound:
        return True
    return Usage.CLIENT_AUTH in usages or Usage.ANY_EXTENDED_KEY_USAGE in usages


def _attributes(certificate: x509.Certificate, oid: str) -> list[str]:
    return [str(each.value) for each in certificate.subject if each.oid.dotted_string == oid]
