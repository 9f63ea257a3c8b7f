"""Encodes objects as rows of a table: what ``kubectl get`` prints.

The cells of a row rarely change, its age changes all the time. So the cells are cached with their object as JSON, and a
response only fills in the ages.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import orjson

from clusterregistry.apimachinery.meta import errors, field_errors, times
from clusterregistry.apimachinery.meta.duration import DAY, HOUR, MINUTE, human_duration
from clusterregistry.apiserver.endpoints.list_encoding import Included, NoObjects, PartialObjects, WholeObjects
from clusterregistry.apiserver.endpoints.request_scope import RequestScope
from clusterregistry.apiserver.registry.resource import Column, Version
from clusterregistry.apiserver.storage.interface import KeyValue
from clusterregistry.apiserver.storage.object_bytes import Memo, Object, decoded_to_read, memo_of, metadata_size

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

    def __init__(self, now: float, *, behind: bytes = b"", none: bytes = b"") -> None:
        """``none`` is written for no age at all."""
        super().__init__({NONE: none + behind})
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
    if seconds < 10 * MINUTE:
        return seconds
    return seconds - seconds % (MINUTE if seconds < 8 * HOUR else HOUR if seconds < 8 * DAY else DAY)


INCLUDE_POLICIES = ("", "None", "Metadata", "Object")

_BEFORE, _BEHIND, _END = b',{"cells":[', b'],"object":', b"}"


Earlier = tuple[int | None, bytes]
"""An age before the last one: its time, as that of ``Row``, and all bytes up to the next age."""


class Row(Memo, gc=False, kw_only=True):
    """The cells of an object as JSON, cached with the object in place of its memo."""

    cells: bytes
    """The cells before the first age, with all bytes before them from the comma on."""
    earlier: tuple[Earlier, ...] = ()
    """The ages before the last one; nearly always there are none."""
    time: int | None
    """The time from which the last age counts (seconds since 1970); None for an invalid one."""
    behind: bytes
    """The cells behind the last age; empty if that is the last cell."""
    size: int
    """Bytes of ``cells`` and ``behind``, without the first comma, plus those of the stored metadata."""


def include_policy(value: str, *, native: bool) -> str:
    """The ``includeObject`` parameter. Raises 400."""
    if value not in INCLUDE_POLICIES:
        if native:
            wrong = f"Invalid value: {field_errors.shown(value)}: must be 'Metadata', 'Object', 'None', or empty"
            raise errors.bad_request(f"Unable to convert to Table as requested: includeObject: {wrong}")
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
        self._includes_metadata = include == "Metadata"
        ages = scope.version.ages
        self._age_is_last = not ages or ages[-1] == len(scope.version.columns) - 1
        # Only a table with more than one age has heads: they are made again in each response.
        self._heads: list[bytes] | None = [] if len(ages) > 1 else None
        self._behind = _BEHIND + self._included.before
        self._closing = self._included.behind + _END
        self._ages = Ages(now, behind=self._behind if self._age_is_last else b"")
        self._earlier_ages = Ages(now, none=b"null")
        self._rows: list[Row] = []
        self._ages_of_rows: list[bytes] = []

    def measure(self, items: Sequence[KeyValue]) -> int:
        rows, ages = self._found(self._scope.in_version(items)), self._ages
        ages_of_rows = [ages[row.time] for row in rows]
        self._rows += rows
        self._ages_of_rows += ages_of_rows
        size = sum([row.size for row in rows]) + sum(map(len, ages_of_rows)) + self._size_of_the_rest(items)
        if self._heads is None:
            return size
        heads = [self._head(row) for row in rows]
        self._heads += heads
        return size + sum(map(len, heads)) - sum([len(row.cells) for row in rows])

    def _head(self, row: Row) -> bytes:
        """The cells before the last age."""
        ages = self._earlier_ages
        return row.cells + b"".join([ages[time] + following for time, following in row.earlier])

    def _found(self, items: Sequence[KeyValue]) -> list[Row]:
        version = self._scope.version
        return [row if type(row) is Row else _make_row(version, kv) for kv in items for row in (kv.memo,)]

    def _size_of_the_rest(self, items: Sequence[KeyValue]) -> int:
        """Bytes that are neither in the size of a row nor in its age."""
        around = len(items) * len(self._closing if self._age_is_last else self._behind + self._closing)
        if self._includes_metadata:
            return around
        return around + sum(map(len, self._included.parts(items))) - metadata_size(self._scope.in_version(items))

    def join(self, items: Sequence[KeyValue], start: int, end: int) -> bytes:
        rows, ages = self._rows[start:end], self._ages_of_rows[start:end]
        if not self._age_is_last:
            ages = [age + row.behind + self._behind for row, age in zip(rows, ages, strict=True)]
        parts = [self._closing] * (4 * len(rows))
        parts[0::4] = [row.cells for row in rows] if self._heads is None else self._heads[start:end]
        parts[1::4] = ages
        parts[2::4] = self._included.parts(items[start:end])
        return b"".join(parts)


def _included(scope: RequestScope, *, include: str, version: str) -> Included:
    if include == "Metadata":
        return PartialObjects(scope, version=version)
    return WholeObjects(scope) if include == "Object" else NoObjects()


def _make_row(version: Version, kv: KeyValue) -> Row:
    """Makes a row and caches it with the object, which is in that version."""
    before, earlier, (time, behind) = _cells(version, decoded_to_read(kv))
    memo, cells = memo_of(kv), _BEFORE + before
    row = kv.memo = Row(
        memo.start,
        memo.end,
        memo.labels,
        memo.api_version,
        memo.converted,
        cells=cells,
        earlier=earlier,
        time=time,
        behind=behind,
        size=len(cells) - len(b",") + len(behind) + memo.end - memo.start,
    )
    return row


def _cells(version: Version, obj: Object) -> tuple[bytes, tuple[Earlier, ...], tuple[int | None, bytes]]:
    """The cells of an object as JSON: those before the first age, all ages but the last, and the last age.

    Each age is its time and the bytes behind it. A last age without a value is a cell as others are.
    """
    values, (*earlier, last) = [column.cell(obj) for column in version.columns], version.ages or (len(version.columns),)
    has_last = last < len(values) and isinstance(values[last], str)
    ends = [*earlier, last if has_last else len(values)]
    before = _joined(values[: ends[0]])
    if before and ends[0] < len(values):
        before += b","
    behind = _joined(values[last + 1 :])
    return (
        before,
        tuple((_time(values[at]), _following(values, at + 1, end)) for at, end in pairwise(ends)) if earlier else (),
        (seconds_of(values[last]), behind and b"," + behind) if has_last else (NONE, b""),
    )


def _following(values: Sequence[Any], start: int, end: int) -> bytes:
    """The cells between an age and the next one, or the end."""
    cells = _joined(values[start:end])
    return (cells and b"," + cells) + (b"," if end < len(values) else b"")


def _time(value: Any) -> int | None:
    return seconds_of(value) if isinstance(value, str) else NONE


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
