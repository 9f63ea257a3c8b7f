"""Validates an applied configuration against its schema. Messages are kube-apiserver's."""

from __future__ import annotations

from collections.abc import Callable
from operator import is_
from typing import Any, NamedTuple

from clusterregistry.apimachinery.fieldmanager import path_element
from clusterregistry.apimachinery.fieldmanager.field_set import is_atomic
from clusterregistry.apimachinery.fieldmanager.path_element import NoIdentityError, compile_by_element, element_of
from clusterregistry.apimachinery.meta.field_errors import quoted
from clusterregistry.apimachinery.meta.json_types import go_text
from clusterregistry.apimachinery.schema import schemas
from clusterregistry.apimachinery.schema.schemas import Array, Schema

_STRINGS = frozenset((str,))


class Problem(NamedTuple):
    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


def problems_text(schema: schemas.Object, configuration: dict[str, Any]) -> str:
    """All problems as one text; empty for a configuration that fits."""
    found = [str(problem) for problem in _problems(schema, configuration, "")]
    if len(found) > 1:
        return "\n  ".join(["errors:", *found])
    return "".join(found)


# The fast path: one check for each struct, map and list

IsPlain = Callable[[Any], bool]


class _Plain(NamedTuple):
    """The type and the check of values that certainly fit a schema."""

    type: type
    is_plain: IsPlain | None
    """Checks a value of the type; None where every value of the type fits."""


_SCALARS: dict[type[Schema], type] = {schemas.Integer: int, schemas.Boolean: bool}
"""For all other scalars, text certainly fits."""


def compile_plainness(schema: schemas.Object) -> IsPlain:
    """Compiles a check of whether an object is plain: it fits the schema, and has neither nulls nor floats.

    Nearly all configurations are plain. ``problems_text`` validates the others.
    """
    plain = {name: _plain(field) for name, field in schema.fields.items()}
    types = {name: each.type for name, each in plain.items()}
    checks = {name: each.is_plain for name, each in plain.items() if each.is_plain}

    def is_plain(value: dict[str, Any]) -> bool:
        # An unknown field has no type.
        if not all(map(is_, map(type, value.values()), map(types.get, value))):
            return False
        for name in checks.keys() & value.keys():  # noqa: SIM110 - a generator would cost more than most checks
            if not checks[name](value[name]):
                return False
        return True

    return is_plain


def _plain(schema: Schema) -> _Plain:
    match schema:
        case schemas.Object():
            return _Plain(dict, compile_plainness(schema))
        case schemas.Map(values=values):
            are_plain = _all_plain(_plain(values))
            return _Plain(dict, lambda value: are_plain(value.values()))
        case Array():
            return _Plain(list, _plain_lists(schema))
        case _:
            return _Plain(_SCALARS.get(type(schema), str), None)


def _plain_lists(schema: Array) -> IsPlain:
    are_plain = _all_plain(_plain(schema.items))
    if is_atomic(schema):
        return are_plain
    by_element = compile_by_element(schema)
    return lambda value: are_plain(value) and by_element(value) is not None


def _all_plain(plain: _Plain) -> IsPlain:
    types, check = frozenset((plain.type,)), plain.is_plain
    if check is None:
        return lambda values: types.issuperset(map(type, values))
    return lambda values: types.issuperset(map(type, values)) and all(map(check, values))


# The full validation


def _problems(schema: Schema, value: Any, path: str) -> list[Problem]:
    if value is None:
        return []
    if type(schema) is schemas.Object:
        return _struct_problems(schema, value, path) if isinstance(value, dict) else [_expected("map", value, path)]
    if type(schema) is schemas.Map:
        return _map_problems(schema, value, path) if isinstance(value, dict) else [_expected("map", value, path)]
    if type(schema) is Array:
        return _list_problems(schema, value, path) if isinstance(value, list) else [_expected("list", value, path)]
    return _scalar_problems(schema, value, path)


def _map_problems(schema: schemas.Map, value: dict[str, Any], path: str) -> list[Problem]:
    if type(schema.values) is schemas.String and _STRINGS.issuperset(map(type, value.values())):
        return []
    return [each for name in sorted(value) for each in _problems(schema.values, value[name], f"{path}.{name}")]


def _struct_problems(schema: schemas.Object, value: dict[str, Any], path: str) -> list[Problem]:
    found: list[Problem] = []
    for name in sorted(value):
        field = schema.fields.get(name)
        if field is None:
            return [*found, Problem(f"{path}.{name}", "field not declared in schema")]
        each = value[name]
        if type(each) is not str or type(field) is not schemas.String:  # as nearly all are
            found += _problems(field, each, f"{path}.{name}")
    return found


def _list_problems(schema: Array, value: list[Any], path: str) -> list[Problem]:
    found: list[Problem] = []
    seen: set[str] = set()
    for index, item in enumerate(value):
        try:
            element = f"i:{index}" if is_atomic(schema) else element_of(schema, item)
        except NoIdentityError as error:
            return [*found, Problem(path, f"element {index}: {error}")]
        shown = path_element.shown(element)
        if element in seen:
            found.append(Problem(path, f"duplicate entries for key {shown}"))
        seen.add(element)
        found += _problems(schema.items, item, path + shown)
    return found


def _scalar_problems(schema: Schema, value: Any, path: str) -> list[Problem]:
    match schema:
        case schemas.String(format="date-time"):
            # kube-openapi takes a time for anything but a struct.
            return [_expected("any scalar", value, path)] if isinstance(value, dict | list) else []
        case schemas.String() if not isinstance(value, str):
            return [Problem(path, f"expected string, got &value.valueUnstructured{{Value:{_go_syntax(value)}}}")]
        case schemas.Integer() if not isinstance(value, int | float) or isinstance(value, bool):
            return [Problem(path, f"expected numeric (int or float), got {_go_type(value)}")]
        case schemas.Boolean() if not isinstance(value, bool):
            return [_expected("boolean", value, path)]
    return []


def _expected(what: str, value: Any, path: str) -> Problem:
    return Problem(path, f"expected {what}, got &{{{go_text(value)}}}")


def _go_type(value: Any) -> str:
    """As Go's ``%T`` names it."""
    if isinstance(value, dict):
        return "map[string]interface {}"
    if isinstance(value, list):
        return "[]interface {}"
    return "bool" if isinstance(value, bool) else "string"


def _go_syntax(value: Any) -> str:
    """As Go's ``%#v`` shows it."""
    if isinstance(value, dict):
        pairs = (f"{quoted(name)}:{_go_syntax(value[name])}" for name in sorted(value))
        return f"{_go_type(value)}{{{', '.join(pairs)}}}"
    if isinstance(value, list):
        return f"{_go_type(value)}{{{', '.join(map(_go_syntax, value))}}}"
    if value is None:
        return "interface {}(nil)"
    return quoted(value) if isinstance(value, str) else go_text(value)
