"""Objects as rows of a table: what ``kubectl get`` prints.

A row's cells hardly ever change while ages do all the time, so a row is kept with its object as JSON
in pieces, and an answer only fills in the ages.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from clusterregistry.apis.meta import errors, field_errors
from clusterregistry.handlers.ages import age
from clusterregistry.handlers.scope import Scope
from clusterregistry.registry.definitions import Column
from clusterregistry.registry.objects import memo_of
from clusterregistry.storage.interface import KeyValue

INCLUDE_POLICIES = ("", "None", "Metadata", "Object")
Row = tuple[tuple[bytes, ...], tuple[str, ...], bytes]
"""The cells' JSON around the ages, the times the ages count from, and the object's metadata."""


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


def row_bytes(scope: Scope, kv: KeyValue, *, include: str, version: str, now: float) -> bytes:
    """One row as JSON."""
    pieces, times, metadata = _row(scope, kv)
    cells = pieces[0] + b"".join(
        orjson.dumps(age(time, now)) + piece for time, piece in zip(times, pieces[1:], strict=True)
    )
    return (
        b'{"cells":' + cells + b',"object":' + _included(scope, kv, metadata, include=include, version=version) + b"}"
    )


def _included(scope: Scope, kv: KeyValue, metadata: bytes, *, include: str, version: str) -> bytes:
    if include == "Metadata":
        return partial_metadata(metadata, version)
    return scope.object_bytes(kv) if include == "Object" else b"null"


def partial_metadata(metadata: bytes, version: str) -> bytes:
    """A PartialObjectMetadata around encoded metadata."""
    head = b'{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/%s","metadata":' % version.encode()
    return head + metadata + b"}"


def metadata_bytes(scope: Scope, kv: KeyValue) -> bytes:
    return orjson.dumps(scope.object(kv)["metadata"])


def _row(scope: Scope, kv: KeyValue) -> Row:
    memo = memo_of(kv)
    kept: tuple[str, int, Row] | None = memo.row
    # A memo outlives its revision in one case: a DELETED event shares it under a newer revision.
    if kept is None or kept[:2] != (scope.version.name, kv.revision):
        memo.row = kept = (scope.version.name, kv.revision, _make_row(scope, kv))
    return kept[2]


def _make_row(scope: Scope, kv: KeyValue) -> Row:
    obj = scope.object(kv)
    pieces, times, text = [], [], b"["
    for index, column in enumerate(scope.version.columns):
        text += b"," if index else b""
        value = column.cell(obj)
        if column.is_age and isinstance(value, str):
            pieces.append(text)
            times.append(value)
            text = b""
        else:
            text += orjson.dumps(value)
    pieces.append(text + b"]")
    return tuple(pieces), tuple(times), orjson.dumps(obj["metadata"])


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
