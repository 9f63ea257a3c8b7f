"""Users as authentication recognises them, and the names that Kubernetes reserves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

ANONYMOUS = "system:anonymous"
ALL_AUTHENTICATED = "system:authenticated"
ALL_UNAUTHENTICATED = "system:unauthenticated"
MASTERS = "system:masters"


@dataclass(frozen=True, slots=True)
class User:
    """Who sends a request. ``extra`` is what the authenticator knows beyond name and groups."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def authenticated(
    *, name: str, uid: str = "", groups: Iterable[str] = (), extra: Mapping[str, tuple[str, ...]] | None = None
) -> User:
    """A user that gave good credentials: also a member of ``system:authenticated``, last, as in kube-apiserver.

    A proxy may pass on somebody whom it does not know either: who is ``system:anonymous`` or already a member of
    ``system:unauthenticated`` does not get the group.
    Authenticators make their users here, once for each credential, so that a request pays nothing for the group.
    """
    named = tuple(groups)
    if name != ANONYMOUS and ALL_AUTHENTICATED not in named and ALL_UNAUTHENTICATED not in named:
        named = (*named, ALL_AUTHENTICATED)
    return User(name, uid, named, extra or {})


ANONYMOUS_USER = User(ANONYMOUS, groups=(ALL_UNAUTHENTICATED,))
