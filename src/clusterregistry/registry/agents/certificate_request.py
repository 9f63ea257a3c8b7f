"""What the request for an agent's certificate must be: for its own user, for clients, and for a bounded time."""

from __future__ import annotations

from typing import Any

from clusterregistry.api.certificates.v1 import pkcs10
from clusterregistry.api.certificates.v1.types import CLIENT_AUTH, CLIENT_SIGNER, DIGITAL_SIGNATURE, KEY_ENCIPHERMENT
from clusterregistry.api.clusterregistry.agents import AGENTS_GROUP, LONGEST_SECONDS, agent_user, request_prefix
from clusterregistry.apimachinery.meta.base64_text import content_of

_USAGES = frozenset({CLIENT_AUTH, DIGITAL_SIGNATURE, KEY_ENCIPHERMENT})

_LARGEST = 16 << 10
"""Bytes of base64: a request with an RSA key of 8192 bits takes 3 KiB."""


def request_problem(request: dict[str, Any], cluster: str) -> str:
    """Why a CertificateSigningRequest is not one for the agent of a cluster; empty if it is."""
    spec = request["spec"]
    if not request["metadata"].get("name", "").startswith(request_prefix(cluster)):
        return f"its name must begin with {request_prefix(cluster)}"
    if spec.get("signerName") != CLIENT_SIGNER:
        return f"its signerName must be {CLIENT_SIGNER}"
    usages = spec.get("usages") or ()
    if CLIENT_AUTH not in usages or not _USAGES.issuperset(usages):
        return f"its usages must be {CLIENT_AUTH}, and at most {DIGITAL_SIGNATURE} and {KEY_ENCIPHERMENT} besides"
    seconds = spec.get("expirationSeconds")
    if not isinstance(seconds, int) or seconds > LONGEST_SECONDS:
        return f"its expirationSeconds must be given, and {LONGEST_SECONDS} at most"
    return _content_problem(spec.get("request") or "", cluster)


def _content_problem(text: str, cluster: str) -> str:
    if len(text) > _LARGEST:
        return f"it is larger than {_LARGEST} bytes"
    try:
        request = pkcs10.parse_request(content_of(text) or b"")
    except pkcs10.MalformedRequestError as error:
        return str(error)
    wanted = {(pkcs10.ORGANIZATION_OID, AGENTS_GROUP), (pkcs10.COMMON_NAME_OID, agent_user(cluster))}
    subject = [(each.oid.dotted_string, str(each.value)) for each in request.subject]
    if set(subject) != wanted or len(subject) != len(wanted):
        return f"its subject must be O={AGENTS_GROUP}, CN={agent_user(cluster)} and nothing else"
    return "it must have no extensions" if len(request.extensions) else ""
