from __future__ import annotations

import pytest

from clusterregistry.apiserver.authn.user import User
from clusterregistry.apiserver.authz.interface import ALLOW, NO_OPINION, PathRule, ResourceRule, UserRules
from clusterregistry.apiserver.authz.rbac import grants as grants_module
from clusterregistry.apiserver.authz.rbac import policy as policy_module
from clusterregistry.apiserver.authz.rbac.bindings import Binding, Subject
from clusterregistry.apiserver.authz.rbac.policy import Policy, RBACAuthorizer
from tests.apiserver.authz.rbac.policies import GROUP, a_rule, asking, asking_for_path, bound, path_rule, policy_of

JANE = User("jane", groups=("team", "system:authenticated"))
BOT = User("system:serviceaccount:ns1:bot")


@pytest.mark.parametrize(
    ("subject", "user"),
    [
        ("User jane", JANE),
        ("Group team", JANE),
        ("ServiceAccount ns1/bot", BOT),
        ("User system:serviceaccount:ns1:bot", BOT),
    ],
)
def test_a_role_counts_for_its_subjects(subject: str, user: User) -> None:
    rbac = RBACAuthorizer(policy_of({"r": [a_rule("get")]}, {"b": bound("r", subject)}))
    assert rbac.authorize(asking(user, "get")).allowed
    assert rbac.authorize(asking(User("other"), "get")) is NO_OPINION


@pytest.mark.parametrize("subject", ["User team", "Group jane", "user jane", "ServiceAccount /jane", "Other jane"])
def test_other_subjects_do_not_match(subject: str) -> None:
    policy = policy_of({"r": [a_rule("get")]}, {"b": bound("r", subject)})
    assert RBACAuthorizer(policy).authorize(asking(JANE, "get")) is NO_OPINION
    policy.remove_binding("b", revision=9)


@pytest.mark.parametrize(
    ("subject", "user", "described"),
    [
        ("User jane", JANE, 'User "jane"'),
        ("Group team", JANE, 'Group "team"'),
        ("ServiceAccount ns1/bot", BOT, 'ServiceAccount "bot/ns1"'),
    ],
)
def test_the_reason_names_binding_role_and_subject(subject: str, user: User, described: str) -> None:
    rbac = RBACAuthorizer(policy_of({"r": [a_rule("get")]}, {"b": bound("r", "User nobody", subject)}))
    reason = f'RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "r" to {described}'
    assert rbac.authorize(asking(user, "get")).reason == reason


def test_the_first_subject_that_applies_is_named() -> None:
    rbac = RBACAuthorizer(policy_of({"r": [a_rule("get")]}, {"b": bound("r", "Group team", "User jane", "Group team")}))
    assert rbac.authorize(asking(JANE, "get")).reason.endswith('to Group "team"')


def test_a_binding_to_a_missing_role_is_a_problem_and_leaves_the_others() -> None:
    policy = policy_of({"r": [a_rule("get")]}, {"a": bound("gone", "User jane"), "b": bound("r", "User jane")})
    rbac = RBACAuthorizer(policy)
    assert rbac.authorize(asking(JANE, "get")).allowed
    problem = 'clusterrole.rbac.authorization.k8s.io "gone" not found'
    assert rbac.authorize(asking(JANE, "list")).reason == f"RBAC: {problem}"
    assert rbac.authorize(asking_for_path(JANE, "get", "/x")).reason == f"RBAC: {problem}"
    assert rbac.rules_of(JANE).problems == (problem,)
    policy.set_binding("c", bound("lost", "User jane"), revision=9)
    policy.set_binding("d", bound("gone", "User jane"), revision=10)
    other = 'clusterrole.rbac.authorization.k8s.io "lost" not found'
    assert rbac.authorize(asking(JANE, "list")).reason == f"RBAC: [{problem}, {other}]"


def test_a_reference_to_anything_but_a_cluster_role_grants_nothing() -> None:
    wire = {"roleRef": {"kind": "Role", "name": "r"}, "subjects": [{"kind": "User", "name": "jane"}]}
    rbac = RBACAuthorizer(policy_of({"r": [a_rule("get")]}, {"b": Binding.from_wire(wire)}))
    assert not rbac.authorize(asking(JANE, "get")).allowed


def test_what_is_absent_on_the_wire_is_empty() -> None:
    assert Binding.from_wire({"subjects": [{}]}) == Binding(
        role_kind="", role="", subjects=(Subject(kind="", name=""),)
    )
    assert Binding.from_wire({"subjects": None}).subjects == ()


