"""Groups whose members may do everything."""

from __future__ import annotations

from clusterregistry.apiserver.authn.user import User
from clusterregistry.apiserver.authz.interface import ALLOW, NO_OPINION, Attributes, Decision, NamesNobody, UserRules


class PrivilegedGroups(NamesNobody):
    """Allows members of the groups everything and has no opinion on others."""

    def __init__(self, *groups: str) -> None:
        self._groups = frozenset(groups)

    def authorize(self, attributes: Attributes) -> Decision:
        return NO_OPINION if self._groups.isdisjoint(attributes.user.groups) else ALLOW

    def rules_of(self, user: User) -> UserRules:  # noqa: ARG002 - the port's signature
        """None: as in kube-apiserver, what such a group may do is listed only where a role says it as well."""
        return UserRules()
