"""The fields that an applied configuration claims.

Schemas are compiled to functions, once, as they are in ``comparing``: each takes a value and says what it claims below
itself, or None when it is claimed as a whole. What is of a wrong type claims nothing, but for text.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import filterfalse
from typing import Any

from clusterregistry.apimachinery.fieldmanager.field_set import LEAF, Fields, Names, as_member, is_atomic, whole_names
from clusterregistry.apimachinery.fieldmanager.path_element import FIELD, compile_by_element, grouped
from clusterregistry.apimachinery.schema import schemas
from clusterregistry.apimachinery.schema.schemas import Array, Schema

Owned = Callable[[dict[str, Any]], Fields]
_Below = Callable[[Any], Fields | None]

_FIELD_OF = FIELD.__add__


def to_field_set(schema: schemas.Object, configuration: dict[str, Any]) -> Fields:
    """Its leaves, and its items of lists and maps. A struct is not claimed, only what is in it."""
    return compile_to_field_set(schema)(configuration)


def compile_to_field_set(schema: schemas.Object, hidden: Names | None = None) -> Owned:
    """The same as a function of a configuration. Fields in ``hidden`` are passed over."""
    claimed = _in_struct(schema, hidden or {})
    return lambda configuration: claimed(configuration) or {}


def _compiled(schema: Schema, hidden: Names) -> _Below | None:
    """None where all values are claimed as a whole."""
    if is_atomic(schema):
        return None
    match schema:
        case schemas.Object():
            return _in_struct(schema, hidden)
        case schemas.Map(values=values):
            return _in_map(_compiled(values, {}))
        case Array():
            return _in_list(schema)
        case _:
            return None


def _in_struct(schema: schemas.Object, hidden: Names) -> _Below:
    whole = whole_names(hidden)
    compiled = {name: _compiled(field, hidden.get(name) or {}) for name, field in schema.fields.items()}
    fields_below = {name: below for name, below in compiled.items() if below and name not in whole}
    is_hidden = whole.__contains__

    def claimed(value: Any) -> Fields | None:
        if not value or type(value) is not dict:
            return {} if value and type(value) is not str else None
        fields: Fields = dict.fromkeys(map(_FIELD_OF, filterfalse(is_hidden, value)), LEAF)
        for name in fields_below.keys() & value.keys():
            inner = fields_below[name](value[name])
            if inner:
                fields[FIELD + name] = inner
            elif inner is not None:
                del fields[FIELD + name]
        return fields

    return claimed


def _in_map(below: _Below | None) -> _Below:
    def claimed(value: Any) -> Fields | None:
        if not value or type(value) is not dict:
            return {} if value and type(value) is not str else None
        if below is None:
            return dict.fromkeys(map(_FIELD_OF, value), LEAF)
        return {FIELD + name: _member(below, part) for name, part in value.items()}

    return claimed


def _in_list(schema: Array) -> _Below:
    below, by_element = _compiled(schema.items, {}), compile_by_element(schema)

    def claimed(value: Any) -> Fields | None:
        if type(value) is not list:
            return {} if value is not None and type(value) is not str else None
        found = by_element(value)
        if found is None:
            # Of duplicates nothing is claimed but what they are.
            found = {element: same[0] if len(same) == 1 else None for element, same in grouped(schema, value).items()}
        return {element: _member(below, item) for element, item in found.items()}

    return claimed


def _member(below: _Below | None, part: Any) -> Fields:
    """The node of what is claimed itself, with what is claimed below it."""
    return LEAF if below is None else as_member(below(part) or {})
