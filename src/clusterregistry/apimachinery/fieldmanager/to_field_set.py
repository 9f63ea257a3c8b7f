"""The field set of an applied configuration: the fields that it claims for its manager.

Each schema is compiled to functions, once, as in ``compare``. A function returns the fields below a value, None for a
value that is claimed as a whole. A value of a wrong type other than text claims nothing.
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
    """The leaves of a configuration, and its items of lists and maps; of a struct only the fields in it."""
    return compile_to_field_set(schema)(configuration)


def compile_to_field_set(schema: schemas.Object, hidden: Names | None = None) -> Owned:
    """Compiles a schema to a function of a configuration. Fields in ``hidden`` are skipped."""
    claimed = _in_struct(schema, hidden or {})
    return lambda configuration: claimed(configuration) or {}


def _compiled(schema: Schema, hidden: Names) -> _Below | None:
    """None for values that are claimed as a whole."""
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
            # Duplicates are claimed without the fields below them.
            found = {element: same[0] if len(same) == 1 else None for element, same in grouped(schema, value).items()}
        return {element: _member(below, item) for element, item in found.items()}

    return claimed


def _member(below: _Below | None, part: Any) -> Fields:
    """The node of a claimed item, with the fields below it."""
    return LEAF if below is None else as_member(below(part) or {})
