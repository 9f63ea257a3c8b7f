"""What ``kubectl get clustersets`` prints."""

from __future__ import annotations

from typing import Any

from clusterregistry.apimachinery.meta.label_selector_objects import label_selector
from clusterregistry.apiserver.registry.columns import age_column, field_cell, name_column
from clusterregistry.apiserver.registry.resource import Column

_EVERYTHING = "<all>"

_selector = field_cell("spec", "selector")


def _selector_text(cluster_set: dict[str, Any]) -> str | None:
    """The selector as ``kubectl get -l`` takes it; that of all clusters has no text of its own."""
    selector = _selector(cluster_set)
    return None if selector is None else str(label_selector(selector)) or _EVERYTHING


COLUMNS = (
    name_column("The name of the set. It cannot be changed."),
    Column(
        name="Clusters", type="integer", cell=field_cell("status", "clusters"), description="The number of members."
    ),
    age_column("When the set was created."),
    Column(
        name="Selector",
        type="string",
        priority=1,
        cell=_selector_text,
        description="The clusters that are members by their labels.",
    ),
)
