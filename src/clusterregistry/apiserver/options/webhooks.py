"""Options about webhooks that say who users are and what they may do: the group, and what is wrong with it."""

# ruff: noqa: RUF009 - option() declares a field, it does not compute a default
from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from clusterregistry.apiserver.authz import modes
from clusterregistry.apiserver.options import checks
from clusterregistry.apiserver.options.authorization import AuthorizationOptions
from clusterregistry.cli.options.field import option
from clusterregistry.cli.options.problems import Problem
from clusterregistry.cli.options.value_types import BOOLEAN, DURATION, FILE, WORDS, choice


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookOptions:
    """Webhooks."""

    authentication_token_webhook_config_file: Path | None = option(
        None,
        kind=FILE,
        help="A webhook that knows tokens, described by a kubeconfig: its cluster is the webhook, its user is this "
        "server. It is asked with a TokenReview about tokens that nobody else knows.",
        default_shown="no webhook",
        example="--authentication-token-webhook-config-file=authentication.kubeconfig",
    )
    authentication_token_webhook_cache_ttl: float = option(
        120.0,
        kind=DURATION,
        help="How long the answers of that webhook hold, the good ones and the bad ones.",
        example="--authentication-token-webhook-cache-ttl=30s",
    )
    authentication_token_webhook_version: Literal["v1"] = option(
        "v1",
        kind=choice("v1", later=("v1beta1",)),
        help="The version of `authentication.k8s.io` in which that webhook is asked.",
    )
    api_audiences: tuple[str, ...] = option(
        (),
        kind=WORDS,
        help="What this server is called in tokens. That webhook is told; a token that it knows to be for others only "
        "is refused.",
        default_shown="nothing",
        example="--api-audiences=PROGRAM",
    )
    authorization_webhook_config_file: Path | None = option(
        None,
        kind=FILE,
        help="The webhook of the mode Webhook, described by a kubeconfig as above. It is asked with a "
        "SubjectAccessReview.",
        default_shown="no webhook",
        example="--authorization-mode=Webhook,RBAC --authorization-webhook-config-file=authorization.kubeconfig",
    )
    authorization_webhook_cache_authorized_ttl: float = option(
        300.0,
        kind=DURATION,
        help="How long it holds when that webhook allows something.",
        example="--authorization-webhook-cache-authorized-ttl=1m",
    )
    authorization_webhook_cache_unauthorized_ttl: float = option(
        30.0,
        kind=DURATION,
        help="How long it holds when that webhook does not allow something.",
        example="--authorization-webhook-cache-unauthorized-ttl=10s",
    )
    authorization_webhook_version: Literal["v1"] = option(
        "v1",
        kind=choice("v1", later=("v1beta1",)),
        help="The version of `authorization.k8s.io` in which that webhook is asked.",
    )
    authorization_webhook_failure_policy: Literal["NoOpinion", "Deny"] = option(
        "NoOpinion",
        kind=choice("NoOpinion", "Deny"),
        help="What counts when that webhook does not answer: NoOpinion leaves it to the modes after it, Deny asks none "
        "of them.",
        example="--authorization-webhook-failure-policy=Deny",
    )
    authorization_webhook: bool = option(
        False,
        kind=BOOLEAN,
        help="An older spelling: when true, the mode Webhook comes before those that "
        "--authorization-mode names, unless it is one of them.",
    )


def effective(authorization: AuthorizationOptions, webhooks: WebhookOptions) -> AuthorizationOptions:
    """The modes with what the older flag adds."""
    named = authorization.authorization_mode
    if not webhooks.authorization_webhook or modes.WEBHOOK in named:
        return authorization
    return replace(authorization, authorization_mode=(modes.WEBHOOK, *named))


def problems(options: WebhookOptions, authorization: AuthorizationOptions) -> list[Problem]:
    """Everything that is wrong with them."""
    flag = "--authorization-webhook-config-file"
    found = checks.readable_file(
        "--authentication-token-webhook-config-file", options.authentication_token_webhook_config_file
    )
    found += checks.readable_file(flag, options.authorization_webhook_config_file)
    wanted = modes.WEBHOOK in effective(authorization, options).authorization_mode
    if wanted and options.authorization_webhook_config_file is None:
        found.append(Problem("--authorization-mode", f"Webhook needs to know whom to ask: give {flag}"))
    if not wanted and options.authorization_webhook_config_file is not None:
        found.append(Problem(flag, "is of no use without the mode Webhook", "add it to --authorization-mode"))
    return found
