"""Schemas compiled to functions that rename, prune and normalise values in place.

Paths are built only for reported fields: a function returns paths relative to its value (``.key``, ``[0]``), or texts
that begin with one, and each level adds its prefix.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from typing import Any

from clusterregistry.apimachinery.meta.integers import whole
from clusterregistry.apimachinery.schema import schemas
from clusterregistry.apimachinery.schema.schemas import Schema

Pruner = Callable[[Any], list[str] | None]
Renamer = Callable[[Any], list[str] | None]

_COMPOUND = frozenset((dict, list))
_TIDY = frozenset((str, bool))
"""Types of values that no schema changes."""


def compile_pruner(schema: Schema, untouched: frozenset[str] = frozenset()) -> Pruner:
    """A function that prunes a value in place and returns the paths of unknown fields, None if there are none.

    Properties in ``untouched`` are known and stay unchanged.
    """
    match schema:
        case schemas.Object():
            return _object_pruner(schema, untouched)
        case schemas.Map():
            return _map_pruner(schema)
        case schemas.Array():
            return _array_pruner(schema)
        case _:
            return prune_everything


def compile_renamer(schema: Schema) -> Renamer | None:
    """A function that renames old spellings in place and returns a warning for each; None for a schema without any."""
    match schema:
        case schemas.Object():
            return _object_renamer(schema)
        case schemas.Array(items=items):
            return _array_renamer(compile_renamer(items))
        case schemas.Map(values=values):
            return _map_renamer(compile_renamer(values))
        case _:
            return None


def prune_everything(value: Any) -> list[str] | None:
    """Prunes a value without a schema: lists stay, objects lose all fields.

    Without recursion: only here the client chooses the depth.
    """
    if type(value) not in _COMPOUND:
        return None
    unknown: list[str] = []
    pending: list[tuple[str, Any]] = [("", value)]
    while pending:
        path, current = pending.pop()
        if type(current) is dict:
            unknown.extend(f"{path}.{key}" for key in current)
            current.clear()
        elif type(current) is list:
            pending.extend((f"{path}[{index}]", item) for index, item in enumerate(current))
    return unknown or None


def _object_pruner(schema: schemas.Object, untouched: frozenset[str]) -> Pruner:
    pruners = {name: compile_pruner(field) for name, field in schema.fields.items()} | dict.fromkeys(untouched, _leave)
    known = pruners.keys()
    integral = {name for name, field in schema.fields.items() if _holds_integers(field)}

    def prune(value: Any) -> list[str] | None:
        if type(value) is not dict:
            return prune_everything(value)
        if value.keys() <= known and _TIDY.issuperset(map(type, value.values())):
            return None  # the usual case, decided without a loop in Python
        return _prune_fields(value, pruners, integral)

    return prune


def _prune_fields(value: dict[str, Any], pruners: Mapping[str, Pruner], integral: Container[str]) -> list[str] | None:
    unknown: list[str] = []
    dropped: list[str] = []
    for key, item in value.items():
        pruner = pruners.get(key)
        if pruner is None:
            unknown.append(f".{key}")
            dropped.append(key)
        elif item is None:
            dropped.append(key)
        elif type(item) in _COMPOUND:
            if found := pruner(item):
                unknown.extend(f".{key}{path}" for path in found)
        elif key in integral:
            value[key] = whole(item)
    for key in dropped:
        del value[key]
    return unknown or None


def _map_pruner(schema: schemas.Map) -> Pruner:
    pruner = compile_pruner(schema.values)
    integral = _holds_integers(schema.values)

    def prune(value: Any) -> list[str] | None:
        if type(value) is not dict:
            return prune_everything(value)
        if _TIDY.issuperset(map(type, value.values())):
            return None
        unknown: list[str] = []
        dropped: list[str] = []
        for key, item in value.items():
            if item is None:
                dropped.append(key)
            elif type(item) in _COMPOUND:
                if found := pruner(item):
                    unknown.extend(f".{key}{path}" for path in found)
            elif integral:
                value[key] = whole(item)
        for key in dropped:
            del value[key]
        return unknown or None

    return prune


def _array_pruner(schema: schemas.Array) -> Pruner:
    pruner = compile_pruner(schema.items)
    integral = _holds_integers(schema.items)

    def prune(value: Any) -> list[str] | None:
        if type(value) is not list:
            return prune_everything(value)
        unknown: list[str] = []
        for index, item in enumerate(value):
            if found := pruner(item):
                unknown.extend(f"[{index}]{path}" for path in found)
            elif integral:
                value[index] = whole(item)
        return unknown or None

    return prune


def _holds_integers(schema: Schema) -> bool:
    return isinstance(schema, schemas.Integer | schemas.IntOrString)


def _leave(_value: Any) -> None:
    """The pruner of untouched properties."""


def _object_renamer(schema: schemas.Object) -> Renamer | None:
    below = {name: renamer for name, field in schema.fields.items() if (renamer := compile_renamer(field))}
    spellings = dict(schema.old_spellings)
    if not below and not spellings:
        return None

    def rename(value: Any) -> list[str] | None:
        if type(value) is not dict:
            return None
        warnings: list[str] = []
        if not spellings.keys().isdisjoint(value):
            warnings = [_rename_one(value, old, new) for old, new in spellings.items() if old in value]
        for name, renamer in below.items():
            if name in value and (found := renamer(value[name])):
                warnings.extend(f".{name}{text}" for text in found)
        return warnings

    return rename


def _rename_one(value: dict[str, Any], old: str, new: str) -> str:
    """Moves ``old`` to ``new`` and returns the warning. Where both are given the present name wins."""
    former = value.pop(old)
    if new in value:
        return f".{old}: deprecated and ignored, as {new} is given too"
    value[new] = former
    return f".{old}: deprecated, use {new}"


def _array_renamer(renamer: Renamer | None) -> Renamer | None:
    if renamer is None:
        return None

    def rename(value: Any) -> list[str] | None:
        warnings: list[str] = []
        for index, item in enumerate(value) if type(value) is list else ():
            if found := renamer(item):
                warnings.extend(f"[{index}]{text}" for text in found)
        return warnings

    return rename


def _map_renamer(renamer: Renamer | None) -> Renamer | None:
    if renamer is None:
        return None

    def rename(value: Any) -> list[str] | None:
        items = value.items() if type(value) is dict else ()
        return [f".{key}{text}" for key, item in items for text in renamer(item) or ()]

    return rename
