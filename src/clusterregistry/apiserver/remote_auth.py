"""Those whom the server asks over the network: the issuer of tokens, and webhooks. Made from the options."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from clusterregistry.apimachinery.startup import StartupProblem
from clusterregistry.apiserver.authn.bearer import TokenAuthenticator
from clusterregistry.apiserver.authn.oidc.authenticator import IssuedTokens
from clusterregistry.apiserver.authn.oidc.issuer import Issuer
from clusterregistry.apiserver.authn.token_review import TokenReviews
from clusterregistry.apiserver.authz import modes
from clusterregistry.apiserver.authz.interface import Authorizer, Verdict
from clusterregistry.apiserver.authz.webhook import Webhook as WebhookAuthorizer
from clusterregistry.apiserver.options import CompletedOptions, oidc
from clusterregistry.apiserver.options.oidc import OIDCOptions
from clusterregistry.apiserver.options.webhooks import WebhookOptions
from clusterregistry.apiserver.webhooks import config_file, tls
from clusterregistry.apiserver.webhooks.transport import Transport
from clusterregistry.apiserver.webhooks.webhook import Webhook

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
        tokens=[*_issuers(options.oidc, stack), *_token_reviews(options.webhooks, stack)],
        modes=_webhook_mode(options.webhooks, stack),
    )


def _issuers(options: OIDCOptions, stack: contextlib.AsyncExitStack) -> list[TokenAuthenticator]:
    settings = oidc.settings(options)
    if settings is None:
        return []
    context = tls.context()
    try:
        tls.trust(context, tls.content(options.oidc_ca_file) if options.oidc_ca_file else b"")
    except ValueError as error:
        raise StartupProblem(
            f"--oidc-ca-file: {error}", remedy="give certificates in PEM, or leave the flag out"
        ) from None
    transport = Transport(context, patience=_ISSUER_PATIENCE)
    stack.push_async_callback(transport.close)
    issuer = Issuer(settings, transport)
    stack.push_async_callback(issuer.close)
    issuer.start()
    return [IssuedTokens(settings, issuer)]


def _token_reviews(options: WebhookOptions, stack: contextlib.AsyncExitStack) -> list[TokenAuthenticator]:
    path = options.authentication_token_webhook_config_file
    if path is None:
        return []
    reviews = TokenReviews(
        _webhook(path, stack),
        seconds=options.authentication_token_webhook_cache_ttl,
        audiences=options.api_audiences,
    )
    stack.push_async_callback(reviews.close)
    return [reviews]


def _webhook_mode(options: WebhookOptions, stack: contextlib.AsyncExitStack) -> dict[str, Authorizer]:
    path = options.authorization_webhook_config_file
    if path is None:
        return {}
    authorizer = WebhookAuthorizer(
        _webhook(path, stack),
        allowed_seconds=options.authorization_webhook_cache_authorized_ttl,
        refused_seconds=options.authorization_webhook_cache_unauthorized_ttl,
        on_failure=_VERDICTS[options.authorization_webhook_failure_policy],
    )
    stack.push_async_callback(authorizer.close)
    return {modes.WEBHOOK: authorizer}


def _webhook(path: Path, stack: contextlib.AsyncExitStack) -> Webhook:
    webhook = Webhook(config_file.load(path))
    stack.push_async_callback(webhook.close)
    return webhook
