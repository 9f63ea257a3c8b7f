"""Users, and the user and group names that Kubernetes reserves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

ANONYMOUS = "system:anonymous"
ALL_AUTHENTICATED = "system:authenticated"
ALL_UNAUTHENTICATED = "system:unauthenticated"
MASTERS = "system:masters"


@dataclass(frozen=True, slots=True)
class User:
    """The user of a request. ``extra`` are further attributes from the authenticator."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def authenticated(
    *, name: str, uid: str = "", groups: Iterable[str] = (), extra: Mapping[str, tuple[str, ...]] | None = None
) -> User:
    """A user with valid credentials: also a member of ``system:authenticated``, last, as in kube-apiserver.

    A front proxy may forward an unauthenticated user: ``system:anonymous`` and members of ``system:unauthenticated`` do
    not get the group. Called once for each credential, so that a request pays nothing for the group.
    """
    named = tuple(groups)
    if name != ANONYMOUS and ALL_AUTHENTICATED not in named and ALL_UNAUTHENTICATED not in named:
        named = (*named, ALL_AUTHENTICATED)
    return User(name, uid, named, extra or {})


ANONYMOUS_USER = User(ANONYMOUS, groups=(ALL_UNAUTHENTICATED,))
