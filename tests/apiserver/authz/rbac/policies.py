"""Policies for tests, from plain values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from clusterregistry.apiserver.authn.user import User
from clusterregistry.apiserver.authz.interface import Attributes
from clusterregistry.apiserver.authz.rbac.bindings import Binding, Subject
from clusterregistry.apiserver.authz.rbac.policy import Policy
from clusterregistry.apiserver.authz.rbac.rules import Rule, rules_from_wire

GROUP = "example.com"


def a_rule(verbs: str, resources: str = "things", *, group: str = GROUP, names: Iterable[str] = ()) -> Rule:
    """A rule from words: ``a_rule("get list", "things things/status")``."""
    return Rule(
        verbs=tuple(verbs.split()),
        api_groups=(group,),
        resources=tuple(resources.split()),
        resource_names=tuple(names),
    )


def path_rule(verbs: str, *urls: str) -> Rule:
    return Rule(verbs=tuple(verbs.split()), non_resource_urls=urls)


def bound(role: str, *subjects: str) -> Binding:
    """A binding to subjects such as ``User jane``, ``Group admins`` and ``ServiceAccount ns/bot``."""
    return Binding(role_kind="ClusterRole", role=role, subjects=tuple(_subject(each) for each in subjects))


def bound_in(namespace: str, role: str, *subjects: str) -> Binding:
    """A RoleBinding of a ClusterRole, or of a Role as in ``Role reader``."""
    kind, _, name = role.rpartition(" ")
    return replace(bound(name, *subjects), role_kind=kind or "ClusterRole", namespace=namespace)


def _subject(text: str) -> Subject:
    kind, _, name = text.partition(" ")
    namespace, slash, account = name.partition("/")
    return Subject(kind=kind, name=account, namespace=namespace) if slash else Subject(kind=kind, name=name)


def policy_of(roles: Mapping[str, Iterable[Rule]], bindings: Mapping[str, Binding]) -> Policy:
    policy = Policy()
    for revision, (name, rules) in enumerate(roles.items(), start=1):
        policy.set_role(name, rules, revision=revision)
    for revision, (name, binding) in enumerate(bindings.items(), start=len(roles) + 1):
        policy.set_binding(name, binding, revision=revision)
    return policy


def policy_from_wire(roles: Iterable[Mapping[str, Any]], bindings: Iterable[Mapping[str, Any]]) -> Policy:
    """Objects with a namespace are Roles and RoleBindings."""
    return policy_of(
        {key_of(each): rules_from_wire(each.get("rules")) for each in roles},
        {key_of(each): Binding.from_wire(each, each["metadata"].get("namespace", "")) for each in bindings},
    )


def key_of(obj: Mapping[str, Any]) -> str:
    metadata = obj["metadata"]
    return f"{metadata['namespace']}/{metadata['name']}" if "namespace" in metadata else str(metadata["name"])


def asking(user: User, verb: str, resource: str = "things", **more: Any) -> Attributes:
    """A question about a resource; ``things/status`` is one about a subresource."""
    resource, _, subresource = resource.partition("/")
    given: dict[str, Any] = {"group": GROUP, "resource": resource, "subresource": subresource}
    return Attributes(user=user, verb=verb, is_resource_request=True, **(given | more))


def asking_for_path(user: User, verb: str, path: str) -> Attributes:
    return Attributes(user=user, verb=verb, is_resource_request=False, path=path)
