"""Groups whose members may do everything."""

from __future__ import annotations

from clusterregistry.authz.interface import ALLOW, NO_OPINION, Attributes, Decision


class PrivilegedGroups:
    """Allows members of the groups everything and has no opinion on others."""

    def __init__(self, *groups: str) -> None:
        self._groups = frozenset(groups)

    def authorize(self, attributes: Attributes) -> Decision:
        return NO_OPINION if self._groups.isdisjoint(attributes.user.groups) else ALLOW
