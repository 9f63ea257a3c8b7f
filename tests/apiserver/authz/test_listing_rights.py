"""What a user may do, listed: rules and names, of several authorizers together."""

from __future__ import annotations

from clusterregistry.apiserver.authn.user import MASTERS, authenticated
from clusterregistry.apiserver.authz.interface import (
    NO_OPINION,
    Attributes,
    Decision,
    NameLister,
    PathRule,
    ResourceRule,
    RuleLister,
    UserRules,
)
from clusterregistry.apiserver.authz.modes import AlwaysAllow, AlwaysDeny, PrivilegedGroups
from clusterregistry.apiserver.authz.rbac.policy import RBACAuthorizer
from clusterregistry.apiserver.authz.union import Union
from tests.apiserver.authz.rbac.policies import GROUP, a_rule, bound, policy_of

JANE = authenticated(name="jane")


class CannotTell:
    """As an authorizer that asks elsewhere, and may deny."""

    def authorize(self, attributes: Attributes) -> Decision:  # noqa: ARG002
        return NO_OPINION


def named(*names: str) -> RBACAuthorizer:
    return RBACAuthorizer(policy_of({"r": [a_rule("get", names=names)]}, {"b": bound("r", "User jane")}))


def names_in(lister: NameLister) -> frozenset[str]:
    return lister.names_of(JANE, verb="get", group=GROUP, resource="things")


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


def test_rules_are_incomplete_when_somebody_cannot_list_theirs() -> None:
    assert Union([named("a"), Union([CannotTell()])]).rules_of(JANE).incomplete


def test_rules_are_incomplete_when_somebody_says_so() -> None:
    class KnowsSome(CannotTell):
        def rules_of(self, user: object) -> UserRules:  # noqa: ARG002
            return UserRules(incomplete=True)

    assert isinstance(KnowsSome(), RuleLister)
    assert Union([KnowsSome(), named("a")]).rules_of(JANE).incomplete


def test_names_of_several_are_joined() -> None:
    assert names_in(Union([PrivilegedGroups(MASTERS), named("a", "b"), Union([AlwaysDeny(), named("b", "c")])])) == {
        "a",
        "b",
        "c",
    }


def test_names_behind_somebody_who_may_deny_do_not_count() -> None:
    assert names_in(Union([named("a"), CannotTell(), named("b")])) == {"a"}
    assert names_in(Union([Union([CannotTell()]), named("b")])) == frozenset()


def test_a_union_hears_of_all_changes_and_knows_the_last() -> None:
    one = policy_of({"r": []}, {"b": bound("r", "User jane")})
    two = policy_of({"r": []}, {"b": bound("r", "User jane")})
    union = Union([AlwaysDeny(), RBACAuthorizer(one), RBACAuthorizer(two)])
    heard: list[tuple[int, int]] = []
    end = union.on_change(lambda: heard.append((union.changed_at(JANE), union.granted_at(JANE))))
    one.set_role("r", [a_rule("get")], revision=7)
    two.remove_role("r", revision=5)
    end()
    one.remove_role("r", revision=9)
    assert heard == [(7, 7), (7, 7)]
    assert (Union([]).changed_at(JANE), Union([]).granted_at(JANE)) == (0, 0)
