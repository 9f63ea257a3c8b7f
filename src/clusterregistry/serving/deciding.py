"""Who knows the users and their rights: this server itself, or the host cluster of aggregated mode."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from clusterregistry import catalog
from clusterregistry.authn import tokenfile
from clusterregistry.authn.tokenfile import TokenFile
from clusterregistry.authz import modes
from clusterregistry.authz.rbac.policy import Policy
from clusterregistry.authz.union import Union
from clusterregistry.hostcluster.following import Following
from clusterregistry.options import CompletedOptions
from clusterregistry.reviews.interface import Review
from clusterregistry.reviews.token_review import TokenSource
from clusterregistry.serving import remote
from clusterregistry.serving.delegation import Delegation
from clusterregistry.serving.health import Check


@dataclass(frozen=True, slots=True, kw_only=True)
class Deciders:
    """All that authentication and authorization ask."""

    tokens: Sequence[TokenSource]
    authorizer: Union
    reviews: Sequence[Review] = ()
    """The questions about users that are answered here."""
    checks: Mapping[str, Check] = field(default_factory=dict)
    """Whether those answer who are asked elsewhere."""
    following: Following | None = None


async def own(
    options: CompletedOptions, policy: Policy, *, now: Callable[[], str], stack: contextlib.AsyncExitStack
) -> Deciders:
    """As the options say; ``stack`` closes them. Raises StartupProblem."""
    others = await remote.connect(options, stack)
    authorizer = modes.in_order(options.authorization.authorization_mode, policy, made=others.modes)
    tokens = [*_tokens(options.authentication.token_auth_file), *others.tokens]
    reviews = catalog.reviews(authorizer=authorizer, tokens=tokens, now=now)
    return Deciders(tokens=tokens, authorizer=authorizer, reviews=reviews)


def of_host(host: Delegation) -> Deciders:
    """The host cluster, which answers the reviews about users itself."""
    return Deciders(tokens=[host.tokens], authorizer=host.authorizer, checks=host.checks, following=host.following)


def _tokens(path: Path | None) -> list[TokenFile]:
    return [tokenfile.load(path)] if path else []