def test_changes_count_at_once() -> None:
    policy = Policy()
    rbac = RBACAuthorizer(policy)
    policy.set_binding("b", bound("r", "Group team"), revision=1)
    assert not rbac.authorize(asking(JANE, "get")).allowed
    policy.set_role("r", [a_rule("get")], revision=2)
    assert rbac.authorize(asking(JANE, "get")).allowed
    policy.set_role("r", [a_rule("list")], revision=3)
    assert not rbac.authorize(asking(JANE, "get")).allowed
    assert rbac.authorize(asking(JANE, "list")).allowed
    policy.set_binding("b", bound("r", "User other", "Group others"), revision=4)
    assert not rbac.authorize(asking(JANE, "list")).allowed
    policy.set_binding("b", bound("r", "User jane", "User jane"), revision=5)
    assert rbac.authorize(asking(JANE, "list")).allowed
    policy.remove_binding("b", revision=6)
    assert not rbac.authorize(asking(JANE, "list")).allowed
    policy.remove_role("r", revision=7)
    assert policy.generation == 7


def test_one_binding_fewer_leaves_the_others() -> None:
    policy = policy_of({"r": [a_rule("get")]}, {"a": bound("r", "User jane"), "b": bound("r", "User jane")})
    policy.remove_binding("a", revision=9)
    assert '"b"' in RBACAuthorizer(policy).authorize(asking(JANE, "get")).reason


def test_listeners_are_called_for_changes_alone() -> None:
    policy = policy_of({"r": [a_rule("get")]}, {"b": bound("r", "User jane")})
    reported: list[int] = []
    rbac = RBACAuthorizer(policy)
    end = rbac.on_change(lambda: reported.append(rbac.changed_at(JANE)))
    policy.set_role("r", [a_rule("get")], revision=10)
    policy.set_binding("b", bound("r", "User jane"), revision=11)
    policy.remove_role("gone", revision=12)
    policy.remove_binding("gone", revision=13)
    assert reported == []
    assert rbac.changed_at(JANE) == 2
    policy.set_role("r", [], revision=14)
    end()
    end()
    policy.remove_role("r", revision=15)
    assert reported == [14]


def test_changes_are_recorded_for_the_subjects_that_they_concern() -> None:
    policy = Policy()
    other = User("other", groups=("others",))

    def last() -> tuple[int, int, int]:
        return policy.changed_at(JANE), policy.changed_at(other), policy.changed_at(BOT)

    policy.set_role("r", [a_rule("get")], revision=1)
    assert last() == (0, 0, 0)
    policy.set_binding("b", bound("r", "Group team", "Odd one"), revision=2)
    assert last() == (2, 0, 0)
    policy.set_role("r", [a_rule("list")], revision=3)
    assert last() == (3, 0, 0)
    policy.set_binding("b", bound("r", "Group others", "ServiceAccount ns1/bot"), revision=4)
    assert last() == (4, 4, 4)
    policy.remove_role("r", revision=5)
    policy.remove_binding("b", revision=6)
    assert last() == (4, 6, 6)
    policy.set_role("r", [], revision=7)
    assert last() == (4, 6, 6)


def test_the_newest_right_is_that_of_a_role_or_a_binding_that_counts() -> None:
    policy = policy_of({"r": [a_rule("get")]}, {"b": bound("r", "User jane"), "c": bound("gone", "User jane")})
    rbac = RBACAuthorizer(policy)
    assert rbac.granted_at(JANE) == 2
    policy.set_role("r", [a_rule("list")], revision=9)
    assert rbac.granted_at(JANE) == 9
    policy.remove_role("r", revision=10)
    assert (rbac.granted_at(JANE), rbac.changed_at(JANE)) == (0, 10)


def test_changes_before_the_beginning_are_not_known() -> None:
    policy = policy_of({"r": []}, {"b": bound("r", "User jane")})
    policy.begin_at(50)
    policy.begin_at(20)
    rbac = RBACAuthorizer(policy)
    assert (rbac.changed_at(JANE), rbac.changed_at(BOT), rbac.granted_at(JANE)) == (50, 50, 2)


