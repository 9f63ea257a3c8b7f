"""What changed from one object to another, as sets of fields."""

from __future__ import annotations

from typing import Any, NamedTuple

from clusterregistry.apis.meta import schemas
from clusterregistry.apis.meta.schemas import Array, Schema
from clusterregistry.apply.field_sets import LEAF, SELF, Fields, is_atomic
from clusterregistry.apply.items import grouped

_ABSENT: Any = object()


class Comparison(NamedTuple):
    """``gained`` are the fields that the new object has anew or with another value, ``removed`` those it lacks."""

    gained: Fields
    removed: Fields


NO_CHANGE = Comparison({}, {})


def compare(schema: schemas.Object, old: dict[str, Any], new: dict[str, Any]) -> Comparison:
    """Compares two objects of one schema. Parts that are equal are not looked into."""
    if old is new or old == new:
        return NO_CHANGE
    changes = Comparison({}, {})
    _maps(schema, old, new, changes)
    return changes


def _maps(schema: Schema, old: dict[str, Any], new: dict[str, Any], changes: Comparison) -> None:
    for name, after in new.items():
        before = old.get(name, _ABSENT)
        if before is not after and before != after:
            _differing(_field(schema, name), "f:" + name, before, after, changes)
    for name, before in old.items():
        if name not in new:
            _differing(_field(schema, name), "f:" + name, before, _ABSENT, changes)


def _field(schema: Schema, name: str) -> Schema | None:
    return schema.fields.get(name) if type(schema) is schemas.Object else getattr(schema, "values", None)


def _differing(schema: Schema | None, element: str, before: Any, after: Any, changes: Comparison) -> None:
    """Records what differs between two values that are not equal, one of which may be absent."""
    if before is _ABSENT:
        changes.gained[element] = everything(schema, after)
    elif after is _ABSENT:
        changes.removed[element] = everything(schema, before)
    elif _has_parts(schema, before) or _has_parts(schema, after):
        inner = Comparison({}, {})
        if type(schema) is Array:
            _lists(schema, before, after, inner)
        else:
            _maps(schema, _dict(before), _dict(after), inner)  # type: ignore[arg-type]  # _has_parts: it is a schema
        if inner.gained:
            changes.gained[element] = inner.gained
        if inner.removed:
            changes.removed[element] = inner.removed
    else:
        changes.gained[element] = LEAF


def _dict(value: Any) -> dict[str, Any]:
    return value if type(value) is dict else {}


def _has_parts(schema: Schema | None, value: Any) -> bool:
    """Whether fields below the value are owned one by one. Of what is empty, the whole is owned."""
    if not value or is_atomic(schema):
        return False
    if type(schema) is Array:
        return type(value) is list
    return type(value) is dict and type(schema) in (schemas.Object, schemas.Map)


def _lists(schema: Array, before: Any, after: Any, changes: Comparison) -> None:
    old, new = grouped(schema, before), grouped(schema, after)
    for element in old | new:
        _same_items(schema, element, old.get(element, []), new.get(element, []), changes)


def _same_items(schema: Array, element: str, old: list[Any], new: list[Any], changes: Comparison) -> None:
    """Items with one identity. Duplicates are owned as a whole, without the fields below them."""
    if len(old) <= 1 and len(new) <= 1:
        before, after = (old or [_ABSENT])[0], (new or [_ABSENT])[0]
        if before != after:
            _differing(schema.items, element, before, after, changes)
        return
    if len(old) == 1:
        changes.removed[element] = everything(schema.items, old[0])
    elif len(new) == 1:
        changes.gained[element] = everything(schema.items, new[0])
    if len(new) > 1 and new != old:
        changes.gained[element] = LEAF
    elif len(old) > 1 and len(new) <= 1:
        changes.removed[element] = LEAF


def everything(schema: Schema | None, value: Any) -> Fields:
    """The node of a value with all its parts: what comes with it and goes with it, itself included."""
    if not _has_parts(schema, value):
        return LEAF
    node: Fields = {SELF: LEAF}
    if type(schema) is Array:
        for element, same in grouped(schema, value).items():
            node[element] = everything(schema.items, same[0]) if len(same) == 1 else LEAF
    else:
        for name, part in value.items():
            node["f:" + name] = everything(_field(schema, name), part)  # type: ignore[arg-type]  # as above
    return node
