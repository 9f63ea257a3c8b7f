"""Client certificates by requests: a new key, a CertificateSigningRequest, and the wait until it is signed.

The key never leaves this process, unless the caller writes it.
"""

from __future__ import annotations

import asyncio
import base64
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from clusterregistry.apimachinery.meta.base64_text import content_of
from clusterregistry.apimachinery.operator_error import OperatorError
from clusterregistry.client.errors import printable
from clusterregistry.client.rest import GroupVersionResource, Object, ResourceClient

REQUESTS = GroupVersionResource("certificates.k8s.io", "v1", "certificatesigningrequests")
SIGNER = "kubernetes.io/kube-apiserver-client"
_USAGES = ("client auth", "digital signature")
_PAUSE, _LONGEST_PAUSE = 0.2, 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRequest:
    """A key and the request for its certificate, in PEM."""

    key: bytes = field(repr=False)
    request: bytes

    def manifest(self, name: str, *, seconds: int) -> Object:
        """The CertificateSigningRequest of this name, for a certificate that lives so long."""
        return {
            "apiVersion": "certificates.k8s.io/v1",
            "kind": "CertificateSigningRequest",
            "metadata": {"name": name},
            "spec": {
                "request": base64.b64encode(self.request).decode(),
                "signerName": SIGNER,
                "usages": list(_USAGES),
                "expirationSeconds": seconds,
            },
        }


def new_request(user: str, groups: Sequence[str]) -> NewRequest:
    """A new key, and a request for a certificate of that user in these groups. Takes some milliseconds."""
    from cryptography import x509  # noqa: PLC0415 - slow import
    from cryptography.hazmat.primitives import hashes  # noqa: PLC0415
    from cryptography.hazmat.primitives.serialization import Encoding  # noqa: PLC0415
    from cryptography.x509.oid import NameOID  # noqa: PLC0415

    from clusterregistry.apimachinery import certificates  # noqa: PLC0415

    key = certificates.new_key()
    with warnings.catch_warnings():
        # X.520 has 64 characters for a name; users of Kubernetes have longer ones.
        warnings.simplefilter("ignore")
        parts: list[Any] = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group, _validate=False) for group in groups]
        parts.append(x509.NameAttribute(NameOID.COMMON_NAME, user, _validate=False))
        request = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(parts)).sign(key, hashes.SHA256())
    return NewRequest(key=certificates.key_pem(key), request=request.public_bytes(Encoding.PEM))


async def signed(requests: ResourceClient, name: str, *, next_step: str) -> bytes:
    """Waits until a request is signed, and returns the certificate in PEM. Raises ClientError and OperatorError.

    ``next_step`` is what to do after a refusal, besides asking for its reason.
    """
    pause = _PAUSE
    while True:
        status = (await requests.get(name)).get("status") or {}
        refused = next((each for each in conditions(status) if each.get("type") in ("Denied", "Failed")), None)
        if refused is not None:
            why = printable(str(refused.get("message") or refused.get("reason")))
            raise OperatorError(
                f"the certificate request {name} was refused: {why}",
                remedy=f"ask the registry's administrator why, and {next_step}",
            )
        if pem := content_of(status.get("certificate") or ""):
            return pem
        await asyncio.sleep(pause)
        pause = min(pause * 1.5, _LONGEST_PAUSE)


def conditions(status: Object) -> list[Object]:
    """The conditions of a request."""
    found = status.get("conditions")
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def validity(certificate: bytes) -> tuple[float, float]:
    """The Unix times of the begin and the end of a certificate in PEM. Raises ValueError."""
    from cryptography import x509  # noqa: PLC0415 - slow import

    found = x509.load_pem_x509_certificates(certificate)[0]
    return _unix(found.not_valid_before_utc), _unix(found.not_valid_after_utc)


def _unix(time: datetime) -> float:
    return time.timestamp()
