"""The expected decisions, stated plainly. Imports nothing of the server, so as not to share its mistakes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Rule = dict[str, Any]
CLUSTERS_GROUP = "clusterregistry.k8s.io"
RBAC_GROUP = "rbac.authorization.k8s.io"
AUTHENTICATED, UNAUTHENTICATED = "system:authenticated", "system:unauthenticated"


SETS: Mapping[str, frozenset[str]] = {
    "a": frozenset({"b"}),
    "s": frozenset({"a", "zz", "new"}),
    "moved": frozenset(),
}
"""The sets of clusters, with the clusters that they name. Those of ``moved`` have a label that merge patches set."""

CLUSTER_NAMES = frozenset({"a", "b"})
"""The clusters that exist."""


@dataclass(frozen=True)
class Identity:
    """A user by name and groups."""

    name: str
    groups: frozenset[str]


def identity(name: str, *groups: str) -> Identity:
    """An authenticated user."""
    return Identity(name, frozenset((*groups, AUTHENTICATED)))


ANONYMOUS = Identity("system:anonymous", frozenset((UNAUTHENTICATED,)))


@dataclass(frozen=True, kw_only=True)
class Action:
    """The action of a request: a verb on a resource, or a verb on a path."""

    verb: str
    path: str = ""
    group: str = ""
    resource: str = ""
    subresource: str = ""
    name: str = ""
    namespace: str = ""
    namespaced: bool = False
    """Whether the objects of the resource belong to namespaces."""

    def but(self, verb: str) -> Action:
        return Action(**{**self.__dict__, "verb": verb})


@dataclass(frozen=True)
class Grant:
    """Rules for subjects as a binding names them: ("User", "jane"), ("ServiceAccount", "fleet:bot").

    With a namespace the rules hold in that namespace alone.
    """

    rules: Sequence[Rule]
    subjects: Sequence[tuple[str, str]]
    namespace: str = ""


@dataclass(frozen=True, kw_only=True)
class Setup:
    """The options of the server, and the rights of its users."""

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
"""The default rights of all users."""


def may(user: Identity, action: Action, setup: Setup) -> bool:
    if "system:masters" in user.groups or setup.mode == "AlwaysAllow":
        return True
    return setup.mode == "RBAC" and any(_allows(rule, action) for rule in rules_in(user, setup, action.namespace))


def visible(user: Identity, action: Action, setup: Setup) -> set[str]:
    """The objects in a list or watch of a user who may not list or watch all: those that rules allow to get by name.

    They are patterns: NAME, NAMESPACE/NAME, */NAME for that name in any namespace, and NAMESPACE/* for all in it.
    """
    if not setup.filtered or setup.mode != "RBAC" or action.verb not in ("list", "watch"):
        return set()
    if action.path or action.subresource or (action.namespace and not action.namespaced):
        return set()
    if not action.namespaced or action.namespace:
        place = f"{action.namespace}/" if action.namespace else ""
        return {place + name for name in _named(rules_in(user, setup, action.namespace), action)}
    anywhere = {f"*/{name}" for name in _named(rules_in(user, setup, ""), action)}
    named = anywhere | {
        f"{grant.namespace}/{name}" for grant in _local(user, setup) for name in _named(grant.rules, action)
    }
    whole = {f"{grant.namespace}/*" for grant in _local(user, setup) if _all_allowed(grant.rules, action)}
    return named | whole if named else set()


def _named(rules: Iterable[Rule], action: Action) -> set[str]:
    """The names, or the one that is asked for, that rules allow to get."""
    named = {
        name
        for rule in rules
        for name in rule.get("resourceNames", [])
        if name and _allows(rule, Action(verb="get", group=action.group, resource=action.resource, name=name))
    }
    return named & {action.name} if action.name else named


def _all_allowed(rules: Iterable[Rule], action: Action) -> bool:
    return any(_allows(rule, action) for rule in rules if not rule.get("resourceNames"))


def _local(user: Identity, setup: Setup) -> list[Grant]:
    return [grant for grant in setup.grants if grant.namespace and _has(user, grant)]


def rules_in(user: Identity, setup: Setup, namespace: str) -> list[Rule]:
    """The rules of a user in a namespace, or outside of any."""
    return [
        rule
        for grant in (*DEFAULTS, *setup.grants)
        if grant.namespace in ("", namespace) and _has(user, grant)
        for rule in grant.rules
    ]


def _has(user: Identity, grant: Grant) -> bool:
    return any(_is(user, kind, name) for kind, name in grant.subjects)


def _is(user: Identity, kind: str, name: str) -> bool:
    if kind == "User":
        return user.name == name
    if kind == "Group":
        return name in user.groups
    return user.name == f"system:serviceaccount:{name}"


def _allows(rule: Rule, action: Action) -> bool:
    if action.verb not in rule["verbs"] and "*" not in rule["verbs"]:
        return False
    if action.path:
        return any(_covers(url, action.path) for url in rule.get("nonResourceURLs", []))
    groups, resources, names = rule.get("apiGroups", []), rule.get("resources", []), rule.get("resourceNames", [])
    if action.group not in groups and "*" not in groups:
        return False
    if names and action.name not in names:
        return False
    return any(_is_resource(each, action) for each in resources)


