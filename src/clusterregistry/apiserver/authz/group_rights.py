"""Group rights: what a user may do with an object because it is in a group on which the user has that right.

The groups of a resource are objects of another one. The right is asked of the authorizers with the same verb on a
subresource of the group, whose name is that of the request. Nothing here knows how objects get into groups.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Protocol

from clusterregistry.apimachinery.meta.field_errors import quoted
from clusterregistry.apiserver.authn.user import User
from clusterregistry.apiserver.authz.interface import (
    NO_OPINION,
    Attributes,
    Decision,
    EmptyNameLister,
    UserRules,
    Verdict,
    decided,
)
from clusterregistry.apiserver.authz.union import Union

JOIN = "join"
"""The verb on a group that lets a user take objects into it and out of it."""

CREATE = "create"

MOST_ASKED = 1000
"""Groups that other servers are asked about for one request."""

_AT_ONCE = 16
"""Groups that they are asked about at the same time."""

_CACHED = 2048
"""Answers to which groups a user has a verb on."""

_SHOWN = 5
"""Groups that a reason names."""

_MISSING = Decision(Verdict.ALLOW, "group rights: there is no such object, and the user may create some")
_ON_SOME = Decision(Verdict.ALLOW, "group rights: decided on the object")
_ON_ONE_OBJECT = frozenset(("get", "update", "patch", "delete"))


class Membership(Protocol):
    """Which objects of one resource are in which groups at present."""

    @property
    def names(self) -> AbstractSet[str]:
        """The groups that exist."""
        ...

    def groups_of(self, name: str, labels: Mapping[str, str] | None, /) -> frozenset[str]:
        """The groups of an object with this name and these labels, whether it is stored or not."""
        ...

    def groups_of_object(self, obj: Any, /) -> frozenset[str]:
        """The groups of an object as the storage has or had it."""
        ...

    def naming(self, name: str, /) -> frozenset[str]:
        """The groups that name an object, whether it is stored or not."""
        ...

    def members(self, groups: AbstractSet[str], /) -> AbstractSet[str]:
        """The stored objects that are in one of these groups."""
        ...

    def changed_at(self, groups: AbstractSet[str] | None = None, /) -> int:
        """The storage revision of the last change of what makes objects members: of these groups, or of any."""
        ...

    async def caught_up(self, revision: int) -> None:
        """Returns once all changes of groups up to a storage revision count. May raise what the storage raises."""
        ...

    def on_change(self, listener: Callable[[], None], /) -> Callable[[], None]:
        """Calls the listener after each change of what makes objects members. Returns a function that ends that."""
        ...


@dataclass(frozen=True, slots=True)
class ObjectGroups:
    """The groups of an object in the storage; of one that is not there, those that name it."""

    groups: frozenset[str]
    exists: bool = True


Find = Callable[[str], ObjectGroups | Awaitable[ObjectGroups]]
"""Finds the groups of the object of a name in the storage. May raise APIError."""


class GroupNames(Protocol):
    """How the groups of a resource are called in attributes."""

    @property
    def group(self) -> str:
        """Their API group."""
        ...

    @property
    def plural(self) -> str: ...

    def subresource_for(self, subresource: str) -> str:
        """The subresource that is asked for one of an object; for the object itself that one is empty."""
        ...


@dataclass(frozen=True, slots=True)
class AskedGroups:
    """The groups that other servers allow, those that they did not decide on, and why; None: they did."""

    allowed: frozenset[str]
    undecided: frozenset[str] = frozenset()
    problem: Decision | None = None


class GroupRights:
    """The rights of users by the groups of one resource's objects, where the authorizers have no opinion otherwise."""

    def __init__(self, authorizer: Union, *, groups: GroupNames, membership: Membership, find: Find) -> None:
        self._authorizer, self._groups, self._find = authorizer, groups, find
        self.membership = membership
        self._at_once = authorizer.decides_at_once
        self._listed: dict[tuple[str, tuple[str, ...], str, str], frozenset[str]] = {}
        """Kept until rights or groups change; only of authorizers that need no other server."""
        authorizer.on_change(self._listed.clear)
        membership.on_change(self._listed.clear)

    # One object

    def authorize(self, attributes: Attributes) -> Decision | Awaitable[Decision]:
        """Decides on the stored object with the name of the request.

        Without a name, and about a create, whose object is not known, there is no opinion. A namespace is ignored:
        objects with groups belong to none, and kubectl asks for access in one all the same.
        """
        if not attributes.name or attributes.verb == CREATE:
            return self._without_object(attributes)
        found = self._find(attributes.name)
        if isinstance(found, ObjectGroups):
            return self.decide_on_stored(attributes, found)
        return self._authorize_later(attributes, found)

    async def _authorize_later(self, attributes: Attributes, finding: Awaitable[ObjectGroups]) -> Decision:
        return await _resolved(self.decide_on_stored(attributes, await finding))

    def decide_on_stored(self, attributes: Attributes, found: ObjectGroups) -> Decision | Awaitable[Decision]:
        """Decides on an object in the storage.

        That there is none is told to users with the right on a group that names it, and to those who could find out by
        creating it.
        """
        if found.exists:
            return self.decide(attributes, found.groups)
        return self._decide_on_missing(attributes, found.groups)

    async def _decide_on_missing(self, attributes: Attributes, naming: frozenset[str]) -> Decision:
        decision = await _resolved(self.decide(attributes, naming))
        if decision.allowed or attributes.verb not in _ON_ONE_OBJECT:
            return decision
        decision = await _resolved(self.decide_on_some(attributes))
        if not decision.allowed:
            return decision
        creating = _with(attributes, verb=CREATE, subresource="")
        if not (await decided(self._authorizer, creating)).allowed:
            decision = await _resolved(self.decide_on_some(creating))
        return _MISSING if decision.allowed else decision

    def decide(self, attributes: Attributes, groups: Collection[str]) -> Decision | Awaitable[Decision]:
        """ALLOW if one of the groups gives the right, else no opinion, or undecided if one might give it.

        A group on which the user is denied the verb gives no right, and takes none.
        """
        names = sorted(groups)
        undecided: Decision | None = None
        for at, name in enumerate(names):
            decision = self._authorizer.authorize(self._asking(attributes, name))
            if not isinstance(decision, Decision):
                return self._decide_later(attributes, names[at:], first=decision, undecided=undecided)
            if decision.allowed:
                return self._allowed(name, decision)
            if decision.undecided:
                undecided = decision
        return undecided or NO_OPINION

    async def _decide_later(
        self, attributes: Attributes, names: Sequence[str], *, first: Awaitable[Decision], undecided: Decision | None
    ) -> Decision:
        """The same, with groups that other servers are asked about. ``first`` is the decision on the first name."""
        if len(names) > MOST_ASKED:
            await first
            return self._too_many(len(names))
        asked: list[Awaitable[Decision]] = [first]
        for start in range(0, len(names), _AT_ONCE):
            batch = names[start : start + _AT_ONCE]
            asked += [decided(self._authorizer, self._asking(attributes, name)) for name in batch[len(asked) :]]
            for name, decision in zip(batch, await asyncio.gather(*asked), strict=True):
                if decision.allowed:
                    return self._allowed(name, decision)
                if decision.undecided:
                    undecided = decision
            asked = []
        return undecided or NO_OPINION

    def decide_on_some(self, attributes: Attributes) -> Decision | Awaitable[Decision]:
        """ALLOW if any group gives the right: whether the object is in that group is decided later."""
        if self._at_once:
            return _ON_SOME if self._names(attributes) else NO_OPINION
        return self.decide(attributes, self.membership.names)

    async def first_refused(
        self, attributes: Attributes, groups: Collection[str], *, verb: str
    ) -> tuple[str, Decision] | None:
        """The first of these groups on which the user does not have a verb; None: the user has it on all."""
        names = sorted(groups)
        if len(names) > MOST_ASKED:
            return names[0], self._too_many(len(names))
        asking = _with(attributes, verb=verb, subresource="")
        for start in range(0, len(names), _AT_ONCE):
            batch = names[start : start + _AT_ONCE]
            asked = [decided(self._authorizer, self._asking(asking, name)) for name in batch]
            for name, decision in zip(batch, await asyncio.gather(*asked), strict=True):
                if not decision.allowed:
                    return name, decision
        return None

    # All groups

    def listed(self, attributes: Attributes) -> frozenset[str] | None:
        """The groups on which the user has the verb; None if other servers have to be asked: ``ask``."""
        return self._names(attributes) if self._at_once else None

    def _names(self, attributes: Attributes) -> frozenset[str]:
        user = attributes.user
        key = (user.name, user.groups, attributes.verb, attributes.subresource)
        known = self._listed.get(key)
        if known is None:
            known = frozenset(name for name in self.membership.names if self._is_allowed(attributes, name))
            if len(self._listed) >= _CACHED:
                self._listed.clear()
            self._listed[key] = known
        return known

    def _is_allowed(self, attributes: Attributes, name: str) -> bool:
        """The decision on one group by authorizers that decide at once."""
        decision = self._authorizer.authorize(self._asking(attributes, name))
        return isinstance(decision, Decision) and decision.allowed

    async def ask(self, attributes: Attributes) -> AskedGroups:
        """The groups on which the user has the verb, also of authorizers that ask other servers."""
        names, problem = sorted(self.membership.names), None
        if len(names) > MOST_ASKED:
            return AskedGroups(frozenset(), frozenset(names), self._too_many(len(names)))
        allowed, undecided = set[str](), set[str]()
        for start in range(0, len(names), _AT_ONCE):
            batch = names[start : start + _AT_ONCE]
            asked = [decided(self._authorizer, self._asking(attributes, name)) for name in batch]
            for name, decision in zip(batch, await asyncio.gather(*asked), strict=True):
                if decision.allowed:
                    allowed.add(name)
                if decision.undecided:
                    undecided.add(name)
                    problem = decision
        return AskedGroups(frozenset(allowed), frozenset(undecided), problem)

    # Attributes and reasons

    def group_attributes(self, attributes: Attributes, name: str, *, verb: str) -> Attributes:
        """What is asked for a verb on one group, whatever the subresource of the request."""
        return self._asking(_with(attributes, verb=verb, subresource=""), name)

    def described(self, name: str) -> str:
        """``things "a"``: a group in messages."""
        return f"{self._groups.plural} {quoted(name)}"

    def _asking(self, attributes: Attributes, name: str) -> Attributes:
        groups = self._groups
        return Attributes(
            attributes.user,
            attributes.verb,
            True,
            groups.group,
            attributes.version,
            groups.plural,
            groups.subresource_for(attributes.subresource),
            name,
        )

    def _allowed(self, name: str, decision: Decision) -> Decision:
        reason = f"group rights by {self.described(name)}"
        return Decision(Verdict.ALLOW, f"{reason}: {decision.reason}" if decision.reason else reason)

    def _too_many(self, count: int) -> Decision:
        return Decision(
            Verdict.NO_OPINION,
            f"{count} {self._groups.plural} would have to be asked about, which is more than {MOST_ASKED}: "
            "ask for single objects by their names",
        )

    def _without_object(self, attributes: Attributes) -> Decision:
        """No opinion on all objects; the reason says on which ones there is one."""
        names = sorted(self.listed(attributes) or ())
        if not names:
            return NO_OPINION
        shown = ", ".join(map(quoted, names[:_SHOWN])) + (", ..." if len(names) > _SHOWN else "")
        return Decision(Verdict.NO_OPINION, f"allowed on members of {self._groups.plural} {shown} only")


class GroupAuthorizer(EmptyNameLister):
    """Group rights as the last authorizer of several, for those who ask what a request would be answered."""

    def __init__(self, rights: Mapping[tuple[str, str], GroupRights]) -> None:
        """``rights`` by the group and the plural of the objects."""
        self._rights = rights

    def authorize(self, attributes: Attributes) -> Decision | Awaitable[Decision]:
        rights = self._rights.get((attributes.group, attributes.resource)) if attributes.is_resource_request else None
        return NO_OPINION if rights is None else rights.authorize(attributes)

    def rules_of(self, user: User, *, namespace: str = "") -> UserRules:  # noqa: ARG002 - the port's signature
        """None: the other authorizers list the rules on groups."""
        return UserRules()


async def _resolved(decision: Decision | Awaitable[Decision]) -> Decision:
    return decision if isinstance(decision, Decision) else await decision


def _with(attributes: Attributes, *, verb: str, subresource: str) -> Attributes:
    """The same attributes with another verb and subresource."""
    return Attributes(
        attributes.user,
        verb,
        attributes.is_resource_request,
        attributes.group,
        attributes.version,
        attributes.resource,
        subresource,
        attributes.name,
        attributes.namespace,
        attributes.path,
    )
