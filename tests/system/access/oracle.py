"""What should be decided, stated plainly. Imports nothing of the server on purpose: it must not share its mistakes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

Rule = dict[str, Any]
CLUSTERS_GROUP = "clusterregistry.k8s.io"
RBAC_GROUP = "rbac.authorization.k8s.io"
AUTHENTICATED, UNAUTHENTICATED = "system:authenticated", "system:unauthenticated"


@dataclass(frozen=True)
class Who:
    """A user by name and groups; ``who()`` and ``stranger()`` make them."""

    name: str
    groups: frozenset[str]


def who(name: str, *groups: str) -> Who:
    """Somebody who proved to be somebody."""
    return Who(name, frozenset((*groups, AUTHENTICATED)))


STRANGER = Who("system:anonymous", frozenset((UNAUTHENTICATED,)))


@dataclass(frozen=True, kw_only=True)
class Wish:
    """What a request wants: a verb on a resource, or a verb on a path."""

    verb: str
    path: str = ""
    group: str = ""
    resource: str = ""
    subresource: str = ""
    name: str = ""
    namespace: str = ""

    def but(self, verb: str) -> Wish:
        return Wish(**{**self.__dict__, "verb": verb})


@dataclass(frozen=True)
class Grant:
    """Rules for subjects as a binding names them: ("User", "jane"), ("ServiceAccount", "fleet:bot")."""

    rules: Sequence[Rule]
    subjects: Sequence[tuple[str, str]]


@dataclass(frozen=True, kw_only=True)
class Setup:
    """How the server is set up, and what rights there are."""

    grants: Sequence[Grant] = ()
    filtered: bool = True
    anonymous: bool = True
    mode: str = "RBAC"


_PUBLIC = ["/healthz", "/livez", "/readyz", "/version", "/version/"]
_DISCOVERY = ["/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*"]
DEFAULTS = (
    Grant(
        [{"verbs": ["get"], "nonResourceURLs": _PUBLIC}],
        [("Group", AUTHENTICATED), ("Group", UNAUTHENTICATED)],
    ),
    Grant(
        [
            {"verbs": ["get"], "nonResourceURLs": _DISCOVERY},
            {
                "verbs": ["create"],
                "apiGroups": ["authorization.k8s.io"],
                "resources": ["selfsubjectaccessreviews", "selfsubjectrulesreviews"],
            },
            {"verbs": ["create"], "apiGroups": ["authentication.k8s.io"], "resources": ["selfsubjectreviews"]},
        ],
        [("Group", AUTHENTICATED)],
    ),
)
"""What everybody has from the start."""


def may(user: Who, wish: Wish, setup: Setup) -> bool:
    if "system:masters" in user.groups or setup.mode == "AlwaysAllow":
        return True
    return setup.mode == "RBAC" and any(_allows(rule, wish) for rule in rules_of(user, setup.grants))


def visible(user: Who, wish: Wish, setup: Setup) -> set[str]:
    """The objects that somebody who may not list or watch sees all the same: those that rules let them get by name."""
    if not setup.filtered or setup.mode != "RBAC" or wish.verb not in ("list", "watch"):
        return set()
    if wish.path or wish.subresource or wish.namespace:
        return set()
    named = {
        name
        for rule in rules_of(user, setup.grants)
        for name in rule.get("resourceNames", [])
        if name and _allows(rule, Wish(verb="get", group=wish.group, resource=wish.resource, name=name))
    }
    return named & {wish.name} if wish.name else named


def rules_of(user: Who, grants: Iterable[Grant]) -> list[Rule]:
    return [
        rule
        for grant in (*DEFAULTS, *grants)
        if any(_is(user, kind, name) for kind, name in grant.subjects)
        for rule in grant.rules
    ]


def _is(user: Who, kind: str, name: str) -> bool:
    if kind == "User":
        return user.name == name
    if kind == "Group":
        return name in user.groups
    return user.name == f"system:serviceaccount:{name}"


def _allows(rule: Rule, wish: Wish) -> bool:
    if wish.verb not in rule["verbs"] and "*" not in rule["verbs"]:
        return False
    if wish.path:
        return any(_covers(url, wish.path) for url in rule.get("nonResourceURLs", []))
    groups, resources, names = rule.get("apiGroups", []), rule.get("resources", []), rule.get("resourceNames", [])
    if wish.group not in groups and "*" not in groups:
        return False
    if names and wish.name not in names:
        return False
    return any(_is_resource(each, wish) for each in resources)


def _is_resource(pattern: str, wish: Wish) -> bool:
    if pattern == "*":
        return True
    if not wish.subresource:
        return pattern == wish.resource
    return pattern in (f"{wish.resource}/{wish.subresource}", f"*/{wish.subresource}")


def _covers(url: str, path: str) -> bool:
    return path.startswith(url[:-1]) if url.endswith("*") else path == url


@dataclass(frozen=True)
class Expected:
    """A status, and for lists and watches the names that are shown; None: all, or no list."""

    status: int
    names: frozenset[str] | None = None


@dataclass(frozen=True, kw_only=True)
class Ask:
    """A request, what it wants, and what is answered to those who may."""

    method: str
    target: str
    wish: Wish
    allowed: int = 200
    also: tuple[str, ...] = ()
    """Verbs that turn out to be needed too."""
    body: Any = None
    content_type: str = "application/json"
    dear: bool = False
    """Whether it takes long to answer: then it is asked once of each user who may."""

    def __str__(self) -> str:
        return f"{self.method} {self.target}" + (f" as {self.content_type}" if "patch" in self.content_type else "")


@dataclass(frozen=True, kw_only=True)
class State:
    """What somebody shows of themselves, and who that makes them; None: nobody, a 401."""

    label: str
    user: Who | None
    headers: tuple[tuple[str, str], ...] = ()
    certificate: str = ""
    """The name of one of the certificates that there are."""
    wants_to_be: Who | None = None
    needs: tuple[Wish, ...] = field(default=())
    """What the user must be allowed in order to become somebody else."""


def expected(state: State, ask: Ask, setup: Setup) -> Expected:
    user = state.user
    if user is None or (user == STRANGER and not setup.anonymous):
        return Expected(401)
    if state.wants_to_be is not None:
        if not all(may(user, need, setup) for need in state.needs):
            return Expected(403)
        user = state.wants_to_be
    if may(user, ask.wish, setup):
        return Expected(ask.allowed if all(may(user, ask.wish.but(verb), setup) for verb in ask.also) else 403)
    names = visible(user, ask.wish, setup)
    return Expected(ask.allowed, frozenset(names)) if names else Expected(403)
