"""Objects as rows of a table: what ``kubectl get`` prints.

A row's cells hardly ever change while ages do all the time, so the cells are kept with their object as JSON in
pieces, and an answer only fills in the ages. What a row brings along of its object is at hand anyway.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from clusterregistry.apis.meta import errors, field_errors
from clusterregistry.handlers.ages import age, seconds_of
from clusterregistry.handlers.items import Included, NoObjects, PartialObjects, objects
from clusterregistry.handlers.scope import Scope
from clusterregistry.registry.definitions import Column
from clusterregistry.registry.objects import memo_of
from clusterregistry.storage.interface import KeyValue

INCLUDE_POLICIES = ("", "None", "Metadata", "Object")


_BEFORE, _BEHIND = b',{"cells":[', b'],"object":'
_AGE = b"\0"
"""Stands for the age among the cells while a row is made: JSON never has it."""

_NO_AGE = -1 << 63
"""In the place of a time where an object has none: no time is as long ago."""


Row = tuple[str, int, bytes, int | None, bytes]
"""An object's cells as JSON, from the comma before the row up to the object that it brings along.

The version of the kind, how many bytes the cells have, those before the age, the time that the age counts from (seconds
since 1970; None for what is no time), those behind it. A plain tuple: there is one for each object, and those the
garbage collector need not look at.
"""


def include_policy(value: str) -> str:
    """The ``includeObject`` parameter. Raises 400."""
    if value not in INCLUDE_POLICIES:
        raise errors.bad_request(f"unrecognized includeObject value: {field_errors.shown(value)}")
    return value or "Metadata"


def column_definitions(columns: Sequence[Column]) -> bytes:
    definitions = [
        {
            "name": column.name,
            "type": column.type,
            "format": column.format,
            "description": column.description,
            "priority": column.priority,
        }
        for column in columns
    ]
    return orjson.dumps(definitions)


class Rows:
    """The rows of one answer: their ages are those of one moment, and so is what they come to in bytes."""

    def __init__(self, scope: Scope, *, include: str, version: str, now: float) -> None:
        self._scope = scope
        self._ages = _Ages(now)
        self._included = _included(scope, include=include, version=version)

    def join(self, items: Sequence[KeyValue]) -> bytes:
        ages, parts = self._ages, [b""]
        for row, included in zip(self._rows(items), self._included.parts(items), strict=True):
            _, _, before, time, behind = row
            parts += (before, ages[time], behind, *included, b"}")
        return b"".join(parts)

    def measure(self, items: Sequence[KeyValue]) -> int:
        rows, ages = self._rows(items), self._ages
        cells = sum([row[1] for row in rows]) + sum([len(ages[row[3]]) for row in rows])
        return cells + self._included.measure(items) + len(rows) * len(b"}")

    def _rows(self, items: Sequence[KeyValue]) -> list[Row]:
        kept: list[Row | None] = [(kv.memo or memo_of(kv)).row for kv in items]
        version = self._scope.version.name
        return [
            row if row is not None and row[0] == version else _make_row(self._scope, kv)
            for kv, row in zip(items, kept, strict=True)
        ]


class _Ages(dict[int | None, bytes]):
    """The ages of times at one moment, as JSON. Many objects of a list are made in the same second."""

    def __init__(self, now: float) -> None:
        super().__init__({_NO_AGE: b""})
        self._now = now

    def __missing__(self, time: int | None) -> bytes:
        made = self[time] = b'"%b"' % age(time, self._now).encode()
        return made


def _included(scope: Scope, *, include: str, version: str) -> Included:
    if include == "Metadata":
        return PartialObjects(scope, version=version)
    return objects(scope) if include == "Object" else NoObjects()


def _make_row(scope: Scope, kv: KeyValue) -> Row:
    """The row, which is kept with the object from now on."""
    obj, cells = scope.object(kv), []
    time: int | None = _NO_AGE
    for column in scope.version.columns:
        value = column.cell(obj)
        if column.is_age and isinstance(value, str):
            time = seconds_of(value)
            cells.append(_AGE)
        else:
            cells.append(orjson.dumps(value))
    before, _, behind = (_BEFORE + b",".join(cells) + _BEHIND).partition(_AGE)
    # Most end alike, and need not do so each for itself.
    behind = _BEHIND if behind == _BEHIND else behind
    row: Row = (scope.version.name, len(before) - len(b",") + len(behind), before, time, behind)
    memo_of(kv).row = row
    return row


def table_head(list_metadata: dict[str, Any], version: str, columns: bytes) -> bytes:
    """A table up to its rows."""
    return (
        b'{"kind":"Table","apiVersion":"meta.k8s.io/%s","metadata":' % version.encode()
        + orjson.dumps(list_metadata)
        + b',"columnDefinitions":'
        + columns
        + b',"rows":['
    )


NO_COLUMNS = b"null"
TABLE_TAIL = b"]}"
