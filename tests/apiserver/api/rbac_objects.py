"""Roles and bindings as clients write them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.apiserver.api import clients
from tests.apiserver.api.clients import Client

GROUP = "rbac.authorization.k8s.io"
ROLES = f"/apis/{GROUP}/v1/clusterroles"
NOBODY, VIEWER = clients.NOBODY, clients.VIEWER
BINDINGS = f"/apis/{GROUP}/v1/clusterrolebindings"


def rule(
    *verbs: str, resource: str = "clusters", group: str = "clusterregistry.k8s.io", names: Sequence[str] = ()
) -> dict[str, Any]:
    made = {"verbs": list(verbs), "apiGroups": [group], "resources": [resource]}
    return {**made, "resourceNames": list(names)} if names else made


def role(name: str, *rules: dict[str, Any], labels: dict[str, str] | None = None, **more: Any) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name} | ({"labels": labels} if labels else {})
    return {"apiVersion": f"{GROUP}/v1", "kind": "ClusterRole", "metadata": metadata, "rules": list(rules), **more}


def aggregate(name: str, **labels: str) -> dict[str, Any]:
    """A role made of all roles that have one of the labels."""
    selectors = [{"matchLabels": {key: value}} for key, value in labels.items()]
    return role(name, aggregationRule={"clusterRoleSelectors": selectors})


def binding(name: str, role_name: str, **subjects: str) -> dict[str, Any]:
    """Keywords are subjects: User="jane"."""
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": role_name},
        "subjects": [{"kind": kind, "apiGroup": GROUP, "name": each} for kind, each in subjects.items()],
    }


def local_roles(namespace: str) -> str:
    return f"/apis/{GROUP}/v1/namespaces/{namespace}/roles"


def local_bindings(namespace: str) -> str:
    return f"/apis/{GROUP}/v1/namespaces/{namespace}/rolebindings"


def local_role(name: str, *rules: dict[str, Any]) -> dict[str, Any]:
    """A Role, of the namespace that it is sent to."""
    return {**role(name, *rules), "kind": "Role"}


def local_binding(name: str, role_name: str, *, kind: str = "Role", **subjects: str) -> dict[str, Any]:
    """A RoleBinding, of the namespace that it is sent to."""
    bound = binding(name, role_name, **subjects)
    return {**bound, "kind": "RoleBinding", "roleRef": {**bound["roleRef"], "kind": kind}}


def rules_of(client: Client, name: str) -> list[dict[str, Any]] | None:
    rules: list[dict[str, Any]] | None = client.get(f"{ROLES}/{name}").expect(200)["rules"]
    return rules