def _is_resource(pattern: str, action: Action) -> bool:
    if pattern == "*":
        return True
    if not action.subresource:
        return pattern == action.resource
    return pattern in (f"{action.resource}/{action.subresource}", f"*/{action.subresource}")


def _covers(url: str, path: str) -> bool:
    return path.startswith(url[:-1]) if url.endswith("*") else path == url


@dataclass(frozen=True)
class Expected:
    """A status, and for lists and watches the patterns of the names that are shown; None: all, or no list."""

    status: int
    names: frozenset[str] | None = None


@dataclass(frozen=True, kw_only=True)
class Call:
    """A request, its action, and the status if that is allowed."""

    method: str
    target: str
    action: Action
    allowed: int = 200
    also: tuple[str, ...] = ()
    """Verbs that are needed besides."""
    body: Any = None
    content_type: str = "application/json"
    enters: tuple[str, ...] = ()
    """The sets that the object would enter."""
    is_slow: bool = False
    """Whether the answer takes long: then it is sent once for each user who may."""

    def __str__(self) -> str:
        return f"{self.method} {self.target}" + (f" as {self.content_type}" if "patch" in self.content_type else "")


@dataclass(frozen=True, kw_only=True)
class Login:
    """The credentials of a request, and the user that they authenticate; None: a 401."""

    label: str
    user: Identity | None
    headers: tuple[tuple[str, str], ...] = ()
    certificate: str = ""
    """The name of a client certificate."""
    impersonates: Identity | None = None
    needs: tuple[Action, ...] = field(default=())
    """The actions that the user must be allowed to impersonate another one."""


def expected(login: Login, call: Call, setup: Setup) -> Expected:
    user = login.user
    if user is None or (user == ANONYMOUS and not setup.anonymous):
        return Expected(401)
    if login.impersonates is not None:
        if not all(may(user, need, setup) for need in login.needs):
            return Expected(403)
        user = login.impersonates
    action, mine = call.action, sets_of(call)
    if may(user, action, setup):
        also = (may(user, action.but(verb), setup) or with_verb(user, verb, setup, mine) for verb in call.also)
        return Expected(call.allowed if all(also) and _may_enter(user, call, setup) else 403)
    names = visible(user, action, setup)
    if action.verb in ("list", "watch"):
        shown = set[str]() if _is_elsewhere(action) else with_verb(user, action.verb, setup, SETS)
        members = {name for each in shown for name in SETS[each]}
        return Expected(call.allowed, frozenset(names | members)) if names or shown else Expected(403)
    return Expected(call.allowed if _may_by_sets(user, call, setup, mine) else 403)


# Rights on sets of clusters


def with_verb(user: Identity, verb: str, setup: Setup, among: Iterable[str], subresource: str = "") -> set[str]:
    """The sets on whose members the user has a verb."""
    resource = "clusters" + (f"-{subresource}" if subresource else "")
    asked = Action(verb=verb, group=CLUSTERS_GROUP, resource="clustersets", subresource=resource)
    return {name for name in among if may(user, Action(**{**asked.__dict__, "name": name}), setup)}


def sets_of(call: Call) -> list[str]:
    """The sets of the object that a request is for, or that its body would make."""
    action = call.action
    if _is_elsewhere(action):
        return []
    name = call.body["metadata"]["name"] if action.verb == "create" else action.name
    return _naming(name)


def may_review(user: Identity, action: Action, setup: Setup) -> bool:
    """Whether a review says yes. About all objects it only does for who may do it with all."""
    if may(user, action, setup):
        return True
    if _is_elsewhere(action) or not action.name or action.verb == "create":
        return False
    return _may_with_one(user, action, setup)


def _is_elsewhere(action: Action) -> bool:
    """Whether no set has the objects of a request."""
    return (action.group, action.resource) != (CLUSTERS_GROUP, "clusters") or bool(action.namespace)


def _naming(name: str) -> list[str]:
    return [each for each, clusters in SETS.items() if name in clusters]


def _may_by_sets(user: Identity, call: Call, setup: Setup, mine: Sequence[str]) -> bool:
    action = call.action
    if _is_elsewhere(action):
        return False
    if action.verb == "deletecollection":
        return bool(with_verb(user, action.verb, setup, SETS))
    if action.verb == "create":
        return bool(with_verb(user, action.verb, setup, mine))
    if "create" in call.also:  # the object decides that it makes
        creates = may(user, action.but("create"), setup) or with_verb(user, "create", setup, mine)
        return bool(with_verb(user, action.verb, setup, mine) and creates)
    return _may_with_one(user, action, setup) and _may_enter(user, call, setup)


def _may_with_one(user: Identity, action: Action, setup: Setup) -> bool:
    verb, subresource = action.verb, action.subresource
    if with_verb(user, verb, setup, _naming(action.name), subresource):
        return True
    if action.name in CLUSTER_NAMES or verb in ("list", "watch"):
        return False
    creating = Action(verb="create", group=action.group, resource=action.resource, name=action.name)
    creates = may(user, creating, setup) or with_verb(user, "create", setup, SETS)
    return bool(with_verb(user, verb, setup, SETS, subresource) and creates)


def _may_enter(user: Identity, call: Call, setup: Setup) -> bool:
    """Whether the user may move the object, if the request does."""
    to_all = Action(**{**call.action.__dict__, "name": ""})
    return may(user, to_all, setup) or with_verb(user, "join", setup, call.enters) == set(call.enters)
