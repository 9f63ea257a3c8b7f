"""The port of authorization: what is asked, and what is answered."""

from __future__ import annotations

import enum
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from msgspec import Struct

from clusterregistry.apiserver.authn.user import User


class Verdict(enum.Enum):
    ALLOW = "allow"
    DENY = "deny"
    NO_OPINION = "no opinion"


@dataclass(frozen=True, slots=True)
class Decision:
    """A verdict; ``reason`` is for the user who is refused, and for the audit log.

    ``undecided``: nobody could be asked who knows. That is a DENY, but no verdict on the user: 503, not 403.
    """

    verdict: Verdict
    reason: str = ""
    undecided: bool = False
    allowed: bool = field(init=False, compare=False, repr=False)
    """Only an explicit ALLOW lets a request pass."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "allowed", self.verdict is Verdict.ALLOW)


ALLOW = Decision(Verdict.ALLOW)
DENY = Decision(Verdict.DENY)
NO_OPINION = Decision(Verdict.NO_OPINION)


class Attributes(Struct, gc=False):
    """What a user wants to do. Never changed. The collector does not look at these: many are kept, none in a circle.

    A resource request has ``group`` ... ``namespace``; any other has only its ``path``, and as ``verb`` the HTTP
    method in lower case.
    """

    user: User
    verb: str
    is_resource_request: bool
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    name: str = ""
    namespace: str = ""
    path: str = ""


class Authorizer(Protocol):
    """Somebody with an opinion on who may do what."""

    def authorize(self, attributes: Attributes) -> Decision | Awaitable[Decision]:
        """ALLOW and DENY are final; NO_OPINION passes the question on. Must not block and must not raise.

        Who has to ask somebody else first answers with an awaitable; who knows the answer gives it at once.
        """
        ...


async def decided(authorizer: Authorizer, attributes: Attributes) -> Decision:
    """The decision, whether it has to be waited for or not: for those who ask besides the way of a request."""
    decision = authorizer.authorize(attributes)
    return decision if isinstance(decision, Decision) else await decision


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceRule:
    """Verbs on resources. No names: all objects."""

    verbs: tuple[str, ...]
    api_groups: tuple[str, ...]
    resources: tuple[str, ...]
    resource_names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PathRule:
    """Verbs on paths that are no resources."""

    verbs: tuple[str, ...]
    non_resource_urls: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class UserRules:
    """What a user may do, as far as it can be listed.

    ``incomplete``: there may be more. ``problems`` say what could not be found out.
    """

    resource_rules: tuple[ResourceRule, ...] = ()
    path_rules: tuple[PathRule, ...] = ()
    incomplete: bool = False
    problems: tuple[str, ...] = ()


@runtime_checkable
class RuleLister(Protocol):
    """An authorizer that can list what a user may do, for SelfSubjectRulesReview."""

    def rules_of(self, user: User) -> UserRules: ...


@runtime_checkable
class NameLister(Protocol):
    """An authorizer that can tell which single objects a user may see, for filtered lists and watches.

    It decides at once, never with an awaitable, and never denies one of the names that it tells.
    """

    def names_of(self, user: User, *, verb: str, group: str, resource: str) -> frozenset[str]:
        """The names of the objects that the user may do this with, where not all objects are allowed."""
        ...

    def changed_at(self, user: User) -> int:
        """The storage revision of the last change that may concern the user: before it, names may have been others."""
        ...

    def granted_at(self, user: User) -> int:
        """The storage revision of the newest right that the user has: before it, they may have had fewer."""
        ...

    async def caught_up(self, revision: int) -> None:
        """Returns once all changes of rights up to a storage revision count. May raise what the storage raises."""
        ...

    def on_change(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Calls the listener after each change of rights. Returns what ends that; calling it again does nothing."""
        ...


class NamesNobody:
    """A NameLister without names: for authorizers that never allow single objects nor deny anything."""

    def changed_at(self, user: User) -> int:  # noqa: ARG002 - the port's signature
        return 0

    def granted_at(self, user: User) -> int:  # noqa: ARG002 - the port's signature
        return 0

    def names_of(self, user: User, *, verb: str, group: str, resource: str) -> frozenset[str]:  # noqa: ARG002
        return frozenset()

    async def caught_up(self, revision: int) -> None:
        """There is nothing to wait for."""

    def on_change(self, listener: Callable[[], None]) -> Callable[[], None]:  # noqa: ARG002 - nothing ever changes
        return _nothing_to_end


def _nothing_to_end() -> None:
    pass
