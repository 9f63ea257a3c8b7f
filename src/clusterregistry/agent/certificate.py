"""The client certificate of an agent: a new key, the request for it, and the wait until it is signed."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field

from clusterregistry.api.clusterregistry.agents import AGENTS_GROUP, agent_user, request_prefix
from clusterregistry.apimachinery.operator_error import OperatorError
from clusterregistry.client.certificate_request import REQUESTS, new_request, signed
from clusterregistry.client.rest import Client

DAYS = 30
"""The validity that an agent asks for."""


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
    made = await asyncio.to_thread(new_request, agent_user(cluster), (AGENTS_GROUP,))
    name = request_prefix(cluster) + secrets.token_hex(5)
    requests = client.resource(REQUESTS)
    await requests.create(made.manifest(name, seconds=seconds))
    say(name)
    try:
        async with asyncio.timeout(patience):
            return AgentCertificate(certificate=await signed(requests, name, next_step="join again"), key=made.key)
    except TimeoutError:
        raise OperatorError(
            f"the certificate request {name} was not signed within {patience:g} s",
            remedy=f"ask the registry's administrator to look at it: kubectl describe csr {name}. The registry signs "
            "only if it has an authority for clients of its own (--generate-admin)",
        ) from None
