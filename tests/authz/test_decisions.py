from __future__ import annotations

from typing import Any

import pytest

from clusterregistry.authn.users import ANONYMOUS_USER, MASTERS, User, authenticated
from clusterregistry.authz import modes
from clusterregistry.authz.interface import ALLOW, DENY, NO_OPINION, Attributes, Decision, Verdict
from clusterregistry.authz.union import Union

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


@pytest.mark.parametrize("decision", [ALLOW, DENY])
def test_the_first_opinion_decides(decision: Decision) -> None:
    last = Says(ALLOW)
    union = Union([Says(NO_OPINION), Says(decision), last])
    assert union.authorize(resource_request(NOBODY)) == decision
    assert last.asked == 0


def test_without_any_opinion_the_reasons_are_joined_and_nothing_is_allowed() -> None:
    silent = Says(NO_OPINION)
    union = Union([Says(Decision(Verdict.NO_OPINION, "one")), silent, Says(Decision(Verdict.NO_OPINION, "two"))])
    decision = union.authorize(resource_request(NOBODY))
    assert decision == Decision(Verdict.NO_OPINION, "one\ntwo")
    assert not decision.allowed


def test_nobody_to_ask_allows_nothing() -> None:
    assert not Union([]).authorize(resource_request(ADMIN)).allowed


@pytest.mark.parametrize("mode", modes.MODES)
def test_masters_may_do_everything_in_every_mode(mode: str) -> None:
    authorizer = modes.in_order([mode])
    assert authorizer.authorize(resource_request(ADMIN, "deletecollection")).allowed
    assert authorizer.authorize(path_request(ADMIN, "/metrics")).allowed


@pytest.mark.parametrize("user", [NOBODY, ANONYMOUS_USER])
@pytest.mark.parametrize("verb", ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"])
def test_rbac_without_roles_gives_others_no_resource(user: User, verb: str) -> None:
    decision = modes.in_order([modes.RBAC]).authorize(resource_request(user, verb))
    assert not decision.allowed
    assert decision.reason == ""


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz", "/version", "/version/"])
def test_everybody_may_ask_for_health_and_version(path: str) -> None:
    authorizer = modes.in_order([modes.RBAC])
    assert authorizer.authorize(path_request(ANONYMOUS_USER, path)).allowed
    assert authorizer.authorize(path_request(NOBODY, path)).allowed
    assert not authorizer.authorize(path_request(ANONYMOUS_USER, path, "post")).allowed


@pytest.mark.parametrize("path", ["/api", "/apis", "/apis/example.com", "/openapi/v2", "/openapi/v3/apis/x"])
def test_only_users_may_discover(path: str) -> None:
    authorizer = modes.in_order([modes.RBAC])
    assert authorizer.authorize(path_request(NOBODY, path)).allowed
    assert not authorizer.authorize(path_request(ANONYMOUS_USER, path)).allowed
    assert not authorizer.authorize(path_request(NOBODY, path, "post")).allowed


@pytest.mark.parametrize("path", ["/metrics", "/", "/healthzz", "/readyzfoo", "/versions", "/apisx", "/openapix", ""])
def test_other_paths_need_a_role(path: str) -> None:
    assert not modes.in_order([modes.RBAC]).authorize(path_request(NOBODY, path)).allowed


def test_a_resource_request_is_not_mistaken_for_its_path() -> None:
    request = resource_request(NOBODY, "get", path="/apis/example.com/v1/things")
    assert not modes.in_order([modes.RBAC]).authorize(request).allowed


def test_always_allow_allows_and_always_deny_does_not() -> None:
    assert modes.in_order([modes.ALWAYS_ALLOW]).authorize(resource_request(ANONYMOUS_USER)).allowed
    decision = modes.in_order([modes.ALWAYS_DENY]).authorize(path_request(ANONYMOUS_USER, "/healthz"))
    assert not decision.allowed
    assert decision.reason == "Everything is forbidden."


def test_modes_are_asked_in_order_and_always_deny_is_no_veto() -> None:
    authorizer = modes.in_order([modes.ALWAYS_DENY, modes.ALWAYS_ALLOW])
    assert authorizer.authorize(resource_request(NOBODY)).allowed
