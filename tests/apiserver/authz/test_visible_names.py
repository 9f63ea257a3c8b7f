from __future__ import annotations

import asyncio
from collections.abc import Awaitable

import pytest

from clusterregistry.apiserver.authn.user import authenticated
from clusterregistry.apiserver.authz import modes, visible_names
from clusterregistry.apiserver.authz.interface import (
    ALLOW,
    DENY,
    NO_OPINION,
    Attributes,
    Decision,
    EmptyNameLister,
    Verdict,
)
from clusterregistry.apiserver.authz.rbac.policy import Policy, RBACAuthorizer
from clusterregistry.apiserver.authz.rbac.rules import Rule
from clusterregistry.apiserver.authz.union import Union
from clusterregistry.apiserver.authz.view import View
from clusterregistry.apiserver.authz.visible_names import Visibility
from tests.apiserver.authz.groups import Answers, Groups, rights
from tests.apiserver.authz.rbac.policies import GROUP, a_rule, asking, bound, bound_in, policy_of
from tests.apiserver.authz.test_union import Fixed

JANE = authenticated(name="jane")


def a_policy() -> Policy:
    return policy_of({"r": [a_rule("get", names=["a", "b"])]}, {"b": bound("r", "User jane")})


class Later:
    """Decides with a coroutine or a task, as an authorizer that calls another server."""

    def __init__(self, decision: Decision, *, task: bool = False) -> None:
        self._decision, self._task = decision, task

    def authorize(self, attributes: Attributes) -> Awaitable[Decision]:  # noqa: ARG002
        decision = self._decide()
        return asyncio.ensure_future(decision) if self._task else decision

    async def _decide(self) -> Decision:
        return self._decision


def seen_by(union: Union, *, allowed: bool = False, filtered: bool = True) -> Visibility:
    return Visibility(union, union, attributes=asking(JANE, "list"), allowed=allowed, filtered=filtered)


def test_names_follow_the_policy() -> None:
    policy = a_policy()
    visible = seen_by(modes.in_order([modes.RBAC], policy))
    assert visible.view() == View(frozenset("ab"))
    policy.set_role("r", [a_rule("list")], revision=7)
    assert visible.view() is None
    assert (visible.changed_at, visible.granted_at) == (7, 7)
    policy.remove_role("r", revision=8)
    assert visible.view() == View()
    assert (visible.changed_at, visible.granted_at) == (8, 0)


def test_changes_of_rights_are_reported() -> None:
    policy, reported = a_policy(), list[str]()
    end = seen_by(modes.in_order([modes.RBAC], policy)).on_change(lambda: reported.append("changed"))
    policy.remove_role("r", revision=8)
    end()
    policy.remove_binding("b", revision=9)
    assert reported == ["changed"]


def test_without_filtering_it_is_all_or_nothing() -> None:
    policy = a_policy()
    visible = seen_by(modes.in_order([modes.RBAC], policy), filtered=False)
    assert visible.view() == View()
    policy.set_role("r", [a_rule("list")], revision=7)
    assert visible.view() is None
    assert visible.granted_at == 0


def test_a_denial_hides_everything() -> None:
    assert seen_by(Union([RBACAuthorizer(a_policy()), Fixed(DENY)])).view() == View()
    assert seen_by(Union([RBACAuthorizer(a_policy()), Fixed(NO_OPINION)])).view() == View(frozenset("ab"))


@pytest.mark.parametrize("task", [False, True])
@pytest.mark.parametrize("decision", [ALLOW, DENY])
async def test_the_last_decision_of_an_awaitable_counts_until_rights_change(
    decision: Decision,
    task: bool,  # noqa: FBT001
) -> None:
    policy = a_policy()
    union = Union([RBACAuthorizer(policy), Later(decision, task=task)])
    assert seen_by(union).view() == View(frozenset("ab"))
    whole = seen_by(union, allowed=True)
    assert whole.view() is None
    policy.remove_role("r", revision=9)
    assert whole.view() == View()
    await asyncio.gather(*visible_names._pending)


async def test_rights_can_be_waited_for() -> None:
    policy, waits = a_policy(), list[int]()

    async def wait_for(revision: int) -> None:
        waits.append(revision)

    visible = seen_by(modes.in_order([modes.ALWAYS_DENY, modes.RBAC], policy))
    await visible.caught_up(3)
    policy.follow(wait_for)
    await visible.caught_up(4)
    assert waits == [4]


