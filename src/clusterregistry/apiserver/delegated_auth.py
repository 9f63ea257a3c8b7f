"""Builds authenticators and authorizers that ask other servers: an OIDC issuer, webhooks, or the host cluster."""

from __future__ import annotations

import contextlib
from pathlib import Path

from clusterregistry.apimachinery.meta import errors
from clusterregistry.apimachinery.operator_error import OperatorError
from clusterregistry.apiserver.auth import AuthComponents
from clusterregistry.apiserver.authn.bearer import TokenAuthenticator
from clusterregistry.apiserver.authn.oidc.authenticator import IssuedTokens
from clusterregistry.apiserver.authn.oidc.issuer import Issuer
from clusterregistry.apiserver.authn.token_review import TokenReviews
from clusterregistry.apiserver.authn.user import MASTERS
from clusterregistry.apiserver.authz import modes
from clusterregistry.apiserver.authz.interface import Authorizer, Decision, Verdict
from clusterregistry.apiserver.authz.modes import OpenPaths, PrivilegedGroups
from clusterregistry.apiserver.authz.union import Union
from clusterregistry.apiserver.authz.webhook import Webhook as WebhookAuthorizer
from clusterregistry.apiserver.hostcluster import probe
from clusterregistry.apiserver.hostcluster.client import (
    ACCESS_REVIEWS,
    TOKEN_REVIEWS,
    ConfigMap,
    Reviews,
    for_users,
    host_config,
)
from clusterregistry.apiserver.hostcluster.config_watch import AuthConfigWatch
from clusterregistry.apiserver.options import CompletedOptions, oidc
from clusterregistry.apiserver.options.host_cluster import HostCluster
from clusterregistry.apiserver.tasks import run_in_background
from clusterregistry.apiserver.webhooks import config_file
from clusterregistry.apiserver.webhooks.errors import CallFailed
from clusterregistry.apiserver.webhooks.health_state import HealthState
from clusterregistry.apiserver.webhooks.webhook import Documents, Webhook
from clusterregistry.client import rest_config
from clusterregistry.client.rest_config import Pem, RestConfig

# Issuers and webhooks, which a server asks that stands alone --------------------------------------------------------

_ISSUER_SECONDS = 10.0
"""How long a request to an issuer may take."""

_FAILURE_VERDICTS = {"NoOpinion": Verdict.NO_OPINION, "Deny": Verdict.DENY}


def remote_tokens(options: CompletedOptions, stack: contextlib.AsyncExitStack) -> list[TokenAuthenticator]:
    """The issuer, then the webhook, as far as the options name them; ``stack`` closes them. Raises OperatorError."""
    return [*_issuers(options, stack), *_token_webhooks(options, stack)]


def remote_modes(options: CompletedOptions, stack: contextlib.AsyncExitStack) -> dict[str, Authorizer]:
    """The authorizer of the mode Webhook, if the options name one; ``stack`` closes it. Raises OperatorError."""
    webhooks = options.webhooks
    if webhooks.authorization_webhook_config_file is None:
        return {}
    authorizer = WebhookAuthorizer(
        _webhook(webhooks.authorization_webhook_config_file, options, stack),
        allowed_seconds=webhooks.authorization_webhook_cache_authorized_ttl,
        refused_seconds=webhooks.authorization_webhook_cache_unauthorized_ttl,
        on_failure=_FAILURE_VERDICTS[webhooks.authorization_webhook_failure_policy],
    )
    stack.push_async_callback(authorizer.close)
    return {modes.WEBHOOK: authorizer}


def _issuers(options: CompletedOptions, stack: contextlib.AsyncExitStack) -> list[TokenAuthenticator]:
    settings, ca_file = oidc.settings(options.oidc), options.oidc.oidc_ca_file
    if settings is None:
        return []
    authority = Pem(file=ca_file)
    problems = rest_config.file_problems(certificate_authority=authority)
    if problems:
        shown = problems[0].removeprefix("cluster.certificate-authority: ")
        raise OperatorError(f"--oidc-ca-file: {shown}", remedy="give certificates in PEM, or leave the flag out")
    documents = Documents(certificate_authority=authority, user_agent=options.program, patience=_ISSUER_SECONDS)
    stack.push_async_callback(documents.close)
    issuer = Issuer(settings, documents)
    stack.push_async_callback(issuer.close)
    issuer.start()
    return [IssuedTokens(settings, issuer)]


