"""The ports of authorization: attributes of a request in, a decision out."""

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
    """A verdict; ``reason`` is for the message of a refusal, and for the audit log.

    ``undecided``: the authorizer that decides did not answer. That is a DENY, but the error is 503, not 403.
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
    """What a user asks to do. Immutable. Not tracked by the garbage collector: many are kept, none is in a cycle.

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
    """Decides whether a request is allowed."""

    def authorize(self, attributes: Attributes) -> Decision | Awaitable[Decision]:
        """ALLOW and DENY are final; NO_OPINION leaves the decision to the next authorizer. Must not block or raise.

        An authorizer that has to call another server returns an awaitable, any other the decision itself.
        """
        ...


async def decided(authorizer: Authorizer, attributes: Attributes) -> Decision:
    """Awaits the decision if necessary. For callers other than the authorization filter."""
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

    def rules_of(self, user: User, *, namespace: str = "") -> UserRules:
        """The rules that count in a namespace, or without one those that count outside of any."""
        ...


@runtime_checkable
class NameLister(Protocol):
    """An authorizer that can list the single objects that a user may see, for filtered lists and watches.

    It never decides with an awaitable, and never denies one of the names that it lists.
    """

    def names_of(
        self, user: User, *, verb: str, group: str, resource: str, namespace: str | None = ""
    ) -> frozenset[str]:
        """The objects that the user may do this with by their names, where not all objects are allowed.

        Without a namespace, for a root-scoped resource, ``NAME``; in a namespace ``NAMESPACE/NAME``. None stands for
        all namespaces: either one then, and ``NAME`` is that name in any namespace.
        """
        ...

    def namespaces_of(self, user: User, *, verb: str, group: str, resource: str) -> frozenset[str]:
        """The namespaces in which the user may do this with all objects by a right in that namespace."""
        ...

    def changed_at(self, user: User, *, in_namespaces: bool = False) -> int:
        """The storage revision of the last change of the user's rights: before it, the names may have been others.

        With ``in_namespaces`` the rights within namespaces count too.
        """
        ...

    def granted_at(self, user: User, *, namespace: str = "") -> int:
        """The storage revision of the user's newest right: before it, the user may have had fewer.

        A right in a namespace counts in that namespace alone.
        """
        ...

    async def caught_up(self, revision: int) -> None:
        """Returns once all changes of rights up to a storage revision count. May raise what the storage raises."""
        ...

    def on_change(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Calls the listener after each change of rights. Returns an idempotent function that ends that."""
        ...


class EmptyNameLister:
    """A NameLister without names: for authorizers that neither allow single objects nor deny anything."""

    def changed_at(self, user: User, *, in_namespaces: bool = False) -> int:  # noqa: ARG002 - the port's signature
        return 0

    def granted_at(self, user: User, *, namespace: str = "") -> int:  # noqa: ARG002 - the port's signature
        return 0

    def names_of(
        self,
        user: User,  # noqa: ARG002 - the port's signature
        *,
        verb: str,  # noqa: ARG002
        group: str,  # noqa: ARG002
        resource: str,  # noqa: ARG002
        namespace: str | None = "",  # noqa: ARG002
    ) -> frozenset[str]:
        return frozenset()

    def namespaces_of(self, user: User, *, verb: str, group: str, resource: str) -> frozenset[str]:  # noqa: ARG002
        return frozenset()

    async def caught_up(self, revision: int) -> None:
        """Returns at once."""

    def on_change(self, listener: Callable[[], None]) -> Callable[[], None]:  # noqa: ARG002 - nothing ever changes
        return _do_nothing


def _do_nothing() -> None:
    pass
