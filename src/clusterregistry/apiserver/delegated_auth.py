"""Authentication and authorization left to a host cluster: made from the options of aggregated mode."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from typing import Any

from clusterregistry.apimachinery.meta import errors
from clusterregistry.apiserver.authn.token_review import TokenReviews
from clusterregistry.apiserver.authn.user import MASTERS
from clusterregistry.apiserver.authz.interface import Decision, Verdict
from clusterregistry.apiserver.authz.open_paths import OpenPaths
from clusterregistry.apiserver.authz.privileged_groups import PrivilegedGroups
from clusterregistry.apiserver.authz.union import Union
from clusterregistry.apiserver.authz.webhook import Webhook as AccessReviews
from clusterregistry.apiserver.health import Check
from clusterregistry.apiserver.hostcluster import access, probe
from clusterregistry.apiserver.hostcluster.client import ACCESS_REVIEWS, TOKEN_REVIEWS, Objects, Reviews, for_users
from clusterregistry.apiserver.hostcluster.config_watch import Following
from clusterregistry.apiserver.options.host_cluster import HostCluster
from clusterregistry.apiserver.options.webhooks import WebhookOptions
from clusterregistry.apiserver.webhooks.config_file import Endpoint
from clusterregistry.apiserver.webhooks.errors import CallFailed
from clusterregistry.apiserver.webhooks.health_state import State

HEALTH_PATHS = ("/healthz", "/livez", "/readyz")
"""Allowed to everybody without asking: who looks whether a server is well must not depend on another one."""

_NOT_ASKED_YET = "the host cluster was not asked yet"


@dataclass(frozen=True, slots=True, kw_only=True)
class Delegation:
    """What the host cluster does for this server."""

    tokens: TokenReviews
    authorizer: Union
    following: Following | None
    """What it says of certificates and front proxies; None: the options say it."""
    checks: Mapping[str, Check]


class Delegating:
    """Begins to talk to a host cluster; ``stack`` ends it."""

    def __init__(self, host: HostCluster, options: WebhookOptions, stack: contextlib.AsyncExitStack) -> None:
        self._host, self._options, self._stack = host, options, stack

    def begin(self) -> Delegation:
        """Waits for no answer. Raises StartupProblem."""
        authentication = access.endpoint(self._host.authentication)
        authorization = access.endpoint(self._host.authorization)
        tokens = _state("token reviews", consequence="tokens that are not remembered any more get a 503")
        decisions = _state("access reviews", consequence="what is not remembered any more gets a 503")
        following = self._following(authentication) if self._host.reads_configmap else None
        configuration = {"authentication-config": following.state.problem} if following else {}
        return Delegation(
            tokens=self._tokens(authentication, tokens),
            authorizer=self._authorizer(authorization, decisions),
            following=following,
            checks={**configuration, "token-review": tokens.problem, "access-review": decisions.problem},
        )

    def _following(self, endpoint: Endpoint) -> Following:
        objects = Objects(endpoint)
        self._stack.push_async_callback(objects.close)
        return Following(objects)

    def _tokens(self, endpoint: Endpoint, state: State) -> TokenReviews:
        reviews = self._reviews(endpoint, TOKEN_REVIEWS)
        self._meanwhile(probe.keep_probing(probe.token_probe(reviews), state))
        made = TokenReviews(
            reviews,
            seconds=self._options.authentication_token_webhook_cache_ttl,
            audiences=self._options.api_audiences,
            on_failure=_token_not_reviewed,
            state=state,
        )
        self._stack.push_async_callback(made.close)
        return made

    def _authorizer(self, endpoint: Endpoint, state: State) -> Union:
        """As the library under kube-apiserver's extensions: administrators and health first, then the host's word."""
        reviews = self._reviews(endpoint, ACCESS_REVIEWS)
        self._meanwhile(probe.keep_probing(probe.access_probe(reviews), state))
        made = AccessReviews(
            reviews,
            allowed_seconds=self._options.authorization_webhook_cache_authorized_ttl,
            refused_seconds=self._options.authorization_webhook_cache_unauthorized_ttl,
            undecided=_undecided,
            state=state,
        )
        self._stack.push_async_callback(made.close)
        return Union((PrivilegedGroups(MASTERS), OpenPaths(*HEALTH_PATHS), made))

    def _reviews(self, endpoint: Endpoint, path: str) -> Reviews:
        reviews = Reviews(endpoint, path)
        self._stack.push_async_callback(reviews.close)
        return reviews

    def _meanwhile(self, work: Coroutine[Any, Any, None]) -> None:
        self._stack.push_async_callback(_cancel, asyncio.create_task(work))


def _state(what: str, *, consequence: str) -> State:
    return State(f"the host cluster, asked for {what},", consequence=consequence, at_first=_NOT_ASKED_YET)


def _token_not_reviewed(error: CallFailed) -> errors.APIError:
    return errors.service_unavailable(f"the token cannot be reviewed now: {for_users(error)}")


def _undecided(error: CallFailed) -> Decision:
    return Decision(Verdict.DENY, for_users(error), undecided=True)


async def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
