"""Random policies against a plain and slow restatement of what RBAC is."""

from __future__ import annotations

import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from clusterregistry.apiserver.authn.user import User
from clusterregistry.apiserver.authz.interface import Attributes
from clusterregistry.apiserver.authz.rbac.policy import Binding, Policy, RBACAuthorizer
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
    ),
    st.builds(
        Attributes,
        user=USERS,
        verb=st.sampled_from(["get", "other"]),
        is_resource_request=st.just(False),
        path=st.sampled_from(["/x", "/x/", "/x/1", "/xx", "/y", "/z", ""]),
    ),
)


def matches(subject: Wire, user: User) -> bool:
    match subject["kind"]:
        case "User":
            return bool(subject["name"] == user.name)
        case "Group":
            return subject["name"] in user.groups
    return bool(
        subject.get("namespace") and user.name == f"system:serviceaccount:{subject['namespace']}:{subject['name']}"
    )


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
    return any(
        rule_allows(rule, asked)
        for binding in bindings.values()
        if any(matches(subject, asked.user) for subject in binding["subjects"])
        for rule in roles.get(binding["roleRef"]["name"], [])
    )


def wired(objects: dict[str, Any], key: str | None = None) -> list[Wire]:
    return [{"metadata": {"name": name}, **({key: each} if key else each)} for name, each in objects.items()]


@given(ROLES, BINDINGS, st.lists(QUESTIONS, min_size=1, max_size=20))
def test_decisions_are_those_of_the_plain_restatement(
    roles: dict[str, list[Wire]], bindings: dict[str, Wire], questions: list[Attributes]
) -> None:
    rbac = RBACAuthorizer(policy_from_wire(wired(roles, "rules"), wired(bindings)))
    for asked in questions:
        assert rbac.authorize(asked).allowed == is_allowed(roles, bindings, asked), asked


CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just("role"), st.sampled_from(["r1", "r2"]), st.none() | st.lists(RULES, max_size=2)),
        st.tuples(
            st.just("binding"),
            st.sampled_from(["b1", "b2"]),
            st.none() | BINDINGS.filter(bool).map(lambda found: next(iter(found.values()))),
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
            policy.set_binding(name, Binding.from_wire(binding), revision=revision)


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


@given(ROLES, BINDINGS, USERS)
def test_every_name_that_is_listed_may_be_read(
    roles: dict[str, list[Wire]], bindings: dict[str, Wire], user: User
) -> None:
    rbac = RBACAuthorizer(policy_from_wire(wired(roles, "rules"), wired(bindings)))
    named = rbac.names_of(user, verb="get", group="g", resource="r")

    def allowed(name: str) -> bool:
        return is_allowed(
            roles,
            bindings,
            Attributes(user=user, verb="get", is_resource_request=True, group="g", resource="r", name=name),
        )

    assert named <= {"a", "b"}
    assert all(allowed(name) for name in named)
    if not allowed("c"):
        assert named == {name for name in ("a", "b") if allowed(name)}
