"""The fields that an applied configuration claims."""

from __future__ import annotations

from typing import Any

from clusterregistry.apis.meta import schemas
from clusterregistry.apis.meta.schemas import Array, Schema
from clusterregistry.apply.field_sets import CONTAINERS, LEAF, Fields, as_member, is_atomic
from clusterregistry.apply.items import grouped


def owned(schema: schemas.Object, configuration: dict[str, Any]) -> Fields:
    """Its leaves, and its items of lists and maps. A struct is not claimed, only what is in it."""
    return _owned_in_map(schema, configuration)


def _owned_below(schema: Schema | None, value: Any) -> Fields | None:
    """What a value claims below itself; None when it is claimed as a whole."""
    if type(schema) not in CONTAINERS or is_atomic(schema):
        return None
    if type(schema) is Array:
        return _owned_in_list(schema, value)
    return _owned_in_map(schema, value) if value else None


def _owned_in_map(schema: Schema | None, value: Any) -> Fields:
    fields: Fields = {}
    for name, part in value.items() if type(value) is dict else ():
        if type(part) is str:  # as most leaves are
            fields["f:" + name] = LEAF
            continue
        declared = schema.fields.get(name) if type(schema) is schemas.Object else None
        inner = _owned_below(declared or getattr(schema, "values", None), part)
        if inner is None or part is None:
            fields["f:" + name] = LEAF
        elif declared is None:
            fields["f:" + name] = as_member(inner)
        elif inner:
            fields["f:" + name] = inner
    return fields


def _owned_in_list(schema: Array, value: Any) -> Fields:
    fields: Fields = {}
    for element, same in grouped(schema, value).items():
        inner = _owned_below(schema.items, same[0]) if len(same) == 1 else None
        fields[element] = as_member(inner or {})
    return fields
