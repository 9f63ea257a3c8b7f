from __future__ import annotations

import pytest

from clusterregistry.apiserver.authn.user import ANONYMOUS_USER, MASTERS, User, authenticated
from clusterregistry.apiserver.authz import modes
from clusterregistry.apiserver.authz.interface import Attributes, Authorizer, Decision, PathRule
from clusterregistry.apiserver.authz.modes import OpenPaths
from tests.apiserver.authz.rbac.policies import a_rule, asking, asking_for_path, bound, policy_of

ADMIN = authenticated(name="admin", groups=[MASTERS])
JANE = authenticated(name="jane")
OPEN = OpenPaths("/healthz", "/livez")


def decide(authorizer: Authorizer, attributes: Attributes) -> Decision:
    decision = authorizer.authorize(attributes)
    assert isinstance(decision, Decision)
    return decision


@pytest.mark.parametrize("mode", modes.MODES)
def test_masters_may_do_everything_in_every_mode(mode: str) -> None:
    authorizer = modes.in_order([mode])
    assert decide(authorizer, asking(ADMIN, "deletecollection")).allowed
    assert decide(authorizer, asking_for_path(ADMIN, "get", "/metrics")).allowed


@pytest.mark.parametrize("user", [JANE, ANONYMOUS_USER])
def test_rbac_without_roles_allows_other_users_nothing(user: User) -> None:
    authorizer = modes.in_order([modes.RBAC])
    for verb in ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"):
        decision = decide(authorizer, asking(user, verb, path="/apis/example.com/v1/things"))
        assert (decision.allowed, decision.reason) == (False, "")
    for path in ("/metrics", "/", "/healthz", "/apis", ""):
        assert not decide(authorizer, asking_for_path(user, "get", path)).allowed


def test_rbac_decides_from_its_policy() -> None:
    policy = policy_of({"r": [a_rule("list")]}, {"b": bound("r", "User jane")})
    authorizer = modes.in_order([modes.ALWAYS_DENY, modes.RBAC], policy)
    assert decide(authorizer, asking(JANE, "list")).allowed
    assert not decide(authorizer, asking(JANE, "get")).allowed


def test_always_allow_allows_and_always_deny_does_not() -> None:
    assert decide(modes.in_order([modes.ALWAYS_ALLOW]), asking(ANONYMOUS_USER, "list")).allowed
    decision = decide(modes.in_order([modes.ALWAYS_DENY]), asking_for_path(ANONYMOUS_USER, "get", "/healthz"))
    assert (decision.allowed, decision.reason) == (False, "Everything is forbidden.")


def test_a_mode_after_always_deny_may_allow() -> None:
    assert decide(modes.in_order([modes.ALWAYS_DENY, modes.ALWAYS_ALLOW]), asking(JANE, "list")).allowed


def test_open_paths_allow_every_verb_on_exactly_these_paths() -> None:
    for verb in ("get", "head", "post"):
        assert OPEN.authorize(asking_for_path(ANONYMOUS_USER, verb, "/healthz")).allowed
    for path in ("/healthz/ping", "/health", "/healthz/", "/readyz", ""):
        assert not OPEN.authorize(asking_for_path(ANONYMOUS_USER, "get", path)).allowed
    assert not OPEN.authorize(asking(ANONYMOUS_USER, "get", path="/healthz")).allowed
    paths = PathRule(verbs=("*",), non_resource_urls=("/healthz", "/livez"))
    assert OPEN.rules_of(ANONYMOUS_USER).path_rules == (paths,)
