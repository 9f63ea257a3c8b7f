"""Encodes objects as rows of a table: what ``kubectl get`` prints.

The cells of a row rarely change, its age changes all the time. So the cells are cached with their object as JSON, and a
response only fills in the ages.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from clusterregistry.apimachinery.meta import errors, field_errors, times
from clusterregistry.apiserver.endpoints.list_encoding import Included, NoObjects, PartialObjects, objects
from clusterregistry.apiserver.endpoints.request_scope import RequestScope
from clusterregistry.apiserver.registry.resource import Column, Version
from clusterregistry.apiserver.storage.interface import KeyValue
from clusterregistry.apiserver.storage.object_bytes import Memo, Object, decoded_to_read, memo_of, metadata_size

_MINUTE, _HOUR, _DAY = 60, 3600, 24 * 3600
_YEAR = 365 * _DAY

NONE = -1 << 63
"""In place of a time, for no age at all: no time is as long ago."""

_MAX_TIMES = 1000
"""Times whose ages are cached: one for each of very many objects would take more time than it saves."""


def seconds_of(text: str) -> int | None:
    """An RFC 3339 time in seconds since 1970; None for an invalid one."""
    try:
        return int(times.parse(text).timestamp())
    except ValueError:
        return None


class Ages(dict[int | None, bytes]):
    """Ages as JSON, by times (seconds since 1970; None: an invalid time), at one moment.

    ``behind`` is appended to each. There are more times than ages: for objects that are days old, ages are few.
    """

    def __init__(self, now: float, *, behind: bytes = b"") -> None:
        super().__init__({NONE: behind})
        self._now, self._behind = now, behind
        self._durations: dict[int, bytes] = {}

    def __missing__(self, time: int | None) -> bytes:
        found = self._written("<unknown>") if time is None else self._lasting(rounded(int(self._now - time)))
        if len(self) < _MAX_TIMES:
            self[time] = found
        return found

    def _lasting(self, seconds: int) -> bytes:
        found = self._durations.get(seconds)
        if found is None:
            found = self._durations[seconds] = self._written(human_duration(seconds))
        return found

    def _written(self, age: str) -> bytes:
        return b'"%b"%b' % (age.encode(), self._behind)


def rounded(seconds: int) -> int:
    """A duration rounded to what ``human_duration`` shows of it."""
    if seconds < 10 * _MINUTE:
        return seconds
    return seconds - seconds % (_MINUTE if seconds < 8 * _HOUR else _HOUR if seconds < 8 * _DAY else _DAY)


def human_duration(seconds: int) -> str:
    """A duration as kube-apiserver shows it in tables: one unit, or two where the second one still matters."""
    if seconds < 0:
        return "<invalid>" if seconds < -1 else "0s"
    if seconds < 2 * _MINUTE:
        return f"{seconds}s"
    for limit, unit, letter, smaller, small_letter in (
        (10 * _MINUTE, _MINUTE, "m", 1, "s"),
        (3 * _HOUR, _MINUTE, "m", 0, ""),
        (8 * _HOUR, _HOUR, "h", _MINUTE, "m"),
        (2 * _DAY, _HOUR, "h", 0, ""),
        (8 * _DAY, _DAY, "d", _HOUR, "h"),
        (2 * _YEAR, _DAY, "d", 0, ""),
        (8 * _YEAR, _YEAR, "y", _DAY, "d"),
    ):
        if seconds < limit:
            rest = seconds % unit // smaller if smaller else 0
            return f"{seconds // unit}{letter}" + (f"{rest}{small_letter}" if rest else "")
    return f"{seconds // _YEAR}y"


INCLUDE_POLICIES = ("", "None", "Metadata", "Object")

_BEFORE, _BEHIND, _END = b',{"cells":[', b'],"object":', b"}"


class Row(Memo, gc=False, kw_only=True):
    """The cells of an object as JSON, cached with the object in place of its memo."""

    version: str
    """The version of the kind that the cells show."""
    cells: bytes
    """The cells before the age, with all bytes before them from the comma on."""
    time: int | None
    """The time from which the age counts (seconds since 1970); None for an invalid one."""
    behind: bytes
    """The cells behind the age; empty if the age is the last cell."""
    size: int
    """Bytes of all cells, without the first comma and the age, plus those of the stored metadata."""


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
    """The rows of one response. All ages are those of one moment, and so is the size.

    Rows and ages are looked up to measure them and kept until they are joined, two references a row: the lookup is a
    good part of what a table costs. Each loop does one thing for many rows, which is the cheapest.
    """

    def __init__(self, scope: RequestScope, *, include: str, version: str, now: float) -> None:
        self._scope = scope
        self._included = _included(scope, include=include, version=version)
        self._includes_stored_metadata = include == "Metadata" and scope.is_stored_version
        self._age_is_last = scope.version.age_at in (None, len(scope.version.columns) - 1)
        self._behind = _BEHIND + self._included.before
        self._closing = self._included.behind + _END
        self._ages = Ages(now, behind=self._behind if self._age_is_last else b"")
        self._rows: list[Row] = []
        self._ages_of_rows: list[bytes] = []

    def measure(self, items: Sequence[KeyValue]) -> int:
        rows, ages = self._found(items), self._ages
        ages_of_rows = [ages[row.time] for row in rows]
        self._rows += rows
        self._ages_of_rows += ages_of_rows
        return sum([row.size for row in rows]) + sum(map(len, ages_of_rows)) + self._size_of_the_rest(items)

    def _found(self, items: Sequence[KeyValue]) -> list[Row]:
        scope, version = self._scope, self._scope.version.name
        return [
            row if type(row) is Row and row.version == version else _make_row(scope, kv)
            for kv in items
            for row in (kv.memo,)
        ]

    def _size_of_the_rest(self, items: Sequence[KeyValue]) -> int:
        """Bytes that are neither in the size of a row nor in its age."""
        around = len(items) * len(self._closing if self._age_is_last else self._behind + self._closing)
        if self._includes_stored_metadata:
            return around
        return around + sum(map(len, self._included.parts(items))) - metadata_size(items)

    def join(self, items: Sequence[KeyValue], start: int, end: int) -> bytes:
        rows, ages = self._rows[start:end], self._ages_of_rows[start:end]
        if not self._age_is_last:
            ages = [age + row.behind + self._behind for row, age in zip(rows, ages, strict=True)]
        parts = [self._closing] * (4 * len(rows))
        parts[0::4] = [row.cells for row in rows]
        parts[1::4] = ages
        parts[2::4] = self._included.parts(items[start:end])
        return b"".join(parts)


def _included(scope: RequestScope, *, include: str, version: str) -> Included:
    if include == "Metadata":
        return PartialObjects(scope, version=version)
    return objects(scope) if include == "Object" else NoObjects()


def _make_row(scope: RequestScope, kv: KeyValue) -> Row:
    """Makes a row and caches it with the object."""
    obj = decoded_to_read(kv)
    if not scope.is_stored_version:
        obj = scope.version.from_storage(obj)
    before, time, behind = _cells(scope.version, obj)
    memo, cells = memo_of(kv), _BEFORE + before
    row = kv.memo = Row(
        memo.start,
        memo.end,
        memo.labels,
        version=scope.version.name,
        cells=cells,
        time=time,
        behind=behind,
        size=len(cells) - len(b",") + len(behind) + memo.end - memo.start,
    )
    return row


def _cells(version: Version, obj: Object) -> tuple[bytes, int | None, bytes]:
    """The cells of an object as JSON: those before the age, the time of the age, and those behind it."""
    values, at = [column.cell(obj) for column in version.columns], version.age_at
    if at is None or not isinstance(values[at], str):
        return _joined(values), NONE, b""
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
