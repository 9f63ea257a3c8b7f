"""Those whom the server asks over the network: the issuer of tokens, and webhooks. Made from the options."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from clusterregistry.apimachinery.meta import errors
from clusterregistry.apimachinery.operator_error import OperatorError
from clusterregistry.apiserver.authn.bearer import TokenAuthenticator
from clusterregistry.apiserver.authn.oidc.authenticator import IssuedTokens
from clusterregistry.apiserver.authn.oidc.issuer import Issuer
from clusterregistry.apiserver.authn.token_review import TokenReviews
from clusterregistry.apiserver.authn.user import MASTERS
from clusterregistry.apiserver.authz import modes
from clusterregistry.apiserver.authz.interface import Authorizer, Decision, Verdict
from clusterregistry.apiserver.authz.modes import OpenPaths, PrivilegedGroups
from clusterregistry.apiserver.authz.union import Union
from clusterregistry.apiserver.authz.webhook import Webhook as AccessReviews
from clusterregistry.apiserver.authz.webhook import Webhook as WebhookAuthorizer
from clusterregistry.apiserver.health import Check
from clusterregistry.apiserver.hostcluster import access, probe
from clusterregistry.apiserver.hostcluster.client import ACCESS_REVIEWS, TOKEN_REVIEWS, Objects, Reviews, for_users
from clusterregistry.apiserver.hostcluster.config_watch import AuthConfigWatch
from clusterregistry.apiserver.options import CompletedOptions, oidc
from clusterregistry.apiserver.options.host_cluster import HostCluster
from clusterregistry.apiserver.webhooks import config_file, tls
from clusterregistry.apiserver.webhooks.config_file import Endpoint
from clusterregistry.apiserver.webhooks.errors import CallFailed
from clusterregistry.apiserver.webhooks.health_state import HealthState
from clusterregistry.apiserver.webhooks.transport import Transport
from clusterregistry.apiserver.webhooks.webhook import Webhook

HEALTH_PATHS = ("/healthz", "/livez", "/readyz")
"""Allowed to everybody without asking: who looks whether a server is well must not depend on another one."""

_NOT_ASKED_YET = "the host cluster was not asked yet"


@dataclass(frozen=True, slots=True, kw_only=True)
class Delegation:
    """What the host cluster does for this server."""

    tokens: TokenReviews
    authorizer: Union
    following: AuthConfigWatch | None
    """What it says of certificates and front proxies; None: the options say it."""
    checks: Mapping[str, Check]


class Delegating:
    """Begins to talk to a host cluster; ``stack`` ends it."""

    def __init__(self, host: HostCluster, options: CompletedOptions, stack: contextlib.AsyncExitStack) -> None:
        self._host, self._options, self._stack = host, options.webhooks, stack
        self._user_agent = options.program

    def begin(self) -> Delegation:
        """Waits for no answer. Raises StartupProblem."""
        authentication = replace(access.endpoint(self._host.authentication), user_agent=self._user_agent)
        authorization = replace(access.endpoint(self._host.authorization), user_agent=self._user_agent)
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

    def _following(self, endpoint: Endpoint) -> AuthConfigWatch:
        objects = Objects(endpoint)
        self._stack.push_async_callback(objects.close)
        return AuthConfigWatch(objects)

    def _tokens(self, endpoint: Endpoint, state: HealthState) -> TokenReviews:
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

    def _authorizer(self, endpoint: Endpoint, state: HealthState) -> Union:
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


def _state(what: str, *, consequence: str) -> HealthState:
    return HealthState(f"the host cluster, asked for {what},", consequence=consequence, at_first=_NOT_ASKED_YET)


def _token_not_reviewed(error: CallFailed) -> errors.APIError:
    return errors.service_unavailable(f"the token cannot be reviewed now: {for_users(error)}")


def _undecided(error: CallFailed) -> Decision:
    return Decision(Verdict.DENY, for_users(error), undecided=True)


async def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


_ISSUER_PATIENCE = 10.0
_VERDICTS = {"NoOpinion": Verdict.NO_OPINION, "Deny": Verdict.DENY}


@dataclass(frozen=True, slots=True, kw_only=True)
class Remote:
    """Token sources in the order in which they are asked, and authorizers by mode."""

    tokens: list[TokenAuthenticator] = field(default_factory=list)
    modes: Mapping[str, Authorizer] = field(default_factory=dict)


async def connect(options: CompletedOptions, stack: contextlib.AsyncExitStack) -> Remote:
    """All that the options name; ``stack`` closes them. Asks nobody yet. Raises StartupProblem."""
    return Remote(
        tokens=[*_issuers(options, stack), *_token_reviews(options, stack)],
        modes=_webhook_mode(options, stack),
    )


def _issuers(options: CompletedOptions, stack: contextlib.AsyncExitStack) -> list[TokenAuthenticator]:
    settings, ca_file = oidc.settings(options.oidc), options.oidc.oidc_ca_file
    if settings is None:
        return []
    context = tls.context()
    try:
        tls.trust(context, tls.content(ca_file) if ca_file else b"")
    except ValueError as error:
        raise OperatorError(
            f"--oidc-ca-file: {error}", remedy="give certificates in PEM, or leave the flag out"
        ) from None
    transport = Transport(context, patience=_ISSUER_PATIENCE, user_agent=options.program)
    stack.push_async_callback(transport.close)
    issuer = Issuer(settings, transport)
    stack.push_async_callback(issuer.close)
    issuer.start()
    return [IssuedTokens(settings, issuer)]


def _token_reviews(options: CompletedOptions, stack: contextlib.AsyncExitStack) -> list[TokenAuthenticator]:
    webhooks = options.webhooks
    path = webhooks.authentication_token_webhook_config_file
    if path is None:
        return []
    reviews = TokenReviews(
        _webhook(path, options, stack),
        seconds=webhooks.authentication_token_webhook_cache_ttl,
        audiences=webhooks.api_audiences,
    )
    stack.push_async_callback(reviews.close)
    return [reviews]


def _webhook_mode(options: CompletedOptions, stack: contextlib.AsyncExitStack) -> dict[str, Authorizer]:
    webhooks = options.webhooks
    path = webhooks.authorization_webhook_config_file
    if path is None:
        return {}
    authorizer = WebhookAuthorizer(
        _webhook(path, options, stack),
        allowed_seconds=webhooks.authorization_webhook_cache_authorized_ttl,
        refused_seconds=webhooks.authorization_webhook_cache_unauthorized_ttl,
        on_failure=_VERDICTS[webhooks.authorization_webhook_failure_policy],
    )
    stack.push_async_callback(authorizer.close)
    return {modes.WEBHOOK: authorizer}


def _webhook(path: Path, options: CompletedOptions, stack: contextlib.AsyncExitStack) -> Webhook:
    webhook = Webhook(replace(config_file.load(path), user_agent=options.program))
    stack.push_async_callback(webhook.close)
    return webhook
