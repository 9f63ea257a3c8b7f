"""The decisions that were recorded from kube-apiserver, asked of the evaluator alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from clusterregistry.apiserver.authn.user import User
from clusterregistry.apiserver.authz.interface import Attributes
from clusterregistry.apiserver.authz.rbac.policy import RBACAuthorizer
from tests.apiserver.authz.rbac.policies import policy_from_wire

RECORDED = Path(__file__).parents[3] / "conformance" / "rbac.json"
POLICIES: list[dict[str, Any]] = json.loads(RECORDED.read_text())["policies"]
PUBLIC = ("/healthz", "/livez", "/readyz", "/version", "/version/")


def role(name: str, **rule: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "rules": [rule]}


def binding(name: str, *groups: str) -> dict[str, Any]:
    subjects = [{"kind": "Group", "name": group} for group in groups]
    return {"metadata": {"name": name}, "roleRef": {"kind": "ClusterRole", "name": name}, "subjects": subjects}


DEFAULT_ROLES = [
    role("cluster-admin", verbs=["*"], apiGroups=["*"], resources=["*"]),
    role("system:discovery", verbs=["get"], nonResourceURLs=[*PUBLIC, "/api", "/api/*", "/apis", "/apis/*"]),
    role("system:public-info-viewer", verbs=["get"], nonResourceURLs=list(PUBLIC)),
]
DEFAULT_BINDINGS = [
    binding("cluster-admin", "system:masters"),
    binding("system:discovery", "system:authenticated"),
    binding("system:public-info-viewer", "system:authenticated", "system:unauthenticated"),
]


def attributes(spec: dict[str, Any]) -> Attributes:
    user = User(spec["user"], groups=tuple(spec.get("groups", ())))
    if path := spec.get("nonResourceAttributes"):
        return Attributes(user=user, is_resource_request=False, **path)
    return Attributes(user=user, is_resource_request=True, **spec["resourceAttributes"])


@pytest.mark.parametrize("recorded", POLICIES)
def test_decisions_are_those_of_the_reference(recorded: dict[str, Any]) -> None:
    policy = policy_from_wire([*DEFAULT_ROLES, *recorded["roles"]], [*DEFAULT_BINDINGS, *recorded["bindings"]])
    rbac = RBACAuthorizer(policy)
    wrong = [
        review
        for review in recorded["reviews"]
        if rbac.authorize(attributes(review["spec"])).allowed != review["allowed"]
    ]
    assert not wrong


def test_there_are_as_many_decisions_as_were_recorded() -> None:
    assert sum(len(recorded["reviews"]) for recorded in POLICIES) == 1440


WITH_NAMESPACES: list[dict[str, Any]] = json.loads(RECORDED.with_name("rbac-namespaces.json").read_text())["policies"]


def decided(rbac: RBACAuthorizer, review: list[Any]) -> list[Any]:
    """Whether it is allowed, and the roles that are missing."""
    name, groups, *asked = review
    names = ("verb", "group", "resource", "subresource", "name", "namespace")
    user = User(name, groups=tuple(groups))
    attributes = Attributes(user=user, is_resource_request=True, **dict(zip(names, asked, strict=True)))
    decision = rbac.authorize(attributes)
    problems = () if decision.allowed else rbac.rules_of(user, namespace=attributes.namespace).problems
    return [decision.allowed, sorted(set(problems))]


@pytest.mark.parametrize("recorded", WITH_NAMESPACES)
def test_decisions_in_namespaces_are_those_of_the_reference(recorded: dict[str, Any]) -> None:
    rbac = RBACAuthorizer(policy_from_wire(recorded["roles"], recorded["bindings"]))
    assert [decided(rbac, review) for review in recorded["reviews"]] == recorded["answers"]["reviews"]