def test_when_revisions_begin_anew_no_right_is_newer_than_the_new_ones() -> None:
    """Else a watch from a new revision would be too old until the old revisions are reached."""
    policy = policy_of({"r": [a_rule("get")]}, {"b": bound("r", "User jane")})
    policy.set_role("r", [a_rule("list")], revision=90)
    policy.begin_at(95)
    policy.begin_anew(7)
    rbac = RBACAuthorizer(policy)
    assert (rbac.changed_at(JANE), rbac.changed_at(BOT), rbac.granted_at(JANE)) == (7, 7, 7)
    policy.remove_role("r", revision=8)
    assert (rbac.changed_at(JANE), rbac.changed_at(BOT)) == (8, 7)


def test_the_record_of_changes_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy_module, "_TRACKED_SUBJECTS", 2)
    policy = Policy()
    for number, subject in enumerate(("User a", "Group b", "User jane", "User d"), start=1):
        policy.set_binding(subject, bound("r", subject), revision=number)
    assert [policy.changed_at(User(name)) for name in ("a", "jane", "d", "x")] == [3, 3, 4, 3]


def test_rules_are_listed_in_the_order_of_their_bindings() -> None:
    rbac = RBACAuthorizer(
        policy_of(
            {
                "one": [a_rule("get", names=["y", "x"]), path_rule("get", "/x")],
                "two": [a_rule("list"), a_rule("get", "")],
            },
            {"z": bound("one", "User jane"), "a": bound("two", "Group team"), "o": bound("one", "User other")},
        )
    )
    assert rbac.rules_of(JANE) == UserRules(
        resource_rules=(
            ResourceRule(verbs=("list",), api_groups=(GROUP,), resources=("things",)),
            ResourceRule(verbs=("get",), api_groups=(GROUP,), resources=("things",), resource_names=("y", "x")),
        ),
        path_rules=(PathRule(verbs=("get",), non_resource_urls=("/x",)),),
    )


def test_names_are_those_that_rules_list() -> None:
    rules = [
        a_rule("get", names=["a", "b"]),
        a_rule("*", "*", group="*", names=["c", ""]),
        a_rule("list", names=["d"]),
        a_rule("get", "things/status", names=["e"]),
        a_rule("get", "others", names=["f"]),
        a_rule("get"),
    ]
    rbac = RBACAuthorizer(policy_of({"r": rules}, {"b": bound("r", "User jane")}))
    for _ in range(2):  # the second time from the cache
        assert rbac.names_of(JANE, verb="get", group=GROUP, resource="things") == {"a", "b", "c"}
    assert rbac.names_of(User("x"), verb="get", group=GROUP, resource="things") == frozenset()


def test_many_bindings_with_one_name_each_decide_for_their_names() -> None:
    count = 50
    roles = {f"r{index}": [a_rule("get", names=[f"n{index}", "shared"])] for index in range(count)}
    bindings = {f"b{index:02}": bound(f"r{index}", "User jane") for index in range(count)}
    rbac = RBACAuthorizer(policy_of(roles, bindings))
    for index in range(count):
        decision = rbac.authorize(asking(JANE, "get", name=f"n{index}"))
        assert f'"b{index:02}"' in decision.reason
    assert '"b00"' in rbac.authorize(asking(JANE, "get", name="shared")).reason
    assert rbac.authorize(asking(JANE, "get", name="other")) is NO_OPINION


def test_caches_are_bounded_and_decisions_stay_right() -> None:
    policy = policy_of({"r": [a_rule("get"), path_rule("get", "/0")]}, {"b": bound("r", "User jane")})
    rbac = RBACAuthorizer(policy)
    for index in range(grants_module._CACHED_ANSWERS + 1):
        assert not rbac.authorize(asking(JANE, str(index))).allowed
        assert rbac.authorize(asking_for_path(JANE, "get", f"/{index}")).allowed is (index == 0)
    for index in range(policy_module._CACHED_USERS + 1):
        assert not rbac.authorize(asking(User(str(index)), "get")).allowed
    assert rbac.authorize(asking(JANE, "get")).verdict is ALLOW.verdict
    assert len(policy._grants) < policy_module._CACHED_USERS
    assert len(policy.grants(JANE)._answers) < grants_module._CACHED_ANSWERS


def test_the_rules_of_a_role_and_of_none() -> None:
    policy = policy_of({"r": [a_rule("get")], "empty": []}, {})
    assert policy.role("r") == (a_rule("get"),)
    assert policy.role("empty") == ()
    assert policy.role("other") is None
