"""Validates what the schema of a v1beta1 Cluster cannot express: coordinates, and conditions as those of meta/v1.

Addresses and certificates are those of v1alpha1. Every function takes any JSON value. Values of a wrong type are
skipped: the schema reports them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from clusterregistry.api.clusterregistry.v1beta1.types import CONDITION
from clusterregistry.apimachinery.meta import field_errors
from clusterregistry.apimachinery.meta.field_errors import FieldError

_DECIMAL = re.compile(r"[+-]?[0-9]{1,3}(?:\.[0-9]{1,20})?")
_COORDINATES = {"latitude": 90, "longitude": 180}
_PREFIX = r"(?:[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*/)?"
_TYPE = re.compile(_PREFIX + r"(?:[A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_REASON = re.compile(r"[A-Za-z](?:[A-Za-z0-9_,:]*[A-Za-z0-9_])?")
"""As meta/v1 has them."""
_LONGEST = 1024
"""The schema refuses longer ones."""


def validate_location(location: Any, path: str = "spec.location") -> list[FieldError]:
    """The errors in the coordinates."""
    given = location if isinstance(location, dict) else {}
    errors = []
    for name, limit in _COORDINATES.items():
        value = given.get(name)
        if isinstance(value, int | float | str) and not isinstance(value, bool) and not _is_within(value, limit):
            detail = f"must be a decimal number from -{limit} to {limit}"
            errors.append(field_errors.invalid(f"{path}.{name}", value, detail))
    return errors


def _is_within(value: float | str, limit: int) -> bool:
    if isinstance(value, str):
        return _DECIMAL.fullmatch(value) is not None and abs(float(value)) <= limit
    return -limit <= value <= limit


def validate_conditions(conditions: Any, before: Any = None) -> list[FieldError]:
    """The errors in conditions that are not among those before: conditions of v1alpha1 may have less than meta/v1's."""
    known = {type_of(each): each for each in _items(before)}
    errors: list[FieldError] = []
    for index, condition in enumerate(_items(conditions)):
        if condition != known.get(type_of(condition)):
            errors += _condition_errors(condition, f"status.conditions[{index}]")
    return errors


def type_of(condition: dict[str, Any]) -> str:
    """The type of a condition; empty if it is not a text."""
    found = condition.get("type")
    return found if isinstance(found, str) else ""


def _items(conditions: Any) -> list[dict[str, Any]]:
    return [each if isinstance(each, dict) else {} for each in conditions] if isinstance(conditions, list) else []


def _condition_errors(condition: dict[str, Any], path: str) -> Iterator[FieldError]:
    for name in CONDITION.required:
        if name not in condition and name not in ("type", "status"):  # the schema reports those
            yield field_errors.required(f"{path}.{name}")
    for name, pattern, detail in (
        ("type", _TYPE, "must be a name such as Ready or example.com/Healthy"),
        ("reason", _REASON, "must be one word in CamelCase"),
    ):
        value = condition.get(name)
        if isinstance(value, str) and len(value) <= _LONGEST and pattern.fullmatch(value) is None:
            yield field_errors.invalid(f"{path}.{name}", value, detail)
