from __future__ import annotations

import asyncio
from typing import Any

import pytest

from clusterregistry.apiserver.authn.user import ANONYMOUS_USER, MASTERS, User, authenticated
from clusterregistry.apiserver.authz import modes
from clusterregistry.apiserver.authz.interface import (
    ALLOW,
    DENY,
    NO_OPINION,
    Attributes,
    Authorizer,
    Decision,
    Verdict,
    decided,
)
from clusterregistry.apiserver.authz.union import Union
from tests.apiserver.authz.rbac.policies import a_rule, bound, policy_of

ADMIN = authenticated(name="admin", groups=[MASTERS])
NOBODY = authenticated(name="nobody")


def resource_request(user: User, verb: str = "list", **more: Any) -> Attributes:
    return Attributes(user=user, verb=verb, is_resource_request=True, group="example.com", resource="things", **more)


def path_request(user: User, path: str, verb: str = "get") -> Attributes:
    return Attributes(user=user, verb=verb, is_resource_request=False, path=path)


class Says:
    def __init__(self, decision: Decision) -> None:
        self.decision = decision
        self.asked = 0

    def authorize(self, attributes: Attributes) -> Decision:  # noqa: ARG002
        self.asked += 1
        return self.decision


def at_once(authorizer: Authorizer, attributes: Attributes) -> Decision:
    decision = authorizer.authorize(attributes)
    assert isinstance(decision, Decision)
    return decision


@pytest.mark.parametrize("decision", [ALLOW, DENY])
def test_the_first_opinion_decides(decision: Decision) -> None:
    last = Says(ALLOW)
    union = Union([Says(NO_OPINION), Says(decision), last])
    assert at_once(union, resource_request(NOBODY)) == decision
    assert last.asked == 0


def test_without_any_opinion_the_reasons_are_joined_and_nothing_is_allowed() -> None:
    silent = Says(NO_OPINION)
    union = Union([Says(Decision(Verdict.NO_OPINION, "one")), silent, Says(Decision(Verdict.NO_OPINION, "two"))])
    decision = at_once(union, resource_request(NOBODY))
    assert decision == Decision(Verdict.NO_OPINION, "one\ntwo")
    assert not decision.allowed


def test_nobody_to_ask_allows_nothing() -> None:
    assert not at_once(Union([]), resource_request(ADMIN)).allowed


@pytest.mark.parametrize("mode", modes.MODES)
def test_masters_may_do_everything_in_every_mode(mode: str) -> None:
    authorizer = modes.in_order([mode])
    assert at_once(authorizer, resource_request(ADMIN, "deletecollection")).allowed
    assert at_once(authorizer, path_request(ADMIN, "/metrics")).allowed


@pytest.mark.parametrize("user", [NOBODY, ANONYMOUS_USER])
@pytest.mark.parametrize("verb", ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"])
def test_rbac_without_roles_gives_others_no_resource(user: User, verb: str) -> None:
    decision = at_once(modes.in_order([modes.RBAC]), resource_request(user, verb))
    assert not decision.allowed
    assert decision.reason == ""


@pytest.mark.parametrize("path", ["/metrics", "/", "/healthz", "/apis", ""])
def test_every_path_needs_a_role(path: str) -> None:
    assert not at_once(modes.in_order([modes.RBAC]), path_request(NOBODY, path)).allowed


def test_a_resource_request_is_not_mistaken_for_its_path() -> None:
    request = resource_request(NOBODY, "get", path="/apis/example.com/v1/things")
    assert not at_once(modes.in_order([modes.RBAC]), request).allowed


def test_always_allow_allows_and_always_deny_does_not() -> None:
    assert at_once(modes.in_order([modes.ALWAYS_ALLOW]), resource_request(ANONYMOUS_USER)).allowed
    decision = at_once(modes.in_order([modes.ALWAYS_DENY]), path_request(ANONYMOUS_USER, "/healthz"))
    assert not decision.allowed
    assert decision.reason == "Everything is forbidden."


def test_modes_are_asked_in_order_and_always_deny_is_no_veto() -> None:
    authorizer = modes.in_order([modes.ALWAYS_DENY, modes.ALWAYS_ALLOW])
    assert at_once(authorizer, resource_request(NOBODY)).allowed


class SaysLater(Says):
    """As somebody who has to ask elsewhere first."""

    async def authorize(self, attributes: Attributes) -> Decision:  # type: ignore[override]
        await asyncio.sleep(0)
        return super().authorize(attributes)


@pytest.mark.parametrize("decision", [ALLOW, DENY])
async def test_an_opinion_that_takes_time_decides_as_well(decision: Decision) -> None:
    last = Says(ALLOW)
    assert await decided(Union([Says(NO_OPINION), SaysLater(decision), last]), resource_request(NOBODY)) == decision
    assert last.asked == 0


async def test_those_behind_one_that_takes_time_are_asked_too() -> None:
    one, two = Decision(Verdict.NO_OPINION, "one"), Decision(Verdict.NO_OPINION, "two")
    union = Union([SaysLater(one), SaysLater(NO_OPINION), Says(two)])
    assert await decided(union, resource_request(NOBODY)) == Decision(Verdict.NO_OPINION, "one\ntwo")
    assert await decided(Union([SaysLater(one), SaysLater(ALLOW)]), resource_request(NOBODY)) == ALLOW


async def test_what_is_known_at_once_can_be_waited_for() -> None:
    assert await decided(Says(DENY), resource_request(NOBODY)) == DENY


def test_rbac_decides_from_its_policy() -> None:
    policy = policy_of({"r": [a_rule("list")]}, {"b": bound("r", "User nobody")})
    authorizer = modes.in_order([modes.ALWAYS_DENY, modes.RBAC], policy)
    assert at_once(authorizer, resource_request(NOBODY)).allowed
    assert not at_once(authorizer, resource_request(NOBODY, "get")).allowed
