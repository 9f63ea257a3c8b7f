from __future__ import annotations

import asyncio

import pytest

from clusterregistry.apiserver.authn.user import MASTERS, authenticated
from clusterregistry.apiserver.authz.interface import (
    ALLOW,
    DENY,
    NO_OPINION,
    Attributes,
    Decision,
    NameLister,
    PathRule,
    ResourceRule,
    RuleLister,
    UserRules,
    Verdict,
    decided,
)
from clusterregistry.apiserver.authz.modes import AlwaysAllow, AlwaysDeny, PrivilegedGroups
from clusterregistry.apiserver.authz.rbac.policy import RBACAuthorizer
from clusterregistry.apiserver.authz.union import Union
from tests.apiserver.authz.rbac.policies import GROUP, a_rule, asking, bound, bound_in, policy_of

JANE = authenticated(name="jane")
LIST = asking(JANE, "list")


class Fixed:
    """Decides the same each time. It cannot list rules or names."""

    def __init__(self, decision: Decision = NO_OPINION) -> None:
        self.decision = decision
        self.calls = 0

    def authorize(self, attributes: Attributes) -> Decision:  # noqa: ARG002
        self.calls += 1
        return self.decision


class FixedLater(Fixed):
    """The same with an awaitable, as an authorizer that calls another server."""

    async def authorize(self, attributes: Attributes) -> Decision:  # type: ignore[override]
        await asyncio.sleep(0)
        return super().authorize(attributes)


def named(*names: str) -> RBACAuthorizer:
    return RBACAuthorizer(policy_of({"r": [a_rule("get", names=names)]}, {"b": bound("r", "User jane")}))


def names_in(lister: NameLister) -> frozenset[str]:
    return lister.names_of(JANE, verb="get", group=GROUP, resource="things")


@pytest.mark.parametrize("kind", [Fixed, FixedLater])
@pytest.mark.parametrize("decision", [ALLOW, DENY])
async def test_the_first_opinion_decides(kind: type[Fixed], decision: Decision) -> None:
    last = Fixed(ALLOW)
    assert await decided(Union([Fixed(NO_OPINION), kind(decision), last]), LIST) == decision
    assert last.calls == 0


@pytest.mark.parametrize("kind", [Fixed, FixedLater])
async def test_without_any_opinion_the_reasons_are_joined_and_nothing_is_allowed(kind: type[Fixed]) -> None:
    one, two = Decision(Verdict.NO_OPINION, "one"), Decision(Verdict.NO_OPINION, "two")
    decision = await decided(Union([kind(one), kind(NO_OPINION), Fixed(two)]), LIST)
    assert decision == Decision(Verdict.NO_OPINION, "one\ntwo")
    assert not decision.allowed


async def test_an_awaitable_follows_an_awaitable() -> None:
    assert await decided(Union([FixedLater(NO_OPINION), FixedLater(ALLOW)]), LIST) == ALLOW


def test_an_empty_union_allows_nothing() -> None:
    assert Union([]).authorize(LIST) == NO_OPINION
    assert (Union([]).changed_at(JANE), Union([]).granted_at(JANE)) == (0, 0)


def test_rules_of_several_are_joined() -> None:
    missing = RBACAuthorizer(policy_of({}, {"b": bound("gone", "User jane")}))
    union = Union([AlwaysDeny(), named("a"), AlwaysAllow(), Union([PrivilegedGroups(MASTERS), missing])])
    assert union.rules_of(JANE) == UserRules(
        resource_rules=(
            ResourceRule(verbs=("get",), api_groups=(GROUP,), resources=("things",), resource_names=("a",)),
            ResourceRule(verbs=("*",), api_groups=("*",), resources=("*",)),
        ),
        path_rules=(PathRule(verbs=("*",), non_resource_urls=("*",)),),
        problems=('clusterrole.rbac.authorization.k8s.io "gone" not found',),
    )


def test_rules_are_incomplete_if_those_of_one_are_not_known_or_incomplete() -> None:
    class Incomplete(Fixed):
        def rules_of(self, user: object, *, namespace: str = "") -> UserRules:  # noqa: ARG002
            return UserRules(incomplete=True)

    assert Union([named("a"), Union([Fixed()])]).rules_of(JANE).incomplete
    assert isinstance(Incomplete(), RuleLister)
    assert Union([Incomplete(), named("a")]).rules_of(JANE).incomplete


def test_names_of_several_are_joined() -> None:
    nested = Union([AlwaysDeny(), named("b", "c")])
    assert names_in(Union([PrivilegedGroups(MASTERS), named("a", "b"), nested])) == set("abc")


def test_names_and_rules_in_namespaces_are_joined() -> None:
    def local(namespace: str) -> RBACAuthorizer:
        rules = [a_rule("get", names=["a"]), a_rule("list")]
        return RBACAuthorizer(
            policy_of({f"{namespace}/r": rules}, {f"{namespace}/b": bound_in(namespace, "Role r", "User jane")})
        )

    union = Union([local("n"), local("m")])
    everywhere = union.names_of(JANE, verb="get", group=GROUP, resource="things", namespace=None)
    assert everywhere == {"n/a", "m/a"}
    assert union.names_of(JANE, verb="get", group=GROUP, resource="things", namespace="n") == {"n/a"}
    assert union.namespaces_of(JANE, verb="list", group=GROUP, resource="things") == {"n", "m"}
    assert (union.changed_at(JANE), union.changed_at(JANE, in_namespaces=True)) == (0, 2)
    assert (union.granted_at(JANE), union.granted_at(JANE, namespace="m")) == (0, 2)
    assert len(union.rules_of(JANE, namespace="m").resource_rules) == 2


def test_names_after_an_authorizer_that_may_deny_do_not_count() -> None:
    assert names_in(Union([named("a"), Fixed(), named("b")])) == {"a"}
    assert names_in(Union([Union([Fixed()]), named("b")])) == frozenset()


def test_a_union_reports_the_changes_of_all_and_the_last_revision() -> None:
    one = policy_of({"r": []}, {"b": bound("r", "User jane")})
    two = policy_of({"r": []}, {"b": bound("r", "User jane")})
    union = Union([AlwaysDeny(), RBACAuthorizer(one), RBACAuthorizer(two)])
    reported: list[tuple[int, int]] = []
    end = union.on_change(lambda: reported.append((union.changed_at(JANE), union.granted_at(JANE))))
    one.set_role("r", [a_rule("get")], revision=7)
    two.remove_role("r", revision=5)
    end()
    one.remove_role("r", revision=9)
    assert reported == [(7, 7), (7, 7)]
