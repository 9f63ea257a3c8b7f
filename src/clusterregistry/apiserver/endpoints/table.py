"""Objects as rows of a table: what ``kubectl get`` prints.

A row's cells hardly ever change while ages do all the time, so the cells are kept with their object as JSON in
pieces, and an answer only fills in the ages. What a row brings along of its object is at hand anyway.
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
"""In the place of a time where there is to be no age at all: no time is as long ago."""

_MOST_TIMES = 1000
"""Times whose ages are at hand: to keep one for each of very many objects would take more time than it saves."""


def seconds_of(text: str) -> int | None:
    """An RFC 3339 time in seconds since 1970; None for what is no time."""
    try:
        return int(times.parse(text).timestamp())
    except ValueError:
        return None


class Ages(dict[int | None, bytes]):
    """The ages at one moment of times (seconds since 1970; None: of what is no time), as JSON.

    What stands behind all of them is a part of each. Many objects may be made in the same second, or each in one of its
    own: so there are more times than ages, which for what is days old are few.
    """

    def __init__(self, now: float, *, behind: bytes = b"") -> None:
        super().__init__({NONE: behind})
        self._now, self._behind = now, behind
        self._durations: dict[int, bytes] = {}

    def __missing__(self, time: int | None) -> bytes:
        found = self._written("<unknown>") if time is None else self._lasting(rounded(int(self._now - time)))
        if len(self) < _MOST_TIMES:
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
    """A duration as coarse as it can be without being worded otherwise."""
    if seconds < 10 * _MINUTE:
        return seconds
    return seconds - seconds % (_MINUTE if seconds < 8 * _HOUR else _HOUR if seconds < 8 * _DAY else _DAY)


def human_duration(seconds: int) -> str:
    """As kube-apiserver words durations in tables: one unit, or two where the second one still matters."""
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
    """An object's cells as JSON, kept with it in the place of its memo."""

    version: str
    """The version of the kind that the cells are of."""
    cells: bytes
    """The cells before the age, with all that stands before them from the comma on."""
    time: int | None
    """The time that the age counts from (seconds since 1970); None for what is no time."""
    behind: bytes
    """The cells behind the age: none where it comes last."""
    size: int
    """How many bytes all cells have but for that comma and the age, together with the metadata as it is stored."""


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
    """The rows of one answer: their ages are those of one moment, and so is what they come to in bytes.

    Rows and ages are looked up to measure them and kept until they are joined, two references a row: a good part of
    what a table costs is to look for these in memory. What is of one kind is done for many rows at once, in loops that
    do nothing else, which are the cheapest.
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
        """What is neither in the size of a row nor in its age."""
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
    """The row, which is kept with the object from now on."""
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
    """An object's cells as JSON: those before the age, the time that it counts from, those behind it."""
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