@pytest.mark.parametrize(("allowed", "view"), [(True, None), (False, View())])
def test_without_a_decision_the_last_one_counts(*, allowed: bool, view: View | None) -> None:
    undecided = Decision(Verdict.DENY, undecided=True)
    assert seen_by(Union((Fixed(undecided),)), allowed=allowed).view() == view


async def test_without_a_name_lister_it_is_all_or_nothing() -> None:
    lister = EmptyNameLister()
    await lister.caught_up(7)
    lister.on_change(lambda: None)()
    assert lister.names_of(JANE, verb="get", group=GROUP, resource="things") == frozenset()
    assert lister.namespaces_of(JANE, verb="get", group=GROUP, resource="things") == frozenset()
    for decision, view in ((ALLOW, None), (NO_OPINION, View())):
        visible = Visibility(
            Fixed(decision), lister, attributes=asking(JANE, "list"), allowed=decision.allowed, filtered=True
        )
        assert (visible.view(), visible.changed_at, visible.granted_at) == (view, 0, 0)


def in_namespaces(policy: Policy, verb: str = "list", *, namespace: str = "", name: str = "") -> Visibility:
    rbac = RBACAuthorizer(policy)
    attributes = asking(JANE, verb, namespace=namespace, name=name)
    return Visibility(rbac, rbac, attributes=attributes, allowed=False, filtered=True, namespaced=True)


def a_policy_in_namespaces() -> Policy:
    return policy_of(
        {"n/r": [a_rule("get", names=["a"])], "whole": [a_rule("get list")], "any": [a_rule("get", names=["x"])]},
        {"n/b": bound_in("n", "Role r", "User jane"), "m/b": bound_in("m", "whole", "User jane")},
    )


def test_a_list_of_one_namespace_shows_what_is_named_there() -> None:
    policy = a_policy_in_namespaces()
    assert in_namespaces(policy, namespace="n").view() == View(frozenset({"n/a"}))
    assert in_namespaces(policy, namespace="m").view() is None
    assert in_namespaces(policy, namespace="m", verb="watch").view() == View()
    assert in_namespaces(policy, namespace="o").view() == View()


def test_a_list_of_all_namespaces_shows_named_objects_and_namespaces_that_may_be_listed() -> None:
    policy = a_policy_in_namespaces()
    assert in_namespaces(policy).view() == View(frozenset({"n/a", "m/"}))
    assert in_namespaces(policy, verb="watch").view() == View(frozenset({"n/a"}))
    policy.set_binding("b", bound("any", "User jane"), revision=8)
    assert in_namespaces(policy).view() == View(frozenset({"x", "n/a", "m/"}))


def test_whole_namespaces_alone_open_no_list_of_all() -> None:
    """As in kube-apiserver, which refuses it."""
    policy = a_policy_in_namespaces()
    policy.remove_binding("n/b", revision=9)
    visible = in_namespaces(policy)
    assert visible.view() == View()
    assert not visible.shows_some()


@pytest.mark.parametrize(
    ("namespace", "name", "shows"),
    [
        ("", "", True),
        ("", "a", True),
        ("", "b", False),
        ("n", "", True),
        ("n", "a", True),
        ("n", "b", False),
        ("o", "", False),
        ("o", "a", False),
    ],
)
def test_whether_a_request_shows_something(namespace: str, name: str, *, shows: bool) -> None:
    assert in_namespaces(a_policy_in_namespaces(), namespace=namespace, name=name).shows_some() is shows


def test_rights_of_a_root_scoped_resource_do_not_change_with_those_in_namespaces() -> None:
    policy = a_policy()
    policy.set_binding("n/b", bound_in("n", "r", "User jane"), revision=9)
    root = seen_by(modes.in_order([modes.RBAC], policy))
    assert (root.view(), root.changed_at, root.granted_at) == (View(frozenset("ab")), 2, 2)
    assert [root.shows_some(), in_namespaces(policy, name="a").shows_some()] == [True, True]
    local = in_namespaces(policy, namespace="n")
    assert (local.changed_at, local.granted_at) == (9, 9)
    everywhere = in_namespaces(policy)
    assert (everywhere.changed_at, everywhere.granted_at) == (9, 2)


