"""Checks whether the host cluster answers reviews: with a real review now and then, more often while it fails.

Without it, a server without requests would notice neither that it lost its rights nor that it has them again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from clusterregistry.apiserver.authn import token_review
from clusterregistry.apiserver.authn.user import ANONYMOUS, User
from clusterregistry.apiserver.authz import webhook
from clusterregistry.apiserver.authz.interface import Attributes
from clusterregistry.apiserver.webhooks.errors import CallFailed
from clusterregistry.apiserver.webhooks.health_state import HealthState

CALM_SECONDS = 30.0
FAILING_SECONDS = 2.0

_UNKNOWN_TOKEN = "apiserver-asks-whether-tokens-can-be-reviewed"  # noqa: S105 - of no user


class Reviews(Protocol):
    async def ask(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """Raises CallFailed, and nothing else."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """A review to request, and ``read``, which raises CallFailed for an answer that cannot be used."""

    reviews: Reviews
    question: Mapping[str, Any]
    read: Callable[[Mapping[str, Any]], object]

    async def ask(self) -> None:
        self.read(await self.reviews.ask(self.question))


def token_probe(reviews: Reviews) -> Probe:
    return Probe(
        reviews=reviews,
        question=token_review.question(_UNKNOWN_TOKEN, ()),
        read=lambda answer: token_review.read_review(answer, audiences=()),
    )


def access_probe(reviews: Reviews) -> Probe:
    asked = Attributes(user=User(ANONYMOUS), verb="get", is_resource_request=False, path="/livez")
    return Probe(reviews=reviews, question=webhook.question(asked), read=webhook.read_status)


async def keep_probing(
    probe: Probe, state: HealthState, *, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
) -> None:
    """Reports the outcome of the review to the state, without end."""
    since = CALM_SECONDS
    while True:
        # Requests report to the state too: their failure is checked soon, also in calm times.
        if since >= CALM_SECONDS or state.problem():
            await _ask(probe, state)
            since = 0.0
        await sleep(FAILING_SECONDS)
        since += FAILING_SECONDS


async def _ask(probe: Probe, state: HealthState) -> None:
    try:
        await probe.ask()
    except CallFailed as error:
        state.failed(error)
    else:
        state.worked()
