"""From ``--authorization-mode`` to an authorizer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from clusterregistry.apiserver.authn.user import MASTERS, User
from clusterregistry.apiserver.authz.interface import (
    ALLOW,
    NO_OPINION,
    Attributes,
    Authorizer,
    Decision,
    NamesNobody,
    PathRule,
    ResourceRule,
    UserRules,
    Verdict,
)
from clusterregistry.apiserver.authz.rbac.policy import Policy, RBACAuthorizer
from clusterregistry.apiserver.authz.union import Union

_ANY = ("*",)
_EVERYTHING = UserRules(
    resource_rules=(ResourceRule(verbs=_ANY, api_groups=_ANY, resources=_ANY),),
    path_rules=(PathRule(verbs=_ANY, non_resource_urls=_ANY),),
)


class AlwaysAllow(NamesNobody):
    def authorize(self, attributes: Attributes) -> Decision:  # noqa: ARG002 - the port's signature
        return ALLOW

    def rules_of(self, user: User) -> UserRules:  # noqa: ARG002 - the port's signature
        return _EVERYTHING


class AlwaysDeny(NamesNobody):
    """Allows nothing. As in kube-apiserver this is no veto: a mode named after it may still allow."""

    def authorize(self, attributes: Attributes) -> Decision:  # noqa: ARG002 - the port's signature
        return Decision(Verdict.NO_OPINION, "Everything is forbidden.")

    def rules_of(self, user: User) -> UserRules:  # noqa: ARG002 - the port's signature
        return UserRules()


class OpenPaths(NamesNobody):
    """Allows everything on these paths, not on those below them, and has no opinion on others."""

    def __init__(self, *paths: str) -> None:
        self._paths = frozenset(paths)
        self._rules = UserRules(path_rules=(PathRule(verbs=("*",), non_resource_urls=paths),))

    def authorize(self, attributes: Attributes) -> Decision:
        return ALLOW if not attributes.is_resource_request and attributes.path in self._paths else NO_OPINION

    def rules_of(self, user: User) -> UserRules:  # noqa: ARG002 - the port's signature
        return self._rules


class PrivilegedGroups(NamesNobody):
    """Allows members of the groups everything and has no opinion on others."""

    def __init__(self, *groups: str) -> None:
        self._groups = frozenset(groups)

    def authorize(self, attributes: Attributes) -> Decision:
        return NO_OPINION if self._groups.isdisjoint(attributes.user.groups) else ALLOW

    def rules_of(self, user: User) -> UserRules:  # noqa: ARG002 - the port's signature
        """None: as in kube-apiserver, what such a group may do is listed only where a role says it as well."""
        return UserRules()


RBAC = "RBAC"
WEBHOOK = "Webhook"
ALWAYS_ALLOW = "AlwaysAllow"
ALWAYS_DENY = "AlwaysDeny"

MODES: dict[str, Callable[[Policy], Authorizer]] = {
    RBAC: RBACAuthorizer,
    ALWAYS_ALLOW: lambda _: AlwaysAllow(),
    ALWAYS_DENY: lambda _: AlwaysDeny(),
}

NAMES = (RBAC, WEBHOOK, ALWAYS_ALLOW, ALWAYS_DENY)
"""What ``--authorization-mode`` may name."""


def in_order(
    modes: Sequence[str], policy: Policy | None = None, *, made: Mapping[str, Authorizer] | None = None
) -> Union:
    """The authorizer for validated mode names, asked in this order. ``policy`` is what RBAC decides from.

    ``made`` are the authorizers of modes that need more than that, by name.

    ``system:masters`` comes before all of them, in every mode, as in kube-apiserver: an administrator cannot be
    locked out by a policy.
    """
    rules, ready = Policy() if policy is None else policy, made or {}
    named = (ready[mode] if mode in ready else MODES[mode](rules) for mode in modes)
    return Union((PrivilegedGroups(MASTERS), *named))
