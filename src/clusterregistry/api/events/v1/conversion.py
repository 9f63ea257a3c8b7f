"""Conversion between the Events of ``events.k8s.io`` and those of the core group, which loses nothing.

The two differ in the names of fields, and in which empty fields they write.
"""

from __future__ import annotations

from typing import Any

from clusterregistry.api.events import GROUP
from clusterregistry.api.events.v1 import VERSION

Object = dict[str, Any]

_CORE_NAMES = {
    "regarding": "involvedObject",
    "note": "message",
    "reportingController": "reportingComponent",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}
_NAMES = {core: name for name, core in _CORE_NAMES.items()}

FIELD_LABELS = {
    f"regarding.{name}": f"involvedObject.{name}"
    for name in ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
} | {"reportingController": "reportingComponent", "reason": "reason", "type": "type"}
"""The selectable fields of this version, each with its name in the core group."""


def to_core(event: Object) -> Object:
    """The event in version v1 of the core group."""
    obj = {_CORE_NAMES.get(name, name): value for name, value in event.items()}
    obj["apiVersion"] = "v1"
    for name in ("reportingComponent", "reportingInstance"):
        obj.setdefault(name, "")
    series = obj.get("series")
    if isinstance(series, dict) and series.get("count") == 0:
        obj["series"] = {name: value for name, value in series.items() if name != "count"}
    return obj


def from_core(event: Object) -> Object:
    """An event of the core group in this version."""
    obj = {_NAMES.get(name, name): value for name, value in event.items()}
    obj["apiVersion"] = f"{GROUP}/{VERSION}"
    for name in ("reportingController", "reportingInstance"):
        if not obj.get(name):
            obj.pop(name, None)
    series = obj.get("series")
    if isinstance(series, dict) and "count" not in series:
        obj["series"] = {"count": 0, **series}
    return obj
