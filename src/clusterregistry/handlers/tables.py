"""Objects as rows of a table: what ``kubectl get`` prints.

A row's cells hardly ever change while ages do all the time, so the cells are kept with their object as JSON in
pieces, and an answer only fills in the ages. What a row brings along of its object is at hand anyway.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import orjson

from clusterregistry.apis.meta import errors, field_errors
from clusterregistry.handlers.ages import age, seconds_of
from clusterregistry.handlers.items import Included, NoObjects, PartialObjects, objects
from clusterregistry.handlers.scope import Scope
from clusterregistry.registry.definitions import Column, Version
from clusterregistry.registry.objects import memo_of
from clusterregistry.storage.interface import KeyValue

INCLUDE_POLICIES = ("", "None", "Metadata", "Object")


class Row(NamedTuple):
    """The cells of an object in a version, as JSON."""

    version: Version
    cells: bytes
    """Those up to the first age."""
    aged: tuple[tuple[int | None, bytes], ...]
    """The time that each age counts from, and the cells behind it."""
    size: int
    """Bytes of all cells but the ages."""


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
        scope, ages, included = self._scope, self._ages, self._included
        parts: list[bytes] = []
        for kv in items:
            row = _row(scope, kv)
            parts += (b',{"cells":', row.cells)
            for time, cells in row.aged:
                parts += (ages[time], cells)
            parts += (b',"object":', *included.parts(kv), b"}")
        return b"".join(parts)

    def measure(self, items: Sequence[KeyValue]) -> int:
        rows, ages = [_row(self._scope, kv) for kv in items], self._ages
        cells = sum([row.size for row in rows]) + sum([len(ages[time]) for row in rows for time, _ in row.aged])
        return cells + len(rows) * len(b'{"cells":,"object":}') + self._included.measure(items)


class _Ages(dict[int | None, bytes]):
    """The ages of times at one moment, as JSON. Many objects of a list are made in the same second."""

    def __init__(self, now: float) -> None:
        self._now = now

    def __missing__(self, time: int | None) -> bytes:
        made = self[time] = b'"%b"' % age(time, self._now).encode()
        return made


def _included(scope: Scope, *, include: str, version: str) -> Included:
    if include == "Metadata":
        return PartialObjects(scope, version=version)
    return objects(scope) if include == "Object" else NoObjects()


def _row(scope: Scope, kv: KeyValue) -> Row:
    memo = memo_of(kv)
    row: Row | None = memo.row
    if row is None or row.version is not scope.version:
        row = memo.row = _make_row(scope, kv)
    return row


def _make_row(scope: Scope, kv: KeyValue) -> Row:
    obj = scope.object(kv)
    pieces, times = [b"["], []
    for index, column in enumerate(scope.version.columns):
        pieces[-1] += b"," if index else b""
        value = column.cell(obj)
        if column.is_age and isinstance(value, str):
            times.append(seconds_of(value))
            pieces.append(b"")
        else:
            pieces[-1] += orjson.dumps(value)
    pieces[-1] += b"]"
    return Row(scope.version, pieces[0], tuple(zip(times, pieces[1:], strict=True)), sum(map(len, pieces)))


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
