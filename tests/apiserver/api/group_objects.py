"""Sets of clusters, and rights on their members, as clients write them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.apiserver.api.clients import Client
from tests.apiserver.api.objects import BASE, GROUP_VERSION
from tests.apiserver.api.rbac_objects import BINDINGS, ROLES, binding, role, rule

SETS = f"{BASE}/clustersets"
MEMBERS = "clustersets/clusters"
TEAM = "team"
"""The label by which most sets select."""


def cluster_set(name: str, selector: dict[str, Any] | None = None, *, clusters: Sequence[str] = ()) -> dict[str, Any]:
    spec: dict[str, Any] = {} if selector is None else {"selector": selector}
    if clusters:
        spec["clusters"] = list(clusters)
    return {"apiVersion": GROUP_VERSION, "kind": "ClusterSet", "metadata": {"name": name}, "spec": spec}


def team_set(name: str) -> dict[str, Any]:
    """The set of the clusters whose label ``team`` is its name."""
    return cluster_set(name, {"matchLabels": {TEAM: name}})


def on_sets(*verbs: str, names: Sequence[str] = (), subresource: str = "") -> dict[str, Any]:
    """A rule on the members of sets; without names, of all sets."""
    return rule(*verbs, resource=MEMBERS + (f"-{subresource}" if subresource else ""), names=names)


def give(client: Client, user: str, *rules: dict[str, Any]) -> None:
    """The user has these rules from now on, and no others."""
    client.put(f"{ROLES}/of-{user}", role(f"of-{user}", *rules))
    client.put(f"{BINDINGS}/of-{user}", binding(f"of-{user}", f"of-{user}", User=user))
