"""RoleBindings: rights within one namespace, besides those of ClusterRoleBindings."""

from __future__ import annotations

import pytest

from clusterregistry.apiserver.authn.user import User
from clusterregistry.apiserver.authz.interface import NO_OPINION, PathRule, UserRules
from clusterregistry.apiserver.authz.rbac import policy as policy_module
from clusterregistry.apiserver.authz.rbac.bindings import Binding, Subject, namespace_of
from clusterregistry.apiserver.authz.rbac.policy import Policy, RBACAuthorizer
from tests.apiserver.authz.rbac.policies import (
    GROUP,
    a_rule,
    asking,
    asking_for_path,
    bound,
    bound_in,
    path_rule,
    policy_of,
)

JANE = User("jane", groups=("team", "system:authenticated"))
BOT = User("system:serviceaccount:n:bot")


def allowed_in(policy: Policy, namespace: str, verb: str = "get", user: User = JANE, name: str = "") -> bool:
    return RBACAuthorizer(policy).authorize(asking(user, verb, namespace=namespace, name=name)).allowed


@pytest.mark.parametrize("role", ["n/r", "r"])
def test_a_role_binding_counts_in_its_namespace_alone(role: str) -> None:
    reference = "Role r" if role == "n/r" else "r"
    policy = policy_of({role: [a_rule("get")]}, {"n/b": bound_in("n", reference, "Group team")})
    assert allowed_in(policy, "n")
    assert not allowed_in(policy, "m")
    assert not allowed_in(policy, "")
    assert not allowed_in(policy, "n", user=BOT)


def test_a_cluster_role_binding_counts_in_every_namespace() -> None:
    policy = policy_of({"r": [a_rule("get")]}, {"b": bound("r", "User jane"), "n/x": bound_in("n", "r", "User other")})
    assert all(allowed_in(policy, namespace) for namespace in ("", "n", "m"))


def test_a_role_is_found_in_the_namespace_of_the_binding() -> None:
    policy = policy_of(
        {"m/r": [a_rule("get")], "r": [a_rule("list")]},
        {"n/b": bound_in("n", "Role r", "User jane"), "b": Binding(role_kind="Role", role="r", subjects=())},
    )
    assert not allowed_in(policy, "n")
    assert not allowed_in(policy, "n", "list")
    policy.set_role("n/r", [a_rule("get")], revision=9)
    assert allowed_in(policy, "n")
    policy.remove_role("n/r", revision=10)
    assert not allowed_in(policy, "n")


@pytest.mark.parametrize(
    ("reference", "subject", "user", "described"),
    [
        ("Role r", "User jane", JANE, 'Role "r" to User "jane"'),
        ("r", "Group team", JANE, 'ClusterRole "r" to Group "team"'),
        ("Role r", "ServiceAccount n/bot", BOT, 'Role "r" to ServiceAccount "bot/n"'),
    ],
)
def test_the_reason_names_the_binding_with_its_namespace(
    reference: str, subject: str, user: User, described: str
) -> None:
    policy = policy_of(
        {"n/r": [a_rule("get")], "r": [a_rule("get")]}, {"n/b": bound_in("n", reference, "User nobody", subject)}
    )
    reason = RBACAuthorizer(policy).authorize(asking(user, "get", namespace="n")).reason
    assert reason == f'RBAC: allowed by RoleBinding "b/n" of {described}'


def test_cluster_role_bindings_come_first() -> None:
    policy = policy_of({"r": [a_rule("get")]}, {"n/a": bound_in("n", "r", "User jane"), "z": bound("r", "User jane")})
    assert (
        RBACAuthorizer(policy)
        .authorize(asking(JANE, "get", namespace="n"))
        .reason.startswith('RBAC: allowed by ClusterRoleBinding "z"')
    )


def test_missing_roles_are_problems_in_their_namespace() -> None:
    policy = policy_of(
        {},
        {
            "b": bound("gone", "User jane"),
            "n/b": bound_in("n", "Role lost", "User jane"),
            "n/c": bound_in("n", "Odd one", "User jane"),
        },
    )
    rbac = RBACAuthorizer(policy)
    gone = 'clusterrole.rbac.authorization.k8s.io "gone" not found'
    lost = 'role.rbac.authorization.k8s.io "lost" not found'
    odd = 'unsupported role reference kind: "Odd"'
    assert rbac.authorize(asking(JANE, "get", namespace="n")).reason == f"RBAC: [{gone}, {lost}, {odd}]"
    assert rbac.authorize(asking(JANE, "get")).reason == f"RBAC: {gone}"
    assert rbac.rules_of(JANE, namespace="n").problems == (gone, lost, odd)


def test_a_service_account_without_a_namespace_is_one_of_the_binding() -> None:
    wire = {"roleRef": {"kind": "Role", "name": "r"}, "subjects": [{"kind": "ServiceAccount", "name": "bot"}]}
    binding = Binding.from_wire(wire, "n")
    assert binding.subjects == (Subject(kind="ServiceAccount", name="bot", namespace="n"),)
    policy = policy_of({"n/r": [a_rule("get")]}, {"n/b": binding})
    assert allowed_in(policy, "n", user=BOT)
    assert not allowed_in(policy, "n", user=User("system:serviceaccount:m:bot"))


def test_no_right_on_a_path_comes_from_a_namespace() -> None:
    policy = policy_of({"r": [path_rule("get", "/x")]}, {"n/b": bound_in("n", "r", "User jane")})
    rbac = RBACAuthorizer(policy)
    assert rbac.authorize(asking_for_path(JANE, "get", "/x")) is NO_OPINION
    assert rbac.rules_of(JANE) == UserRules()
    # As in kube-apiserver, which lists every rule of the role.
    assert rbac.rules_of(JANE, namespace="n").path_rules == (PathRule(verbs=("get",), non_resource_urls=("/x",)),)


