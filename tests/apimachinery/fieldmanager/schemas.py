"""A schema with every kind of value, and what the tests of this package build from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from clusterregistry.apimachinery.fieldmanager.field_manager import FieldManager, View
from clusterregistry.apimachinery.meta.object_meta_schema import whole_object
from clusterregistry.apimachinery.schema.schemas import (
    Array,
    Boolean,
    Integer,
    IntOrString,
    Map,
    Object,
    Schema,
    String,
)

API_VERSION = "example.com/v1"
KIND = "Thing"
MAIN_RESETS = frozenset({"status"})
STATUS_RESETS = frozenset({"spec", "metadata"})

ITEM = Object(
    fields={
        "name": String(),
        "value": String(),
        "tags": Array(items=String(), list_type="set"),
        "inner": Object(fields={"a": String(), "b": String()}),
    }
)
PORT = Object(fields={"port": Integer(), "protocol": String(default="TCP"), "note": String()})
SPEC: dict[str, Schema] = {
    "text": String(),
    "number": Integer(),
    "flag": Boolean(),
    "either": IntOrString(),
    "when": String(format="date-time"),
    "struct": Object(fields={"a": String(), "b": String(), "deep": Object(fields={"c": String()})}),
    "atomicStruct": Object(atomic=True, fields={"a": String(), "b": String()}),
    "map": Map(values=String()),
    "atomicMap": Map(values=String(), atomic=True),
    "structs": Map(values=Object(fields={"a": String(), "b": String()})),
    "list": Array(items=String()),
    "listOfStructs": Array(items=Object(fields={"a": String()})),
    "set": Array(items=String(), list_type="set"),
    "numbers": Array(items=Integer(), list_type="set"),
    "items": Array(items=ITEM, list_type="map", map_keys=("name",)),
    "ports": Array(items=PORT, list_type="map", map_keys=("port", "protocol")),
}
STATUS = Object(
    fields={
        "phase": String(),
        "conditions": Array(
            items=Object(fields={"type": String(), "status": String()}), list_type="map", map_keys=("type",)
        ),
    }
)
SPEC_SCHEMA = Object(fields=SPEC)
SCHEMA = whole_object(Object(fields={"spec": SPEC_SCHEMA, "status": STATUS}))


def same(obj: dict[str, Any]) -> dict[str, Any]:
    return obj


VIEWS: Mapping[str, View] = {API_VERSION: View(schema=SCHEMA, to_storage=same, from_storage=same)}


class Clock:
    """Tells the time that it was set to, in minutes after midnight."""

    def __init__(self) -> None:
        self.minute = 0

    def __call__(self) -> str:
        return f"2024-01-01T{self.minute // 60:02}:{self.minute % 60:02}:00Z"

    def advance(self) -> None:
        self.minute += 1


def field_manager(
    clock: Clock,
    *,
    subresource: str = "",
    views: Mapping[str, View] = VIEWS,
    api_version: str = API_VERSION,
) -> FieldManager:
    return FieldManager(
        views,
        api_version=api_version,
        kind=KIND,
        subresource=subresource,
        reset_fields=STATUS_RESETS if subresource else MAIN_RESETS,
        now=clock,
    )


def thing(spec: Any = None, *, api_version: str = API_VERSION, status: Any = None, **metadata: Any) -> dict[str, Any]:
    """An object or a configuration of one; what is None is left out."""
    obj: dict[str, Any] = {"apiVersion": api_version, "kind": KIND, "metadata": {"name": "thing", **metadata}}
    parts = {"spec": spec, "status": status}
    return obj | {name: part for name, part in parts.items() if part is not None}


def without_managed_fields(obj: dict[str, Any]) -> dict[str, Any]:
    return {**obj, "metadata": {name: each for name, each in obj["metadata"].items() if name != "managedFields"}}


def entries(obj: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = obj["metadata"].get("managedFields", [])
    return found


def entry_of(obj: dict[str, Any], manager: str, operation: str = "Apply") -> dict[str, Any]:
    """The one entry of a manager."""
    (found,) = [each for each in entries(obj) if (each["manager"], each["operation"]) == (manager, operation)]
    return found


def fields_of(obj: dict[str, Any], manager: str, operation: str = "Apply") -> dict[str, Any]:
    """What a manager owns; nothing when it has no entry."""
    found = [each for each in entries(obj) if (each["manager"], each["operation"]) == (manager, operation)]
    return found[0]["fieldsV1"] if found else {}


def managers(obj: dict[str, Any]) -> list[tuple[str, str]]:
    return [(each["manager"], each["operation"]) for each in entries(obj)]
