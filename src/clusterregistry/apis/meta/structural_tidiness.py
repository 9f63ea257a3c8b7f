"""Schemas compiled to functions that tell whether ``structural_pruning`` would have anything to do.

Nearly always it would not, and to know that takes a third of the time: one walk rather than two, without paths, and
most of it by what C has for dictionaries. A function may say no where there turns out to be nothing to do, never yes
where there is something.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from clusterregistry.apis.meta import schemas
from clusterregistry.apis.meta.schemas import Schema

IsTidy = Callable[[Any], bool]

_PLAIN = frozenset((str, bool, int))
"""Types of values that stay as they are, whatever the schema says."""


def compile_tidiness(schema: Schema, untouched: frozenset[str] = frozenset()) -> IsTidy:
    """A function that tells whether a value has nothing to rename, to drop or to normalise.

    Properties named in ``untouched`` are known and not looked into, but null is dropped there too.
    """
    match schema:
        case schemas.Object():
            return _object_tidiness(schema, untouched)
        case schemas.Map(values=values) if _has_parts(values):
            below = compile_tidiness(values)
            return lambda value: type(value) is dict and all(map(below, value.values()))
        case schemas.Map():
            return lambda value: type(value) is dict and _PLAIN.issuperset(map(type, value.values()))
        case schemas.Array(items=items) if _has_parts(items):
            below = compile_tidiness(items)
            return lambda value: type(value) is list and all(map(below, value))
        case schemas.Array():
            return lambda value: type(value) is list and _PLAIN.issuperset(map(type, value))
        case _:
            return lambda value: type(value) in _PLAIN


def _object_tidiness(schema: schemas.Object, untouched: frozenset[str]) -> IsTidy:
    known = schema.fields.keys() - schema.old_spellings.keys() | untouched
    below = {name: compile_tidiness(field) for name, field in schema.fields.items()}
    below |= dict.fromkeys(untouched, lambda value: value is not None)

    def is_tidy(value: Any) -> bool:
        if type(value) is not dict or not value.keys() <= known:
            return False
        for name, item in value.items():  # noqa: SIM110 - a generator costs more than the loop
            if type(item) not in _PLAIN and not below[name](item):
                return False
        return True

    def is_tidy_and_flat(value: Any) -> bool:
        return type(value) is dict and value.keys() <= known and _PLAIN.issuperset(map(type, value.values()))

    return is_tidy if untouched or any(map(_has_parts, schema.fields.values())) else is_tidy_and_flat


def _has_parts(schema: Schema) -> bool:
    return isinstance(schema, schemas.Object | schemas.Map | schemas.Array)
