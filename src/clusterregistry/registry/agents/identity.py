"""Who a user is, as far as this package cares: the agent of a cluster, a member that joins as one, or neither."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from clusterregistry.api.clusterregistry.agents import AGENT_PREFIX, AGENTS_GROUP, BOOTSTRAPPERS_GROUP
from clusterregistry.apiserver.authn.user import User
from clusterregistry.registry.bootstraptoken.tokens import BootstrapTokens, Token

GROUPS = frozenset({AGENTS_GROUP, BOOTSTRAPPERS_GROUP})
"""A user in neither is of no concern here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """A user for one cluster. Without a cluster, such as with a token that has ended, it may do nothing."""

    cluster: str = ""
    token: Token | None = None
    """Of a member that joins; None: an agent."""
    is_agent: bool = False


class Identities:
    """Recognises users by their groups, as the node authorizer recognises kubelets: a name alone does not count."""

    def __init__(self, tokens: BootstrapTokens) -> None:
        self._tokens = tokens

    def of(self, user: User) -> Identity | None:
        """None for all other users."""
        return self.of_name(user.name, user.groups)

    def of_name(self, name: str, groups: Sequence[str]) -> Identity | None:
        """The same for a user as a stored object names it."""
        if AGENTS_GROUP in groups:
            is_agent = name.startswith(AGENT_PREFIX) and BOOTSTRAPPERS_GROUP not in groups
            return Identity(cluster=name.removeprefix(AGENT_PREFIX) if is_agent else "", is_agent=True)
        if BOOTSTRAPPERS_GROUP in groups:
            token = self._tokens.of_user(name)
            return Identity(cluster=token.cluster if token else "", token=token)
        return None