@pytest.mark.parametrize("name", ["a", "zz"])
def test_a_root_scoped_object_is_shown_by_its_name(name: str) -> None:
    rbac = RBACAuthorizer(a_policy())
    visible = Visibility(rbac, rbac, attributes=asking(JANE, "list", name=name), allowed=False, filtered=True)
    assert visible.shows_some() is (name == "a")


def grouped(
    authorizer: Union, groups: Groups, *, filtered: bool = True, allowed: bool = False, verb: str = "list"
) -> Visibility:
    attributes = asking(JANE, verb)
    return Visibility(
        authorizer,
        authorizer,
        attributes=attributes,
        allowed=allowed,
        filtered=filtered,
        rights=rights(authorizer, groups),
    )


def on_sets(verbs: str, *names: str) -> Rule:
    return a_rule(verbs, "sets/things", names=names)


def test_members_of_groups_are_visible_besides_names() -> None:
    policy = policy_of({"r": [a_rule("get", names=["z"]), on_sets("list", "red")]}, {"b": bound("r", "User jane")})
    groups = Groups(red="a b", blue="c")
    union = modes.in_order([modes.RBAC], policy)
    visible = grouped(union, groups)
    view = visible.view()
    assert view == View(frozenset("z"), frozenset({"red"}))
    assert view
    assert [name for name in "abcz" if view.shows(name, name)] == ["a", "b", "z"]
    assert view.present_keys() == frozenset("abz")
    assert View(frozenset("z")).present_keys() == frozenset("z")
    assert not View()
    hidden = grouped(union, groups, filtered=False).view()
    assert hidden == View(groups=frozenset({"red"}))
    assert hidden is not None
    assert not hidden.shows("z", "z")
    assert grouped(union, groups, verb="watch").view() == View(frozenset("z"))
    assert visible.shows_some()
    assert not grouped(union, groups, filtered=False, verb="watch").shows_some()


async def test_a_change_of_groups_is_one_of_rights() -> None:
    policy = policy_of({"r": [on_sets("list", "red")]}, {"b": bound("r", "User jane")})
    groups, reported = Groups(red="a"), list[str]()
    visible = grouped(modes.in_order([modes.RBAC], policy), groups)
    assert (visible.changed_at, visible.granted_at) == (2, 2)
    before = visible.view()
    end = visible.on_change(lambda: reported.append("changed"))
    groups.change(7, red="b")
    assert reported == ["changed"]
    assert visible.changed_at == 7
    after = visible.view()
    assert after != before
    assert after == View(groups=frozenset({"red"}), defined_at=7)
    await visible.caught_up(8)
    assert groups.waits == [8]
    end()
    groups.change(9)
    policy.remove_role("r", revision=10)
    assert reported == ["changed"]
    assert visible.view() == View()


async def test_other_servers_are_asked_for_groups_once_for_each_change() -> None:
    groups = Groups(red="a", blue="b")
    answers = Answers(later=True, red=ALLOW)
    visible = grouped(Union([answers]), groups)
    assert visible.view() == View()
    assert await visible.ask_groups() is None
    assert visible.view() == View(groups=frozenset({"red"}))
    await visible.caught_up(3)
    assert len(answers.asked) == 2
    groups.change(4, red="a", blue="b", green="c")
    answers.decisions = {"red": NO_OPINION, "green": ALLOW}
    await visible.caught_up(4)
    assert visible.view() == View(groups=frozenset({"green"}), defined_at=4)
    undecided = Decision(Verdict.DENY, undecided=True)
    groups.change(5, red="a", blue="b", green="c")
    answers.decisions = {"red": undecided, "green": undecided, "blue": ALLOW}
    assert await visible.ask_groups() == undecided
    assert visible.view() == View(groups=frozenset({"green", "blue"}), defined_at=5)


async def test_a_change_of_groups_ends_no_watch_of_who_may_see_everything() -> None:
    groups = Groups(red="a")
    visible = grouped(Union([Later(ALLOW)]), groups, allowed=True)
    groups.change(5)
    assert visible.view() is None
    await asyncio.gather(*visible_names._pending)


@pytest.mark.parametrize(
    ("key", "shown"), [("n/a", True), ("n/b", False), ("m/b", True), ("o/x", True), ("x", True), ("a", False)]
)
def test_names_show_objects_in_namespaces(key: str, *, shown: bool) -> None:
    assert View(frozenset({"n/a", "m/", "x"})).shows(key, key) is shown
