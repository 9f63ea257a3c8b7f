from __future__ import annotations

import pytest

from clusterregistry.apiserver.authn.user import User
from clusterregistry.apiserver.authz.interface import Attributes
from clusterregistry.apiserver.authz.rbac.policy import RBACAuthorizer
from clusterregistry.apiserver.authz.rbac.rules import Rule, rules_from_wire
from tests.apiserver.authz.rbac.policies import a_rule, asking, asking_for_path, bound, path_rule, policy_of

JANE = User("jane")


def allows(rule: Rule, attributes: Attributes) -> bool:
    return RBACAuthorizer(policy_of({"r": [rule]}, {"b": bound("r", "User jane")})).authorize(attributes).allowed


@pytest.mark.parametrize(
    ("resources", "asked", "allowed"),
    [
        ("things", "things", True),
        ("things", "things/status", False),
        ("things/status", "things/status", True),
        ("things/status", "things", False),
        ("*", "things", True),
        ("*", "things/status", True),
        ("*/status", "things/status", True),
        ("*/status", "things", False),
        ("*/status", "things/scale", False),
        ("things/*", "things/status", False),
        ("things/*", "things", False),
        ("others things", "things", True),
        ("", "things", False),
    ],
)
def test_resources_of_a_rule(resources: str, asked: str, allowed: bool) -> None:  # noqa: FBT001
    assert allows(a_rule("get", resources), asking(JANE, "get", asked)) is allowed


def test_verbs_and_groups_match_exactly_or_by_a_star() -> None:
    assert allows(a_rule("get list"), asking(JANE, "list"))
    assert not allows(a_rule("get list"), asking(JANE, "watch"))
    assert allows(a_rule("*"), asking(JANE, "anything"))
    assert not allows(a_rule("get", group="example.net"), asking(JANE, "get"))
    assert allows(a_rule("get", group="*"), asking(JANE, "get"))
    assert not allows(a_rule("get", group=""), asking(JANE, "get"))
    assert allows(a_rule("get", group=""), asking(JANE, "get", group=""))


def test_a_rule_with_names_is_for_these_names_only() -> None:
    rule = a_rule("get list", names=["a", "b"])
    assert allows(rule, asking(JANE, "get", name="a"))
    assert not allows(rule, asking(JANE, "get", name="c"))
    assert not allows(rule, asking(JANE, "list"))


@pytest.mark.parametrize(
    ("url", "path", "allowed"),
    [
        ("/healthz", "/healthz", True),
        ("/healthz", "/healthz/", False),
        ("/healthz/*", "/healthz/etcd", True),
        ("/healthz/*", "/healthz", False),
        ("/healthz*", "/healthzz", True),
        ("/healthz**", "/healthz", True),
        ("*", "anything", True),
        ("/a/*/b", "/a/x/b", False),
    ],
)
def test_paths_of_a_rule(url: str, path: str, allowed: bool) -> None:  # noqa: FBT001
    assert allows(path_rule("get", url), asking_for_path(JANE, "get", path)) is allowed
    assert not allows(path_rule("post", url), asking_for_path(JANE, "get", path))


def test_resources_and_paths_do_not_mix() -> None:
    assert not allows(a_rule("*", "*", group="*"), asking_for_path(JANE, "get", "/healthz"))
    assert not allows(path_rule("*", "*"), asking(JANE, "get"))


def test_the_wire_form_is_read_and_what_is_absent_is_empty() -> None:
    wire = {
        "verbs": ["get"],
        "apiGroups": ["example.com"],
        "resources": ["things"],
        "resourceNames": ["b", "a"],
        "nonResourceURLs": ["/x"],
    }
    expected = Rule(
        verbs=("get",),
        api_groups=("example.com",),
        resources=("things",),
        resource_names=("b", "a"),
        non_resource_urls=("/x",),
    )
    assert rules_from_wire([wire, {}, {"verbs": None}]) == (expected, Rule(), Rule())
    assert rules_from_wire(None) == ()
