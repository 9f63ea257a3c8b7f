"""What changed from one object to another, as sets of fields.

Schemas are compiled to functions, once: every write compares, and most of what it would ask a schema is always the
same. What has no parts that could be owned one by one needs no function at all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from clusterregistry.apis.meta import schemas
from clusterregistry.apis.meta.schemas import Array, Schema
from clusterregistry.apply.field_sets import LEAF, SELF, Fields, is_atomic
from clusterregistry.apply.items import grouped

_ABSENT: Any = object()

Names = Mapping[str, Any]
"""A tree of names of fields. What has no names below it is meant as a whole. Recursive, as ``Fields`` is."""


class Comparison(NamedTuple):
    """``gained`` are the fields that the new object has anew or with another value, ``removed`` those it lacks."""

    gained: Fields
    removed: Fields


NO_CHANGE = Comparison({}, {})

Compare = Callable[[dict[str, Any], dict[str, Any]], Comparison]


class _Parts(NamedTuple):
    """Values whose parts are owned one by one. Of one that is empty, or of another type, the whole is owned."""

    type: type
    everything: Callable[[Any], Fields]
    """The node of a value that is neither."""
    compare: Callable[[Any, Any, Comparison], None]
    """Records what differs between two values that are not equal. Either may be of another type."""


def compare(schema: schemas.Object, old: dict[str, Any], new: dict[str, Any]) -> Comparison:
    """Compares two objects of one schema. Parts that are equal are not looked into."""
    return NO_CHANGE if old is new else compile_compare(schema)(old, new)


def compile_compare(schema: schemas.Object, hidden: Names | None = None) -> Compare:
    """The same as a function of two objects, for one schema. Fields in ``hidden`` are passed over."""
    fields, whole = _fields_of(schema, hidden or {}), _whole(hidden or {})

    def compare_objects(old: dict[str, Any], new: dict[str, Any]) -> Comparison:
        if old is new:
            return NO_CHANGE
        changes = Comparison({}, {})
        _compare_maps(fields.get, whole, old, new, changes)
        return changes

    return compare_objects


def _compiled(schema: Schema, hidden: Names) -> _Parts | None:
    """None where nothing but the whole can be owned."""
    if is_atomic(schema):
        return None
    match schema:
        case schemas.Object():
            return _map_parts(_fields_of(schema, hidden).get, _whole(hidden))
        case schemas.Map(values=values):
            parts = _compiled(values, {})
            return _map_parts(lambda _name: parts, frozenset())
        case Array():
            return _list_parts(schema)
        case _:
            return None


def _fields_of(schema: schemas.Object, hidden: Names) -> dict[str, _Parts]:
    compiled = ((name, _compiled(field, hidden.get(name) or {})) for name, field in schema.fields.items())
    return {name: parts for name, parts in compiled if parts}


def _whole(hidden: Names) -> frozenset[str]:
    return frozenset(name for name, below in hidden.items() if not below)


def everything(parts: _Parts | None, value: Any) -> Fields:
    """The node of a value with all its parts: what comes with it and goes with it, itself included."""
    return parts.everything(value) if parts and value and type(value) is parts.type else LEAF


def _record(parts: _Parts | None, element: str, before: Any, after: Any, changes: Comparison) -> None:
    """Records what differs between two values that are not equal, one of which may be absent."""
    if before is _ABSENT:
        changes.gained[element] = everything(parts, after)
    elif after is _ABSENT:
        changes.removed[element] = everything(parts, before)
    elif parts and ((before and type(before) is parts.type) or (after and type(after) is parts.type)):
        inner = Comparison({}, {})
        parts.compare(before, after, inner)
        if inner.gained:
            changes.gained[element] = inner.gained
        if inner.removed:
            changes.removed[element] = inner.removed
    else:
        changes.gained[element] = LEAF


# Structs and maps

_PartsOf = Callable[[str], _Parts | None]


def _map_parts(parts_of: _PartsOf, hidden: frozenset[str]) -> _Parts:
    def all_of(value: dict[str, Any]) -> Fields:
        node: Fields = {SELF: LEAF}
        for name, part in value.items():
            if name not in hidden:
                parts = parts_of(name)
                node["f:" + name] = everything(parts, part) if parts else LEAF
        return node

    def compare_values(before: Any, after: Any, changes: Comparison) -> None:
        _compare_maps(parts_of, hidden, _dict(before), _dict(after), changes)

    return _Parts(dict, all_of, compare_values)


def _compare_maps(
    parts_of: _PartsOf, hidden: frozenset[str], old: dict[str, Any], new: dict[str, Any], changes: Comparison
) -> None:
    for name, after in new.items():
        before = old.get(name, _ABSENT)
        if before is not after and name not in hidden and before != after:
            _record(parts_of(name), "f:" + name, before, after, changes)
    if not old.keys() <= new.keys():  # rarely, and to know costs less than to look at each
        for name, before in old.items():
            if name not in new and name not in hidden:
                _record(parts_of(name), "f:" + name, before, _ABSENT, changes)


def _dict(value: Any) -> dict[str, Any]:
    return value if type(value) is dict else {}


# Lists whose items have an identity


def _list_parts(schema: Array) -> _Parts:
    items = _compiled(schema.items, {})

    def all_of(value: list[Any]) -> Fields:
        node: Fields = {SELF: LEAF}
        for element, same in grouped(schema, value).items():
            node[element] = everything(items, same[0]) if len(same) == 1 else LEAF
        return node

    def compare_values(before: Any, after: Any, changes: Comparison) -> None:
        old, new = grouped(schema, before), grouped(schema, after)
        for element in old | new:
            _compare_same(items, element, old.get(element, []), new.get(element, []), changes)

    return _Parts(list, all_of, compare_values)


def _compare_same(items: _Parts | None, element: str, old: list[Any], new: list[Any], changes: Comparison) -> None:
    """Items with one identity. Duplicates are owned as a whole, without the fields below them."""
    if len(old) <= 1 and len(new) <= 1:
        before, after = (old or [_ABSENT])[0], (new or [_ABSENT])[0]
        if before != after:
            _record(items, element, before, after, changes)
        return
    if len(old) == 1:
        changes.removed[element] = everything(items, old[0])
    elif len(new) == 1:
        changes.gained[element] = everything(items, new[0])
    if len(new) > 1 and new != old:
        changes.gained[element] = LEAF
    elif len(old) > 1 and len(new) <= 1:
        changes.removed[element] = LEAF
