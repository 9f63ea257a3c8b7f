from __future__ import annotations

import asyncio
from collections.abc import Awaitable

import pytest

from clusterregistry.apiserver.authn.user import authenticated
from clusterregistry.apiserver.authz import modes, visible_names
from clusterregistry.apiserver.authz.interface import ALLOW, DENY, NO_OPINION, Attributes, Decision, Verdict
from clusterregistry.apiserver.authz.rbac.policy import Policy, RBACAuthorizer
from clusterregistry.apiserver.authz.union import Union
from clusterregistry.apiserver.authz.visible_names import Visibility
from tests.apiserver.authz.rbac.policies import a_rule, asking, bound, policy_of

JANE = authenticated(name="jane")


def a_policy() -> Policy:
    return policy_of({"r": [a_rule("get", names=["a", "b"])]}, {"b": bound("r", "User jane")})


class Elsewhere:
    """Has to ask somebody else, who answers only to those who wait."""

    def __init__(self, decision: Decision, *, task: bool = False) -> None:
        self._decision, self._task = decision, task

    def authorize(self, attributes: Attributes) -> Awaitable[Decision]:  # noqa: ARG002
        answer = self._answer()
        return asyncio.ensure_future(answer) if self._task else answer

    async def _answer(self) -> Decision:
        return self._decision


class Says:
    def __init__(self, decision: Decision) -> None:
        self.decision = decision

    def authorize(self, attributes: Attributes) -> Decision:  # noqa: ARG002
        return self.decision


def seen_by(union: Union, *, allowed: bool = False, filtered: bool = True) -> Visibility:
    return Visibility(union, union, attributes=asking(JANE, "list"), allowed=allowed, filtered=filtered)


def test_names_follow_the_policy() -> None:
    policy = a_policy()
    visible = seen_by(modes.in_order([modes.RBAC], policy))
    assert visible.names() == frozenset("ab")
    policy.set_role("r", [a_rule("list")], revision=7)
    assert visible.names() is None
    assert (visible.changed_at, visible.granted_at) == (7, 7)
    policy.remove_role("r", revision=8)
    assert visible.names() == frozenset()
    assert (visible.changed_at, visible.granted_at) == (8, 0)


def test_changes_are_heard_of() -> None:
    policy, heard = a_policy(), list[str]()
    end = seen_by(modes.in_order([modes.RBAC], policy)).on_change(lambda: heard.append("changed"))
    policy.remove_role("r", revision=8)
    end()
    policy.remove_binding("b", revision=9)
    assert heard == ["changed"]


def test_without_filtering_it_is_all_or_nothing() -> None:
    policy = a_policy()
    visible = seen_by(modes.in_order([modes.RBAC], policy), filtered=False)
    assert visible.names() == frozenset()
    policy.set_role("r", [a_rule("list")], revision=7)
    assert visible.names() is None
    assert visible.granted_at == 0


def test_a_denial_hides_everything() -> None:
    assert seen_by(Union([RBACAuthorizer(a_policy()), Says(DENY)])).names() == frozenset()
    assert seen_by(Union([RBACAuthorizer(a_policy()), Says(NO_OPINION)])).names() == frozenset("ab")


@pytest.mark.parametrize("task", [False, True])
@pytest.mark.parametrize("decision", [ALLOW, DENY])
async def test_who_has_to_be_asked_elsewhere_counts_as_it_answered_until_rights_change(
    decision: Decision,
    task: bool,  # noqa: FBT001
) -> None:
    policy = a_policy()
    union = Union([RBACAuthorizer(policy), Elsewhere(decision, task=task)])
    assert seen_by(union).names() == frozenset("ab")
    whole = seen_by(union, allowed=True)
    assert whole.names() is None
    policy.remove_role("r", revision=9)
    assert whole.names() == frozenset()
    await asyncio.gather(*visible_names._asked)


async def test_one_can_wait_for_rights() -> None:
    policy, asked = a_policy(), list[int]()

    async def wait_for(revision: int) -> None:
        asked.append(revision)

    visible = seen_by(modes.in_order([modes.ALWAYS_DENY, modes.RBAC], policy))
    await visible.caught_up(3)
    policy.follow(wait_for)
    await visible.caught_up(4)
    assert asked == [4]


@pytest.mark.parametrize(("allowed", "names"), [(True, None), (False, frozenset())])
def test_who_could_not_be_asked_counts_as_they_answered(*, allowed: bool, names: frozenset[str] | None) -> None:
    undecided = Decision(Verdict.DENY, undecided=True)
    assert seen_by(Union((Says(undecided),)), allowed=allowed).names() == names
