"""Roles and bindings as clients write them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from tests.apiserver.api.clients import Client

GROUP = "rbac.authorization.k8s.io"
ROLES = f"/apis/{GROUP}/v1/clusterroles"
BINDINGS = f"/apis/{GROUP}/v1/clusterrolebindings"
NOBODY = {"Authorization": "Bearer nobodytoken"}
VIEWER = {"Authorization": "Bearer viewertoken"}
PATIENCE = 30.0


def rule(*verbs: str, resource: str = "clusters", group: str = "clusterregistry.k8s.io") -> dict[str, Any]:
    return {"verbs": list(verbs), "apiGroups": [group], "resources": [resource]}


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


def rules_of(client: Client, name: str) -> list[dict[str, Any]] | None:
    rules: list[dict[str, Any]] | None = client.get(f"{ROLES}/{name}").expect(200)["rules"]
    return rules


def eventually(happens: Callable[[], bool]) -> None:
    """Waits for what a controller does in its own time."""
    end = time.monotonic() + PATIENCE
    while not happens():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)
