"""Random policies against a plain and slow restatement of what RBAC is."""

from __future__ import annotations

import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from clusterregistry.apiserver.authn.user import User
from clusterregistry.apiserver.authz.interface import Attributes
from clusterregistry.apiserver.authz.rbac.bindings import Binding, namespace_of
from clusterregistry.apiserver.authz.rbac.policy import Policy, RBACAuthorizer
from clusterregistry.apiserver.authz.rbac.rules import rules_from_wire
from tests.apiserver.authz.rbac.policies import policy_from_wire

Wire = dict[str, Any]


def some(*values: str, most: int = 3) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(values), max_size=most)


RULES = st.fixed_dictionaries(
    {"verbs": some("get", "list", "*")},
    optional={
        "apiGroups": some("", "g", "*"),
        "resources": some("r", "q", "*", "r/s", "*/s", "r/*", "*/t"),
        "resourceNames": some("a", "b", ""),
        "nonResourceURLs": some("/x", "/x/*", "/x*", "*", "/x**", "/y"),
    },
)
ROLES = st.dictionaries(st.sampled_from(["r1", "r2", "r3"]), st.lists(RULES, max_size=3))
SUBJECTS = st.fixed_dictionaries(
    {
        "kind": st.sampled_from(["User", "Group", "ServiceAccount"]),
        "name": st.sampled_from(["u", "g1", "g2", "bot", "system:serviceaccount:n:bot"]),
    },
    optional={"namespace": st.sampled_from(["n", "m"])},
)
BINDINGS = st.dictionaries(
    st.sampled_from(["b1", "b2", "b3", "b4"]),
    st.fixed_dictionaries(
        {
            "roleRef": st.fixed_dictionaries(
                {"kind": st.just("ClusterRole"), "name": st.sampled_from(["r1", "r2", "r3"])}
            ),
            "subjects": st.lists(SUBJECTS, max_size=3),
        }
    ),
)
USERS = st.builds(
    User,
    st.sampled_from(["u", "bot", "system:serviceaccount:n:bot"]),
    groups=st.lists(st.sampled_from(["g1", "g2"]), max_size=2).map(tuple),
)
NAMESPACES = ("", "n", "m")
LOCAL_ROLES = st.dictionaries(st.sampled_from(["n/r1", "n/r2", "m/r1", "m/r3"]), st.lists(RULES, max_size=3))
LOCAL_BINDINGS = st.dictionaries(
    st.sampled_from(["n/b1", "n/b2", "m/b1", "m/b2"]),
    st.fixed_dictionaries(
        {
            "roleRef": st.fixed_dictionaries(
                {"kind": st.sampled_from(["Role", "ClusterRole"]), "name": st.sampled_from(["r1", "r2", "r3"])}
            ),
            "subjects": st.lists(SUBJECTS, max_size=3),
        }
    ),
)
ALL_ROLES = st.builds(lambda one, two: {**one, **two}, ROLES, LOCAL_ROLES)
ALL_BINDINGS = st.builds(lambda one, two: {**one, **two}, BINDINGS, LOCAL_BINDINGS)
QUESTIONS = st.one_of(
    st.builds(
        Attributes,
        user=USERS,
        verb=st.sampled_from(["get", "list", "*", "other"]),
        is_resource_request=st.just(True),
        group=st.sampled_from(["", "g", "h"]),
        resource=st.sampled_from(["r", "q", "*"]),
        subresource=st.sampled_from(["", "s", "t", "*"]),
        name=st.sampled_from(["", "a", "b", "c"]),
        namespace=st.sampled_from([*NAMESPACES, "x"]),
    ),
    st.builds(
        Attributes,
        user=USERS,
        verb=st.sampled_from(["get", "other"]),
        is_resource_request=st.just(False),
        path=st.sampled_from(["/x", "/x/", "/x/1", "/xx", "/y", "/z", ""]),
    ),
)


def matches(subject: Wire, user: User, namespace: str) -> bool:
    match subject["kind"]:
        case "User":
            return bool(subject["name"] == user.name)
        case "Group":
            return subject["name"] in user.groups
    home = subject.get("namespace", namespace)
    return bool(home and user.name == f"system:serviceaccount:{home}:{subject['name']}")


def rule_allows(rule: Wire, asked: Attributes) -> bool:
    if not {"*", asked.verb} & set(rule["verbs"]):
        return False
    if not asked.is_resource_request:
        urls = rule.get("nonResourceURLs", [])
        beginnings = [re.sub(r"[*]+$", "", url) for url in urls if url[-1] == "*"]
        return asked.path in urls or any(asked.path[: len(each)] == each for each in beginnings)
    wanted = {"*", asked.resource}
    if asked.subresource:
        wanted = {"*", f"{asked.resource}/{asked.subresource}", f"*/{asked.subresource}"}
    names = rule.get("resourceNames", [])
    return bool(
        {"*", asked.group} & set(rule.get("apiGroups", []))
        and wanted & set(rule.get("resources", []))
        and (names == [] or asked.name in names)
    )