def _token_webhooks(options: CompletedOptions, stack: contextlib.AsyncExitStack) -> list[TokenAuthenticator]:
    webhooks = options.webhooks
    if webhooks.authentication_token_webhook_config_file is None:
        return []
    reviews = TokenReviews(
        _webhook(webhooks.authentication_token_webhook_config_file, options, stack),
        seconds=webhooks.authentication_token_webhook_cache_ttl,
        audiences=webhooks.api_audiences,
    )
    stack.push_async_callback(reviews.close)
    return [reviews]


def _webhook(path: Path, options: CompletedOptions, stack: contextlib.AsyncExitStack) -> Webhook:
    webhook = Webhook(config_file.load(path, user_agent=options.program))
    stack.push_async_callback(webhook.close)
    return webhook


# The host cluster, which a server of aggregated mode asks -----------------------------------------------------------

HEALTH_PATHS = ("/healthz", "/livez", "/readyz")
"""Allowed to everyone without a review: a health check must not depend on another server."""

_NOT_ASKED_YET = "the host cluster was not asked yet"


class HostClusterAuth:
    """Delegates authentication and authorization to the host cluster; ``stack`` ends the connections."""

    def __init__(self, host: HostCluster, options: CompletedOptions, stack: contextlib.AsyncExitStack) -> None:
        self._host, self._options, self._stack = host, options, stack

    async def build(self) -> AuthComponents:
        """Waits for no answer of the host cluster. Raises OperatorError."""
        authentication = host_config(self._host.authentication, user_agent=self._options.program)
        authorization = host_config(self._host.authorization, user_agent=self._options.program)
        tokens = _state("token reviews", consequence="tokens that are not remembered any more get a 503")
        decisions = _state("access reviews", consequence="what is not remembered any more gets a 503")
        config_watch = self._config_watch(authentication) if self._host.reads_configmap else None
        configuration = {"authentication-config": config_watch.state.problem} if config_watch else {}
        return AuthComponents(
            tokens=[await self._tokens(authentication, tokens)],
            authorizer=await self._authorizer(authorization, decisions),
            config_watch=config_watch,
            checks={**configuration, "token-review": tokens.problem, "access-review": decisions.problem},
        )

    def _config_watch(self, config: RestConfig) -> AuthConfigWatch:
        configmap = ConfigMap(config)
        self._stack.push_async_callback(configmap.close)
        return AuthConfigWatch(configmap)

    async def _tokens(self, config: RestConfig, state: HealthState) -> TokenReviews:
        reviews = self._reviews(config, TOKEN_REVIEWS)
        await self._stack.enter_async_context(run_in_background(probe.keep_probing(probe.token_probe(reviews), state)))
        tokens = TokenReviews(
            reviews,
            seconds=self._options.webhooks.authentication_token_webhook_cache_ttl,
            audiences=self._options.webhooks.api_audiences,
            on_failure=_token_not_reviewed,
            state=state,
        )
        self._stack.push_async_callback(tokens.close)
        return tokens

    async def _authorizer(self, config: RestConfig, state: HealthState) -> Union:
        """As in k8s.io/apiserver: administrators and health paths first, then the host cluster's decision."""
        reviews = self._reviews(config, ACCESS_REVIEWS)
        await self._stack.enter_async_context(run_in_background(probe.keep_probing(probe.access_probe(reviews), state)))
        authorizer = WebhookAuthorizer(
            reviews,
            allowed_seconds=self._options.webhooks.authorization_webhook_cache_authorized_ttl,
            refused_seconds=self._options.webhooks.authorization_webhook_cache_unauthorized_ttl,
            undecided=_undecided,
            state=state,
        )
        self._stack.push_async_callback(authorizer.close)
        return Union((PrivilegedGroups(MASTERS), OpenPaths(*HEALTH_PATHS), authorizer))

    def _reviews(self, config: RestConfig, path: str) -> Reviews:
        reviews = Reviews(config, path)
        self._stack.push_async_callback(reviews.close)
        return reviews


def _state(what: str, *, consequence: str) -> HealthState:
    return HealthState(f"the host cluster, asked for {what},", consequence=consequence, at_first=_NOT_ASKED_YET)


def _token_not_reviewed(error: CallFailed) -> errors.APIError:
    return errors.service_unavailable(f"the token cannot be reviewed now: {for_users(error)}")


def _undecided(error: CallFailed) -> Decision:
    return Decision(Verdict.DENY, for_users(error), undecided=True)
