"""The fields of clusters that field selectors can name, besides the name. They are the same in every version."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from clusterregistry.apiserver.registry.columns import field_cell
from clusterregistry.apiserver.registry.resource import SelectField


def _text_at(*path: str) -> SelectField:
    """Reads the text at a path of keys; empty where there is none."""
    read = field_cell(*path)

    def select(cluster: dict[str, Any]) -> str:
        value = read(cluster)
        return value if isinstance(value, str) else ""

    return select


CLUSTER_ID = "spec.clusterID"

SELECTABLE_FIELDS: Mapping[str, SelectField] = {
    CLUSTER_ID: _text_at("spec", "clusterID"),
    "status.version.kubernetes": _text_at("status", "version", "kubernetes"),
    "status.state": _text_at("status", "state"),
}