def test_rules_in_a_namespace_are_those_of_both_kinds_of_bindings() -> None:
    policy = policy_of(
        {"r": [a_rule("list")], "n/r": [a_rule("get")], "m/r": [a_rule("watch")]},
        {
            "b": bound("r", "User jane"),
            "n/b": bound_in("n", "Role r", "User jane"),
            "m/b": bound_in("m", "Role r", "Group team"),
        },
    )
    rbac = RBACAuthorizer(policy)
    verbs = {
        namespace: [each.verbs for each in rbac.rules_of(JANE, namespace=namespace).resource_rules]
        for namespace in ("", "n", "m", "x")
    }
    assert verbs == {"": [("list",)], "n": [("list",), ("get",)], "m": [("list",), ("watch",)], "x": [("list",)]}


def test_changes_in_a_namespace_count_at_once() -> None:
    policy = policy_of({"n/r": [a_rule("get")]}, {"n/b": bound_in("n", "Role r", "User jane", "User jane")})
    assert allowed_in(policy, "n")
    policy.set_binding("n/b", bound_in("n", "Role r", "Group team"), revision=5)
    assert allowed_in(policy, "n")
    policy.set_role("n/r", [a_rule("list")], revision=6)
    assert not allowed_in(policy, "n")
    assert allowed_in(policy, "n", "list")
    policy.set_binding("n/c", bound_in("n", "Role r", "Group team"), revision=7)
    policy.remove_binding("n/b", revision=8)
    assert allowed_in(policy, "n", "list")
    policy.remove_binding("n/c", revision=9)
    assert not allowed_in(policy, "n", "list")
    assert "n" not in policy._index


def test_changes_in_namespaces_count_only_where_they_matter() -> None:
    policy = policy_of(
        {"r": [a_rule("get")], "n/r": [a_rule("get")]},
        {"b": bound("r", "User jane"), "n/b": bound_in("n", "Role r", "User jane")},
    )
    rbac, reported = RBACAuthorizer(policy), list[int]()
    end = rbac.on_change(lambda: reported.append(policy.generation))
    root = policy.grants(JANE)
    assert (rbac.changed_at(JANE), rbac.changed_at(JANE, in_namespaces=True)) == (3, 4)
    policy.set_role("n/r", [a_rule("list")], revision=9)
    assert (rbac.changed_at(JANE), rbac.changed_at(JANE, in_namespaces=True)) == (3, 9)
    assert [rbac.granted_at(JANE, namespace=each) for each in ("", "n", "m")] == [3, 9, 3]
    assert policy.grants(JANE) is root
    policy.set_role("r", [a_rule("list")], revision=11)
    assert (rbac.changed_at(JANE), rbac.changed_at(JANE, in_namespaces=True)) == (11, 11)
    assert [rbac.granted_at(JANE, namespace=each) for each in ("", "n")] == [11, 11]
    assert len(reported) == 2
    policy.begin_at(20)
    assert (rbac.changed_at(BOT), rbac.changed_at(BOT, in_namespaces=True)) == (20, 20)
    policy.begin_anew(5)
    assert (rbac.changed_at(JANE, in_namespaces=True), rbac.granted_at(JANE, namespace="n")) == (5, 5)
    end()


def names(policy: Policy, namespace: str | None) -> frozenset[str]:
    return RBACAuthorizer(policy).names_of(JANE, verb="get", group=GROUP, resource="things", namespace=namespace)


def namespaces(policy: Policy, verb: str) -> frozenset[str]:
    return RBACAuthorizer(policy).namespaces_of(JANE, verb=verb, group=GROUP, resource="things")


def a_policy_of_names() -> Policy:
    return policy_of(
        {
            "r": [a_rule("get", names=["a", ""])],
            "n/r": [a_rule("get", names=["b", ""]), a_rule("get", "others", names=["c"])],
            "whole": [a_rule("list")],
        },
        {
            "b": bound("r", "User jane"),
            "n/b": bound_in("n", "Role r", "Group team"),
            "m/b": bound_in("m", "whole", "User jane"),
            "m/c": bound_in("m", "Role gone", "User jane"),
            "m/d": bound_in("m", "Odd one", "User jane"),
            "o/b": bound_in("o", "whole", "User other"),
        },
    )


def test_names_have_the_namespace_that_they_are_in() -> None:
    policy = a_policy_of_names()
    assert names(policy, "") == {"a"}
    assert names(policy, "n") == {"n/a", "n/b"}
    assert names(policy, "m") == {"m/a"}
    assert names(policy, "x") == {"x/a"}
    for _ in range(2):  # the second time from the cache
        assert names(policy, None) == {"a", "n/b"}


def test_whole_namespaces_are_those_with_a_rule_without_names() -> None:
    policy = a_policy_of_names()
    assert namespaces(policy, "list") == {"m"}
    assert namespaces(policy, "get") == frozenset()
    policy.set_role("n/r", [a_rule("list")], revision=99)
    assert namespaces(policy, "list") == {"m", "n"}
    assert names(policy, None) == {"a"}


def test_the_caches_of_namespaces_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy_module, "_CACHED_USERS", 2)
    policy = a_policy_of_names()
    for namespace in ("n", "m", "o", "unknown"):
        assert allowed_in(policy, namespace, name="a")
        RBACAuthorizer(policy).namespaces_of(JANE, verb=namespace, group="", resource="")
    assert len(policy._local_grants) <= 2
    assert len(policy._local_rights) <= 2
    assert not any(namespace == "unknown" for _, _, namespace in policy._local_grants)


def test_the_namespace_of_a_key() -> None:
    assert [namespace_of(key) for key in ("a", "n/a")] == ["", "n"]