def is_allowed(roles: dict[str, list[Wire]], bindings: dict[str, Wire], asked: Attributes) -> bool:
    for key, binding in bindings.items():
        namespace = key[: key.index("/")] if "/" in key else ""
        counts = namespace in ("", asked.namespace)
        if counts and any(matches(subject, asked.user, namespace) for subject in binding["subjects"]):
            role = binding["roleRef"]["name"]
            found = roles.get(f"{namespace}/{role}" if binding["roleRef"]["kind"] == "Role" else role, [])
            if any(rule_allows(rule, asked) for rule in found):
                return True
    return False


def wired(objects: dict[str, Any], key: str | None = None) -> list[Wire]:
    return [{"metadata": metadata(name), **({key: each} if key else each)} for name, each in objects.items()]


def metadata(key: str) -> Wire:
    namespace, slash, name = key.rpartition("/")
    return {"name": name, "namespace": namespace} if slash else {"name": name}


@given(ALL_ROLES, ALL_BINDINGS, st.lists(QUESTIONS, min_size=1, max_size=20))
def test_decisions_are_those_of_the_plain_restatement(
    roles: dict[str, list[Wire]], bindings: dict[str, Wire], questions: list[Attributes]
) -> None:
    rbac = RBACAuthorizer(policy_from_wire(wired(roles, "rules"), wired(bindings)))
    for asked in questions:
        assert rbac.authorize(asked).allowed == is_allowed(roles, bindings, asked), asked


CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just("role"), st.sampled_from(["r1", "r2", "n/r1"]), st.none() | st.lists(RULES, max_size=2)),
        st.tuples(
            st.just("binding"),
            st.sampled_from(["b1", "b2"]),
            st.none() | BINDINGS.filter(bool).map(lambda found: next(iter(found.values()))),
        ),
        st.tuples(
            st.just("binding"),
            st.sampled_from(["n/b1", "n/b2", "m/b1"]),
            st.none() | LOCAL_BINDINGS.filter(bool).map(lambda found: next(iter(found.values()))),
        ),
    ),
    max_size=8,
)


def apply(change: tuple[str, str, Any], policy: Policy, revision: int) -> None:
    match change:
        case "role", name, None:
            policy.remove_role(name, revision=revision)
        case "role", name, rules:
            policy.set_role(name, rules_from_wire(rules), revision=revision)
        case _, name, None:
            policy.remove_binding(name, revision=revision)
        case _, name, binding:
            policy.set_binding(name, Binding.from_wire(binding, namespace_of(name)), revision=revision)


@given(CHANGES, st.lists(QUESTIONS, min_size=1, max_size=5))
def test_a_changed_policy_decides_as_a_new_one(
    changes: list[tuple[str, str, Any]], questions: list[Attributes]
) -> None:
    policy = Policy()
    state: dict[str, dict[str, Any]] = {"role": {}, "binding": {}}
    for revision, change in enumerate(changes, start=1):
        apply(change, policy, revision)
        kind, name, value = change
        state[kind] = {key: each for key, each in state[kind].items() if key != name}
        state[kind] |= {} if value is None else {name: value}
        for asked in questions:
            assert RBACAuthorizer(policy).authorize(asked).allowed == is_allowed(state["role"], state["binding"], asked)


@given(ALL_ROLES, ALL_BINDINGS, USERS)
def test_every_name_that_is_listed_may_be_read(
    roles: dict[str, list[Wire]], bindings: dict[str, Wire], user: User
) -> None:
    rbac = RBACAuthorizer(policy_from_wire(wired(roles, "rules"), wired(bindings)))

    def allowed(name: str, namespace: str) -> bool:
        return is_allowed(
            roles,
            bindings,
            Attributes(
                user=user,
                verb="get",
                is_resource_request=True,
                group="g",
                resource="r",
                name=name,
                namespace=namespace,
            ),
        )

    everywhere = rbac.names_of(user, verb="get", group="g", resource="r", namespace=None)
    whole = rbac.namespaces_of(user, verb="get", group="g", resource="r")
    for namespace in NAMESPACES:
        prefix = f"{namespace}/" if namespace else ""
        named = rbac.names_of(user, verb="get", group="g", resource="r", namespace=namespace)
        assert named <= {f"{prefix}a", f"{prefix}b"}
        assert all(allowed(name.removeprefix(prefix), namespace) for name in named)
        if not allowed("c", namespace):
            assert named == {prefix + name for name in ("a", "b") if allowed(name, namespace)}
        if namespace:
            assert named == {f"{prefix}{name}" for name in "ab" if {name, prefix + name} & everywhere}
            assert allowed("c", namespace) == (allowed("c", "") or namespace in whole)
