"""Whether the host cluster answers reviews: asked now and then with a real question, more often while it does not.

Without it, a server that nobody asks would neither notice that it lost its rights nor that it has them again.
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

_NOBODYS_TOKEN = "apiserver-asks-whether-tokens-can-be-reviewed"  # noqa: S105 - of nobody


class Reviews(Protocol):
    async def ask(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """Raises CallFailed, and nothing else."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """A question to somebody, and how an answer is read: raises CallFailed for one that is of no use."""

    reviews: Reviews
    question: Mapping[str, Any]
    read: Callable[[Mapping[str, Any]], object]

    async def ask(self) -> None:
        self.read(await self.reviews.ask(self.question))


def token_probe(reviews: Reviews) -> Probe:
    return Probe(
        reviews=reviews,
        question=token_review.question(_NOBODYS_TOKEN, ()),
        read=lambda answer: token_review.read_review(answer, audiences=()),
    )


def access_probe(reviews: Reviews) -> Probe:
    asked = Attributes(user=User(ANONYMOUS), verb="get", is_resource_request=False, path="/livez")
    return Probe(reviews=reviews, question=webhook.question(asked), read=webhook.read_status)


async def keep_probing(
    probe: Probe, state: HealthState, *, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
) -> None:
    """For ever: tells the state what comes of the question."""
    since = CALM_SECONDS
    while True:
        # Others tell the state too: a failure that they met is looked into soon, also in calm times.
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
