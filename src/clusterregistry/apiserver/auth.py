"""Builds authenticators, authorizers and reviews: local, or delegated to the host cluster."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from clusterregistry.apiserver.authn.token_file import TokenFile
from clusterregistry.apiserver.authz import modes
from clusterregistry.apiserver.authz.group_rights import GroupAuthorizer, GroupRights
from clusterregistry.apiserver.authz.interface import Authorizer
from clusterregistry.apiserver.authz.rbac.policy import Policy
from clusterregistry.apiserver.authz.union import Union
from clusterregistry.apiserver.health import Check
from clusterregistry.apiserver.options import CompletedOptions, oidc, runtime_config
from clusterregistry.apiserver.registry.resource import Definition
from clusterregistry.apiserver.registry.store import Store
from clusterregistry.apiserver.registry.stored_groups import group_rights
from clusterregistry.apiserver.reviews.authentication import SelfSubjectReviews, TokenReviews, TokenSource
from clusterregistry.apiserver.reviews.authorization import (
    LocalSubjectAccessReviews,
    SelfSubjectAccessReviews,
    SelfSubjectRulesReviews,
    SubjectAccessReviews,
)
from clusterregistry.apiserver.reviews.interface import Review

if TYPE_CHECKING:
    from clusterregistry.apiserver.hostcluster.config_watch import AuthConfigWatch
    from clusterregistry.apiserver.product import OwnAuth

REVIEWS: Sequence[Definition] = (
    SelfSubjectReviews.definition,
    TokenReviews.definition,
    LocalSubjectAccessReviews.definition,
    SelfSubjectAccessReviews.definition,
    SelfSubjectRulesReviews.definition,
    SubjectAccessReviews.definition,
)
"""The reviews that a server on its own answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthComponents:
    """The parts of a server that authenticate and authorize, and the reviews that it serves."""

    tokens: Sequence[TokenSource]
    authorizer: Union
    """Without rights by groups."""
    group_rights: Mapping[tuple[str, str], GroupRights] = field(default_factory=dict)
    """The rights by groups, by group and plural of the resources."""
    reviews: Sequence[Review] = ()
    checks: Mapping[str, Check] = field(default_factory=dict)
    """Health checks of the servers that are asked."""
    config_watch: AuthConfigWatch | None = None
    """Watches the host cluster's configuration of certificates and front proxies; None: the options have all of it."""
    token_file: TokenFile | None = None
    """The one of ``tokens`` that is a file, to be reloaded; None: there is no file."""


async def build_auth(  # noqa: PLR0913 - half of them by keyword
    options: CompletedOptions,
    policy: Policy,
    stores: Sequence[Store],
    *,
    own: OwnAuth,
    now: Callable[[], str],
    stack: contextlib.AsyncExitStack,
) -> AuthComponents:
    """Builds what the options name; ``stack`` closes it. Waits for no other server. Raises OperatorError.

    ``own`` is what the product adds to a server that stands alone.
    """
    if options.host is None:
        return await _local_auth(options, policy, stores, own=own, now=now, stack=stack)
    # Late, as below: clients of other servers are slow to import, and most servers have none.
    from clusterregistry.apiserver.delegated_auth import HostClusterAuth  # noqa: PLC0415

    # The host cluster answers reviews itself.
    delegated = await HostClusterAuth(options.host, options, stack).build()
    return replace(delegated, group_rights=group_rights(stores, delegated.authorizer))


async def _local_auth(  # noqa: PLR0913 - half of them by keyword
    options: CompletedOptions,
    policy: Policy,
    stores: Sequence[Store],
    *,
    own: OwnAuth,
    now: Callable[[], str],
    stack: contextlib.AsyncExitStack,
) -> AuthComponents:
    remote_tokens, remote_modes = await _remote_auth(options, stack)
    named = options.authorization.authorization_mode
    authorizer = modes.in_order(named, policy, made=remote_modes, first=own.authorizers)
    path = options.authentication.token_auth_file
    token_file = TokenFile(path) if path else None
    tokens = [*([] if token_file is None else [token_file]), *own.tokens, *remote_tokens]
    rights = group_rights(stores, authorizer)
    reviewed = Union((authorizer, GroupAuthorizer(rights)))
    reviews: Sequence[Review] = (
        SelfSubjectReviews(now),
        TokenReviews(tokens),
        LocalSubjectAccessReviews(reviewed),
        SelfSubjectAccessReviews(reviewed),
        SelfSubjectRulesReviews(authorizer),
        SubjectAccessReviews(reviewed),
    )
    served = [each for each in reviews if _is_served(each.definition, options)]
    return AuthComponents(
        tokens=tokens, authorizer=authorizer, group_rights=rights, reviews=served, token_file=token_file
    )


def _is_served(review: Definition, options: CompletedOptions) -> bool:
    given, (version,) = options.features.runtime_config, review.versions
    return runtime_config.is_served(given, group=review.group, version=version.name, plural=review.plural)


async def _remote_auth(
    options: CompletedOptions, stack: contextlib.AsyncExitStack
) -> tuple[Sequence[TokenSource], Mapping[str, Authorizer]]:
    """Token sources and authorizers by mode that ask an issuer or a webhook."""
    webhooks = options.webhooks
    files = (webhooks.authentication_token_webhook_config_file, webhooks.authorization_webhook_config_file)
    if oidc.settings(options.oidc) is None and not any(files):
        return (), {}
    from clusterregistry.apiserver import delegated_auth  # noqa: PLC0415

    return delegated_auth.remote_tokens(options, stack), delegated_auth.remote_modes(options, stack)
