"""Client certificates: the common name is the user, each organization a group.

Only certificates of the client authorities count. A certificate of the front proxies' authorities is no user here,
whatever its common name, unless that authority is a client authority too.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from clusterregistry.apiserver.authn.certificates import Authorities, Recognition, common_name, subject_values
from clusterregistry.apiserver.authn.interface import AuthRequest
from clusterregistry.apiserver.authn.user import User, authenticated

if TYPE_CHECKING:
    from cryptography import x509

CREDENTIAL_ID = "authentication.kubernetes.io/credential-id"
ORGANIZATION_OID = "2.5.4.10"
UID_OID = "1.3.6.1.4.1.57683.2"  # the subject attribute in which Kubernetes carries a user's uid

_NO_USER = User("")


class ClientCertificates:
    """Users by client certificate."""

    def __init__(self, authorities: Authorities, clock: Callable[[], float] = time.time) -> None:
        # DEBUG: a refused request has a log line of its own.
        self._recognition = Recognition(authorities, recognise, purpose="a user", clock=clock, level=logging.DEBUG)

    def authenticate(self, request: AuthRequest) -> User | None:
        chain = request.client_certificates
        if not chain:
            return None
        user = self._recognition.of(chain)
        return None if user is _NO_USER else user


def recognise(certificate: x509.Certificate) -> User:
    """The user of a verified certificate; ``_NO_USER`` when it names none. Raises RefusedError."""
    from cryptography.hazmat.primitives import hashes  # noqa: PLC0415 - slow import

    from clusterregistry.apiserver.authn.certificate_path import RefusedError  # noqa: PLC0415 - as slow

    uids = subject_values(certificate, UID_OID)
    if len(uids) > 1 or "" in uids:
        raise RefusedError("its subject must name one uid, not several and not an empty one")
    name = common_name(certificate)
    if not name:
        return _NO_USER
    return authenticated(
        name=name,
        uid="".join(uids),
        groups=subject_values(certificate, ORGANIZATION_OID),
        extra={CREDENTIAL_ID: (f"X509SHA256={certificate.fingerprint(hashes.SHA256()).hex()}",)},
    )
