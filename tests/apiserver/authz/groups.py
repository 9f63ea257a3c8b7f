"""Groups of objects in memory, and authorizers of them that take their time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

from clusterregistry.apiserver.authz.group_rights import GroupRights, ObjectGroups
from clusterregistry.apiserver.authz.interface import NO_OPINION, Attributes, Authorizer, Decision
from clusterregistry.apiserver.authz.union import Union


class Named:
    """How the groups are called."""

    group, plural = "example.com", "sets"

    def subresource_for(self, subresource: str) -> str:
        return f"things-{subresource}" if subresource else "things"


class Groups:
    """Groups by the names of their members; objects are their names."""

    def __init__(self, **members: str) -> None:
        """A member is a letter; ``+`` before it is one that a group names and that does not exist."""
        self.all = {group: set(names.split()) for group, names in members.items()}
        self.changed = 0
        self.waits: list[int] = []
        self._listeners: list[Callable[[], None]] = []

    @property
    def names(self) -> AbstractSet[str]:
        return self.all.keys()

    def groups_of(self, name: str, labels: Mapping[str, str] | None) -> frozenset[str]:  # noqa: ARG002 - the port's
        return frozenset(group for group, names in self.all.items() if name in names)

    def groups_of_object(self, obj: Any) -> frozenset[str]:
        return self.groups_of(obj, None)

    def naming(self, name: str) -> frozenset[str]:
        return self.groups_of(f"+{name}", None)

    def members(self, groups: AbstractSet[str]) -> AbstractSet[str]:
        return {name for group in groups for name in self.all.get(group, ()) if name[0] != "+"}

    def changed_at(self, groups: AbstractSet[str] | None = None) -> int:  # noqa: ARG002 - the port's
        return self.changed

    async def caught_up(self, revision: int) -> None:
        self.waits.append(revision)

    def on_change(self, listener: Callable[[], None]) -> Callable[[], None]:
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def change(self, revision: int, **members: str) -> None:
        self.changed, self.all = revision, {group: set(names.split()) for group, names in members.items()}
        for listener in list(self._listeners):
            listener()

    def find(self, name: str) -> ObjectGroups:
        """An object exists if it is in a group."""
        groups = self.groups_of(name, None)
        return ObjectGroups(groups) if groups else ObjectGroups(self.naming(name), exists=False)

    async def find_later(self, name: str) -> ObjectGroups:
        await asyncio.sleep(0)
        return self.find(name)


class Answers:
    """Decides by the name of the group, at once or as an authorizer that calls another server. It lists nothing."""

    def __init__(self, *, later: bool = False, otherwise: Decision = NO_OPINION, **decisions: Decision) -> None:
        self.decisions, self._otherwise, self._later = decisions, otherwise, later
        self.asked: list[str] = []
        self.at_once = self.most_at_once = 0

    def authorize(self, attributes: Attributes) -> Decision | Awaitable[Decision]:
        if attributes.resource != Named.plural:
            return NO_OPINION
        self.asked.append(attributes.name)
        decision = self.decisions.get(attributes.name, self._otherwise)
        return self._after_a_while(decision) if self._later else decision

    async def _after_a_while(self, decision: Decision) -> Decision:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await asyncio.sleep(0)
        self.at_once -= 1
        return decision


def rights(authorizer: Authorizer, groups: Groups, *, later: bool = False) -> GroupRights:
    union = authorizer if isinstance(authorizer, Union) else Union([authorizer])
    find = groups.find_later if later else groups.find
    return GroupRights(union, groups=Named(), membership=groups, find=find)


async def resolved(decision: Decision | Awaitable[Decision]) -> Decision:
    return decision if isinstance(decision, Decision) else await decision


def many(count: int) -> Collection[str]:
    return [f"g{number:04}" for number in range(count)]
