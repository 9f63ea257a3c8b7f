"""What a user may see of one resource, as of one moment: plain names, and groups of objects."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from clusterregistry.apiserver.authz.group_rights import Membership


@dataclass(frozen=True, slots=True)
class View:
    """The objects that a user may see, where that is not all of them.

    Two views are equal if they show the same objects whatever objects there are.
    """

    names: frozenset[str] = frozenset()
    """``NAME``, ``NAMESPACE/NAME``, ``NAMESPACE/`` for all objects of a namespace, or ``NAME`` in any namespace."""
    groups: frozenset[str] = frozenset()
    """The groups whose members are shown."""
    defined_at: int = 0
    """The storage revision of the last change of what makes objects members of these groups."""
    membership: Membership | None = field(default=None, compare=False)
    """None only without groups. It knows the members as of now: a view is used until the next change of groups."""

    def shows(self, key: str, obj: Any) -> bool:
        """Whether it has an object, by its key ``NAME`` or ``NAMESPACE/NAME`` and as the storage has or had it."""
        if self.names and _is_named(key, self.names):
            return True
        return self.membership is not None and not self.groups.isdisjoint(self.membership.groups_of_object(obj))

    def present_keys(self) -> frozenset[str]:
        """The keys of a root-scoped resource's objects that it has now; some of the names may not exist."""
        if self.membership is None:
            return self.names
        return self.names.union(self.membership.members(self.groups))

    def __bool__(self) -> bool:
        """Whether it may show anything."""
        return bool(self.names or self.groups)


def _is_named(key: str, names: frozenset[str]) -> bool:
    """An object in a namespace is also named by its namespace, and by its name in any namespace."""
    if key in names or "/" not in key:
        return key in names
    namespace, slash, name = key.partition("/")
    return name in names or namespace + slash in names
