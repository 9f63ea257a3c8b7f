"""Who knows the users and their rights: this server itself, or the host cluster of aggregated mode."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from clusterregistry.apiserver.authn.token_file import TokenFile
from clusterregistry.apiserver.authz import modes
from clusterregistry.apiserver.authz.interface import Authorizer
from clusterregistry.apiserver.authz.rbac.policy import Policy
from clusterregistry.apiserver.authz.union import Union
from clusterregistry.apiserver.health import Check
from clusterregistry.apiserver.options import CompletedOptions, oidc
from clusterregistry.apiserver.options.host_cluster import HostCluster
from clusterregistry.apiserver.reviews.authentication import SelfSubjectReviews, TokenReviews, TokenSource
from clusterregistry.apiserver.reviews.authorization import (
    SelfSubjectAccessReviews,
    SelfSubjectRulesReviews,
    SubjectAccessReviews,
)
from clusterregistry.apiserver.reviews.interface import Review

if TYPE_CHECKING:
    from clusterregistry.apiserver.hostcluster.config_watch import AuthConfigWatch


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthComponents:
    """All that authentication and authorization ask."""

    tokens: Sequence[TokenSource]
    authorizer: Union
    reviews: Sequence[Review] = ()
    """The questions about users that are answered here."""
    checks: Mapping[str, Check] = field(default_factory=dict)
    """Whether those answer who are asked elsewhere."""
    following: AuthConfigWatch | None = None
    token_file: TokenFile | None = None
    """One of ``tokens``, to be followed; None: there is no such file."""


async def local_auth(
    options: CompletedOptions, policy: Policy, *, now: Callable[[], str], stack: contextlib.AsyncExitStack
) -> AuthComponents:
    """As the options say; ``stack`` closes them. Raises StartupProblem."""
    sources, made = await _asked_elsewhere(options, stack)
    authorizer = modes.in_order(options.authorization.authorization_mode, policy, made=made)
    path = options.authentication.token_auth_file
    token_file = TokenFile(path) if path else None
    tokens = [*([] if token_file is None else [token_file]), *sources]
    reviews = (
        SelfSubjectReviews(now),
        TokenReviews(tokens),
        SelfSubjectAccessReviews(authorizer),
        SelfSubjectRulesReviews(authorizer),
        SubjectAccessReviews(authorizer),
    )
    return AuthComponents(tokens=tokens, authorizer=authorizer, reviews=reviews, token_file=token_file)


def host_auth(host: HostCluster, options: CompletedOptions, stack: contextlib.AsyncExitStack) -> AuthComponents:
    """The host cluster, which answers the reviews about users itself; ``stack`` leaves it. Raises StartupProblem."""
    from clusterregistry.apiserver.delegated_auth import Delegating  # noqa: PLC0415

    said = Delegating(host, options, stack).begin()
    return AuthComponents(
        tokens=[said.tokens], authorizer=said.authorizer, checks=said.checks, following=said.following
    )


async def _asked_elsewhere(
    options: CompletedOptions, stack: contextlib.AsyncExitStack
) -> tuple[Sequence[TokenSource], Mapping[str, Authorizer]]:
    """Token sources, and authorizers by mode."""
    webhooks = options.webhooks
    files = (webhooks.authentication_token_webhook_config_file, webhooks.authorization_webhook_config_file)
    if oidc.settings(options.oidc) is None and not any(files):
        return (), {}
    # Only here, and above: what talks to others takes its time to import, and most servers ask nobody.
    from clusterregistry.apiserver import delegated_auth  # noqa: PLC0415

    others = await delegated_auth.connect(options, stack)
    return others.tokens, others.modes
