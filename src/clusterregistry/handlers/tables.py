"""Objects as rows of a table: what ``kubectl get`` prints.

A row's cells hardly ever change while ages do all the time, so the cells are kept with their object as JSON in
pieces, and an answer only fills in the ages. What a row brings along of its object is at hand anyway.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any

import orjson

from clusterregistry.apis.meta import errors, field_errors
from clusterregistry.handlers.ages import age, seconds_of
from clusterregistry.handlers.items import Included, NoObjects, PartialObjects, objects
from clusterregistry.handlers.scope import Scope
from clusterregistry.registry.definitions import Column, Version
from clusterregistry.registry.objects import Object, decoded_to_read, memo_of
from clusterregistry.storage.interface import KeyValue

INCLUDE_POLICIES = ("", "None", "Metadata", "Object")


_BEFORE, _BEHIND, _END = b',{"cells":[', b'],"object":', b"}"

_NO_AGE = -1 << 63
"""In the place of a time where an object has none: no time is as long ago."""


Row = tuple[str, int, bytes, int | None, bytes]
"""An object's cells as JSON, with all that stands before them from the comma on.

The version of the kind, how many bytes it has without that comma and the age, those before the age, the time that the
age counts from (seconds since 1970; None for what is no time), those behind it: none where the age comes last. A plain
tuple: there is one for each object, and those the garbage collector need not look at.
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


_size_of, _start_of, _time_of = itemgetter(1), itemgetter(2), itemgetter(3)


class Rows:
    """The rows of one answer: their ages are those of one moment, and so is what they come to in bytes.

    What is of one kind is put in place for all rows at once, without a loop of ours, which would be a quarter of all
    operations of a table.
    """

    def __init__(self, scope: Scope, *, include: str, version: str, now: float) -> None:
        self._scope = scope
        self._included = _included(scope, include=include, version=version)
        self._behind = _BEHIND + self._included.before
        self._closing = self._included.behind + _END
        self._ages = _Ages(now)
        self._endings = _Endings(self._ages, self._behind)

    def join(self, items: Sequence[KeyValue]) -> bytes:
        rows = self._rows(items)
        parts = [self._closing] * (4 * len(rows))
        parts[0::4] = map(_start_of, rows)
        parts[1::4] = self._middles(rows)
        parts[2::4] = self._included.parts(items)
        return b"".join(parts)

    def _middles(self, rows: Sequence[Row]) -> Iterable[bytes]:
        """What stands between the cells before the age and the object, for each row."""
        version = self._scope.version
        if version.age_at in (None, len(version.columns) - 1):
            return map(self._endings.__getitem__, map(_time_of, rows))
        return [self._ages[time] + behind + self._behind for _, _, _, time, behind in rows]

    def measure(self, items: Sequence[KeyValue]) -> int:
        rows = self._rows(items)
        ages = map(self._ages.__getitem__, map(_time_of, rows))
        cells: int = sum(map(_size_of, rows)) + sum(map(len, ages))
        return cells + self._included.measure(items) + len(items) * len(_BEHIND + _END)

    def _rows(self, items: Sequence[KeyValue]) -> list[Row]:
        scope, version = self._scope, self._scope.version.name
        return [
            row if (row := (kv.memo or memo_of(kv)).row) and row[0] == version else _make_row(scope, kv) for kv in items
        ]


class _Ages(dict[int | None, bytes]):
    """The ages of times at one moment, as JSON. Many objects of a list are made in the same second."""

    def __init__(self, now: float) -> None:
        super().__init__({_NO_AGE: b""})
        self._now = now

    def __missing__(self, time: int | None) -> bytes:
        made = self[time] = b'"%b"' % age(time, self._now).encode()
        return made


class _Endings(dict[int | None, bytes]):
    """The ages with what stands behind the cells."""

    def __init__(self, ages: _Ages, behind: bytes) -> None:
        self._ages, self._behind = ages, behind

    def __missing__(self, time: int | None) -> bytes:
        made = self[time] = self._ages[time] + self._behind
        return made


def _included(scope: Scope, *, include: str, version: str) -> Included:
    if include == "Metadata":
        return PartialObjects(scope, version=version)
    return objects(scope) if include == "Object" else NoObjects()


def _make_row(scope: Scope, kv: KeyValue) -> Row:
    """The row, which is kept with the object from now on."""
    obj = decoded_to_read(kv)
    if not scope.is_stored_version:
        obj = scope.version.from_storage(obj)
    before, time, behind = _cells(scope.version, obj)
    before = _BEFORE + before
    row: Row = (scope.version.name, len(before) - len(b",") + len(behind), before, time, behind)
    memo_of(kv).row = row
    return row


def _cells(version: Version, obj: Object) -> tuple[bytes, int | None, bytes]:
    """An object's cells as JSON: those before the age, the time that it counts from, those behind it."""
    values, at = [column.cell(obj) for column in version.columns], version.age_at
    if at is None or not isinstance(values[at], str):
        return _joined(values), _NO_AGE, b""
    before, behind = _joined(values[:at]), _joined(values[at + 1 :])
    return before and before + b",", seconds_of(values[at]), behind and b"," + behind


def _joined(values: Sequence[Any]) -> bytes:
    return orjson.dumps(values)[1:-1]


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
