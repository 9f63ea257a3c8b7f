"""Groups of objects: a resource may declare that the objects of another one group its own.

A group names its members by a label selector and by their names; an object is a member if either names it. Rights may
be given on the members of groups, and ``group_index`` knows the members.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from clusterregistry.apimachinery.meta.label_selectors import LabelSelector

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Members:
    """The definition of a group: what makes an object a member."""

    selector: LabelSelector | None = None
    """None selects nothing; an empty one selects every object."""
    names: frozenset[str] = frozenset()
    """Names of objects, or their keys ``NAMESPACE/NAME``, whether such objects exist or not."""

    def has(self, name: str, labels: Mapping[str, str] | None) -> bool:
        """Whether an object of this name and with these labels is a member."""
        return name in self.names or (self.selector is not None and self.selector.matches(labels))


NOTHING = Members()


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouping:
    """The resource whose objects are groups of another resource's objects, and how rights on them are named."""

    group: str
    """The API group of the grouping resource."""
    plural: str
    subresource: str
    """The subresource of the grouping resource on which the rights on the members of a group are asked."""
    members_of: Callable[[Object], Members]
    """Reads the definition of a group from its object in the storage version. It may raise for an invalid one."""

    @property
    def qualified_name(self) -> str:
        """``PLURAL.GROUP`` of the grouping resource."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def subresource_for(self, subresource: str) -> str:
        """The subresource that is asked for a subresource of a member; for the member itself that one is empty.

        Each has rights of its own: those on the members do not include those on their status.
        """
        return f"{self.subresource}-{subresource}" if subresource else self.subresource
