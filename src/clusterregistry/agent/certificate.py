"""The client certificate of an agent: a new key, the request for it, and the wait until it is signed."""

from __future__ import annotations

import asyncio
import secrets
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from clusterregistry.api.clusterregistry.agents import AGENTS_GROUP, agent_user, request_prefix
from clusterregistry.apimachinery.meta.base64_text import content_of
from clusterregistry.apimachinery.operator_error import OperatorError
from clusterregistry.client.errors import printable
from clusterregistry.client.rest import Client, GroupVersionResource, Object, ResourceClient

DAYS = 30
"""The validity that an agent asks for."""

REQUESTS = GroupVersionResource("certificates.k8s.io", "v1", "certificatesigningrequests")
_SIGNER = "kubernetes.io/kube-apiserver-client"
_USAGES = ("client auth", "digital signature")
_PAUSE, _LONGEST_PAUSE = 0.2, 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentCertificate:
    """A certificate and its key, in PEM."""

    certificate: bytes
    key: bytes = field(repr=False)


async def request_certificate(
    client: Client,
    cluster: str,
    *,
    seconds: int = DAYS * 86400,
    patience: float = 60.0,
    say: Callable[[str], None] = lambda _: None,
) -> AgentCertificate:
    """Makes a key, requests its certificate and waits for it. Raises ClientError and OperatorError.

    ``patience`` is in seconds. ``say`` gets the name of the request once it is made.
    """
    key, request = await asyncio.to_thread(_new_request, cluster)
    name = request_prefix(cluster) + secrets.token_hex(5)
    requests = client.resource(REQUESTS)
    await requests.create(_manifest(name, request, seconds=seconds))
    say(name)
    try:
        async with asyncio.timeout(patience):
            return AgentCertificate(certificate=await _signed(requests, name), key=key)
    except TimeoutError:
        raise OperatorError(
            f"the certificate request {name} was not signed within {patience:g} s",
            remedy=f"ask the registry's administrator to look at it: kubectl describe csr {name}. The registry signs "
            "only if it has an authority for clients of its own (--generate-admin)",
        ) from None


async def _signed(requests: ResourceClient, name: str) -> bytes:
    pause = _PAUSE
    while True:
        status = (await requests.get(name)).get("status") or {}
        refused = next((each for each in _conditions(status) if each.get("type") in ("Denied", "Failed")), None)
        if refused is not None:
            why = printable(str(refused.get("message") or refused.get("reason")))
            raise OperatorError(
                f"the certificate request {name} was refused: {why}",
                remedy="ask the registry's administrator why, and join again",
            )
        if pem := content_of(status.get("certificate") or ""):
            return pem
        await asyncio.sleep(pause)
        pause = min(pause * 1.5, _LONGEST_PAUSE)


def _conditions(status: Object) -> list[Object]:
    found = status.get("conditions")
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _manifest(name: str, request: bytes, *, seconds: int) -> Object:
    import base64  # noqa: PLC0415 - only here

    return {
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"name": name},
        "spec": {
            "request": base64.b64encode(request).decode(),
            "signerName": _SIGNER,
            "usages": list(_USAGES),
            "expirationSeconds": seconds,
        },
    }


def _new_request(cluster: str) -> tuple[bytes, bytes]:
    """A key and a request for its certificate, in PEM."""
    from cryptography import x509  # noqa: PLC0415 - slow import
    from cryptography.hazmat.primitives import hashes  # noqa: PLC0415
    from cryptography.hazmat.primitives.serialization import Encoding  # noqa: PLC0415
    from cryptography.x509.oid import NameOID  # noqa: PLC0415

    from clusterregistry.apimachinery import certificates  # noqa: PLC0415

    key = certificates.new_key()
    with warnings.catch_warnings():
        # X.520 has 64 characters for a name; users of Kubernetes have longer ones.
        warnings.simplefilter("ignore")
        common_name: Any = x509.NameAttribute(NameOID.COMMON_NAME, agent_user(cluster), _validate=False)
        name = x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, AGENTS_GROUP), common_name])
        request = x509.CertificateSigningRequestBuilder().subject_name(name).sign(key, hashes.SHA256())
    return certificates.key_pem(key), request.public_bytes(Encoding.PEM)


def validity(certificate: bytes) -> tuple[float, float]:
    """The Unix times of the begin and the end of a certificate in PEM. Raises ValueError."""
    from cryptography import x509  # noqa: PLC0415 - slow import

    found = x509.load_pem_x509_certificates(certificate)[0]
    return _unix(found.not_valid_before_utc), _unix(found.not_valid_after_utc)


def _unix(time: datetime) -> float:
    return time.timestamp()
