"""Makes the authorizer that ``--authorization-mode`` names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from clusterregistry.apiserver.authn.user import MASTERS, User
from clusterregistry.apiserver.authz.interface import (
    ALLOW,
    NO_OPINION,
    Attributes,
    Authorizer,
    Decision,
    EmptyNameLister,
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


class AlwaysAllow(EmptyNameLister):
    def authorize(self, attributes: Attributes) -> Decision:  # noqa: ARG002 - the port's signature
        return ALLOW

    def rules_of(self, user: User, *, namespace: str = "") -> UserRules:  # noqa: ARG002 - the port's signature
        return _EVERYTHING


class AlwaysDeny(EmptyNameLister):
    """Allows nothing. As in kube-apiserver it does not deny: a later mode may still allow."""

    def authorize(self, attributes: Attributes) -> Decision:  # noqa: ARG002 - the port's signature
        return Decision(Verdict.NO_OPINION, "Everything is forbidden.")

    def rules_of(self, user: User, *, namespace: str = "") -> UserRules:  # noqa: ARG002 - the port's signature
        return UserRules()


class OpenPaths(EmptyNameLister):
    """Allows everything on these exact paths, and has no opinion on others."""

    def __init__(self, *paths: str) -> None:
        self._paths = frozenset(paths)
        self._rules = UserRules(path_rules=(PathRule(verbs=("*",), non_resource_urls=paths),))

    def authorize(self, attributes: Attributes) -> Decision:
        return ALLOW if not attributes.is_resource_request and attributes.path in self._paths else NO_OPINION

    def rules_of(self, user: User, *, namespace: str = "") -> UserRules:  # noqa: ARG002 - the port's signature
        return self._rules


class PrivilegedGroups(EmptyNameLister):
    """Allows members of the groups everything and has no opinion on others."""

    def __init__(self, *groups: str) -> None:
        self._groups = frozenset(groups)

    def authorize(self, attributes: Attributes) -> Decision:
        return NO_OPINION if self._groups.isdisjoint(attributes.user.groups) else ALLOW

    def rules_of(self, user: User, *, namespace: str = "") -> UserRules:  # noqa: ARG002 - the port's signature
        """None: as in kube-apiserver, the rights of such a group are listed only if a role has them as well."""
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
"""The valid values of ``--authorization-mode``."""


def in_order(
    modes: Sequence[str],
    policy: Policy | None = None,
    *,
    made: Mapping[str, Authorizer] | None = None,
    first: Sequence[Authorizer] = (),
) -> Union:
    """The authorizer for validated mode names, in this order. RBAC decides from ``policy``.

    ``made`` has the authorizers of modes that need more than a policy, by name; ``first`` come before all modes.

    ``system:masters`` comes before all modes, as in kube-apiserver: no policy can lock an administrator out.
    """
    rbac_policy, ready = Policy() if policy is None else policy, made or {}
    named = (ready[mode] if mode in ready else MODES[mode](rbac_policy) for mode in modes)
    return Union((PrivilegedGroups(MASTERS), *first, *named))
