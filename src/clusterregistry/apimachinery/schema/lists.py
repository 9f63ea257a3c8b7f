"""Schemas compiled to functions that check that the items of set and map lists are unique.

Apart from the other checks because kube-apiserver, too, reports these after all others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from clusterregistry.apimachinery.meta import field_errors
from clusterregistry.apimachinery.schema import schemas
from clusterregistry.apimachinery.schema.schemas import Schema
from clusterregistry.apimachinery.schema.validate import Check, Problem, Problems, printable, under


def compile_list_check(schema: Schema) -> Check | None:
    """A check that items of set and map lists are unique, None where there is no such list."""
    match schema:
        case schemas.Object():
            below = {name: check for name, field in schema.fields.items() if (check := compile_list_check(field))}
            return _each_field(below) if below else None
        case schemas.Map(values=values):
            inner = compile_list_check(values)
            return _each_value(inner) if inner else None
        case schemas.Array():
            return _list_check(schema)
        case _:
            return None


def _each_field(checks: dict[str, Check]) -> Check:
    def check(value: Any) -> Problems:
        if type(value) is not dict:
            return None
        problems: list[Problem] = []
        for name, below in checks.items():
            if name in value and (found := below(value[name])):
                problems += under(f".{name}", found)
        return problems or None

    return check


def _each_value(below: Check) -> Check:
    def check(value: Any) -> Problems:
        items = value.items() if type(value) is dict else ()
        return [problem for key, item in items for problem in under(f"[{key}]", below(item) or [])] or None

    return check


def _list_check(schema: schemas.Array) -> Check | None:
    inner = compile_list_check(schema.items)
    if schema.list_type == "atomic" and inner is None:
        return None
    repeated = _repetition_check(schema)

    def check(value: Any) -> Problems:
        if type(value) is not list:
            return None
        problems = repeated(value)
        if inner:
            problems += [p for index, item in enumerate(value) for p in under(f"[{index}]", inner(item) or [])]
        return problems or None

    return check


def _repetition_check(schema: schemas.Array) -> Callable[[list[Any]], list[Problem]]:
    match schema.list_type:
        case "set":
            return _duplicates
        case "map" if len(schema.map_keys) == 1:
            return _single_key_check(schema)
        case "map":
            return lambda items: _repeated(items, schema)
        case _:
            return lambda _items: []


def _single_key_check(schema: schemas.Array) -> Callable[[list[Any]], list[Problem]]:
    """The usual map list: where all items have their own string as the key, nothing more is to be done."""
    key = schema.map_keys[0]

    def check(items: list[Any]) -> list[Problem]:
        seen: set[str] = set()
        for item in items:
            name = item.get(key) if type(item) is dict else None
            if type(name) is not str or name in seen:
                return _repeated(items, schema)
            seen.add(name)
        return []

    return check


def _repeated(items: list[Any], schema: schemas.Array) -> list[Problem]:
    for index, item in enumerate(items):
        if item is not None and type(item) is not dict:
            return [_no_object(index, item)]
    keys = schema.map_keys
    return _duplicates([{key: item[key] for key in keys if key in item} if item else {} for item in items])


def _duplicates(items: list[Any]) -> list[Problem]:
    """The second of equal items, once however often it is repeated: as kube-apiserver reports it."""
    times_seen: dict[bytes, int] = {}
    problems: list[Problem] = []
    for index, item in enumerate(items):
        identity = _identity(item)
        times_seen[identity] = times_seen.get(identity, 0) + 1
        if times_seen[identity] == 2:  # noqa: PLR2004  # the first repetition
            problems.append(_duplicate(index, item))
    return problems


def _identity(item: Any) -> bytes:
    try:
        return orjson.dumps(item, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # numbers, depths and strings that JSON cannot hold
        return repr(item).encode("utf-8", "backslashreplace")


def _duplicate(index: int, item: Any) -> Problem:
    return Problem(f"[{index}]", lambda field, _name: field_errors.duplicate(field, printable(item)))


def _no_object(index: int, item: Any) -> Problem:
    detail = "must be an object for an array of list-type map"
    return Problem(f"[{index}]", lambda field, _name: field_errors.invalid(field, printable(item), detail))
