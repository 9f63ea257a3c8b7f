"""The roles and bindings that every registry has: kube-apiserver's, as far as they concern what is served here.

``view``, ``edit`` and ``admin`` are about clusters; each is made of all roles with a label, so that an operator can
add to them without changing them.
"""

from __future__ import annotations

from typing import Any

from clusterregistry.api.clusterregistry import GROUP as CLUSTERS_GROUP
from clusterregistry.api.rbac import GROUP
from clusterregistry.api.rbac.v1 import VERSION
from clusterregistry.api.rbac.v1.types import CLUSTER_ROLE_BINDING_KIND, CLUSTER_ROLE_KIND
from clusterregistry.apiserver.authn.user import ALL_AUTHENTICATED, ALL_UNAUTHENTICATED, MASTERS

Object = dict[str, Any]

AUTO_UPDATE = "rbac.authorization.kubernetes.io/autoupdate"
"""The annotation that keeps a default object from being repaired, when it is "false"."""

_BOOTSTRAPPING = {"kubernetes.io/bootstrapping": "rbac-defaults"}
_AGGREGATE = "rbac.authorization.k8s.io/aggregate-to-"
_MONITORING = "system:monitoring"
_READING = ["get", "list", "watch"]
_WRITING = ["create", "delete", "deletecollection", "patch", "update"]
_PUBLIC_PATHS = ["/healthz", "/livez", "/readyz", "/version", "/version/"]
_DISCOVERY_PATHS = ["/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*"]
_MONITORED_PATHS = [
    *("/healthz", "/healthz/*", "/livez", "/livez/*", "/metrics", "/metrics/slis", "/readyz", "/readyz/*"),
]


def _metadata(name: str, labels: dict[str, str]) -> Object:
    return {"name": name, "labels": _BOOTSTRAPPING | labels, "annotations": {AUTO_UPDATE: "true"}}


def _role(name: str, *rules: Object, aggregated_to: str = "") -> Object:
    labels = {_AGGREGATE + aggregated_to: "true"} if aggregated_to else {}
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": CLUSTER_ROLE_KIND,
        "metadata": _metadata(name, labels),
        "rules": list(rules) or None,
    }


def _aggregate(name: str, *, aggregated_to: str = "") -> Object:
    """A role that is made of all roles with its label."""
    selector = {"matchLabels": {_AGGREGATE + name: "true"}}
    return _role(name, aggregated_to=aggregated_to) | {"aggregationRule": {"clusterRoleSelectors": [selector]}}


def _on(group: str, verbs: list[str], *resources: str) -> Object:
    return {"verbs": verbs, "apiGroups": [group], "resources": list(resources)}


def _paths(verbs: list[str], paths: list[str]) -> Object:
    return {"verbs": verbs, "nonResourceURLs": paths}


def _binding(role: str, *groups: str) -> Object:
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": CLUSTER_ROLE_BINDING_KIND,
        "metadata": _metadata(role, {}),
        "roleRef": {"apiGroup": GROUP, "kind": CLUSTER_ROLE_KIND, "name": role},
        "subjects": [{"kind": "Group", "apiGroup": GROUP, "name": group} for group in groups],
    }


def default_roles() -> list[Object]:
    """Fresh objects, for the caller to change."""
    return [
        _role("cluster-admin", _on("*", ["*"], "*"), _paths(["*"], ["*"])),
        _aggregate("admin"),
        _aggregate("edit", aggregated_to="admin"),
        _aggregate("view", aggregated_to="edit"),
        _role(
            "system:aggregate-to-admin",
            _on(CLUSTERS_GROUP, ["patch", "update"], "clusters/status"),
            aggregated_to="admin",
        ),
        _role("system:aggregate-to-edit", _on(CLUSTERS_GROUP, _WRITING, "clusters"), aggregated_to="edit"),
        _role(
            "system:aggregate-to-view",
            _on(CLUSTERS_GROUP, _READING, "clusters", "clusters/status"),
            aggregated_to="view",
        ),
        _role(
            "system:basic-user",
            _on("authorization.k8s.io", ["create"], "selfsubjectaccessreviews", "selfsubjectrulesreviews"),
            _on("authentication.k8s.io", ["create"], "selfsubjectreviews"),
        ),
        _role("system:discovery", _paths(["get"], sorted([*_DISCOVERY_PATHS, *_PUBLIC_PATHS]))),
        _role("system:monitoring", _paths(["get"], _MONITORED_PATHS)),
        _role("system:public-info-viewer", _paths(["get"], _PUBLIC_PATHS)),
    ]


def default_bindings() -> list[Object]:
    """Fresh objects, for the caller to change."""
    return [
        _binding("cluster-admin", MASTERS),
        _binding("system:basic-user", ALL_AUTHENTICATED),
        _binding("system:discovery", ALL_AUTHENTICATED),
        _binding("system:monitoring", _MONITORING),
        _binding("system:public-info-viewer", ALL_AUTHENTICATED, ALL_UNAUTHENTICATED),
    ]
