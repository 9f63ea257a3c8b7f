"""Columns that kinds have in common, and cells that read a field."""

from __future__ import annotations

from typing import Any

from clusterregistry.apiserver.registry.resource import Cell, Column


def field_cell(*path: str) -> Cell:
    """A cell that reads the value at a path of keys."""

    def cell(obj: dict[str, Any]) -> Any:
        value: Any = obj
        try:
            for key in path:
                value = value[key]
        except (KeyError, TypeError):  # there is nothing, or something else than an object on the way
            return None
        return value

    return cell


def condition_cell(condition_type: str) -> Cell:
    """A cell that reads the status of the first condition of a type."""
    conditions = field_cell("status", "conditions")

    def cell(obj: dict[str, Any]) -> Any:
        for condition in conditions(obj) or ():
            if isinstance(condition, dict) and condition.get("type") == condition_type:
                return condition.get("status")
        return None

    return cell


def name_column(description: str) -> Column:
    """The name, which comes first, as in kube-apiserver."""
    cell = field_cell("metadata", "name")
    return Column(name="Name", type="string", format="name", cell=cell, description=description)


def age_column(description: str) -> Column:
    cell = field_cell("metadata", "creationTimestamp")
    return Column(name="Age", type="date", is_age=True, cell=cell, description=description)
