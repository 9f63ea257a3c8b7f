"""Whether an applied configuration fits the schema. Messages are kube-apiserver's."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from clusterregistry.apis.meta import schemas
from clusterregistry.apis.meta.field_errors import quoted
from clusterregistry.apis.meta.schemas import Array, Schema
from clusterregistry.apply import elements
from clusterregistry.apply.field_sets import is_atomic
from clusterregistry.apply.items import NoIdentityError, element_of

_STRINGS = frozenset((str,))


class Problem(NamedTuple):
    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


def problems_text(schema: schemas.Object, configuration: dict[str, Any]) -> str:
    """Everything that does not fit, as one text; empty when all does."""
    found = [str(problem) for problem in _problems(schema, configuration, "")]
    if len(found) > 1:
        return "\n  ".join(["errors:", *found])
    return "".join(found)


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
        shown = elements.shown(element)
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
    return Problem(path, f"expected {what}, got &{{{_go_text(value)}}}")


def _go_type(value: Any) -> str:
    """As Go's ``%T`` names it."""
    if isinstance(value, dict):
        return "map[string]interface {}"
    if isinstance(value, list):
        return "[]interface {}"
    return "bool" if isinstance(value, bool) else "string"


def _go_text(value: Any) -> str:
    """As Go's ``%v`` shows it."""
    if isinstance(value, dict):
        return "map[" + " ".join(f"{name}:{_go_text(value[name])}" for name in sorted(value)) + "]"
    if isinstance(value, list):
        return "[" + " ".join(map(_go_text, value)) + "]"
    if value is None:
        return "<nil>"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return value if isinstance(value, str) else json.dumps(value)


def _go_syntax(value: Any) -> str:
    """As Go's ``%#v`` shows it."""
    if isinstance(value, dict):
        pairs = (f"{quoted(name)}:{_go_syntax(value[name])}" for name in sorted(value))
        return f"{_go_type(value)}{{{', '.join(pairs)}}}"
    if isinstance(value, list):
        return f"{_go_type(value)}{{{', '.join(map(_go_syntax, value))}}}"
    if value is None:
        return "interface {}(nil)"
    return quoted(value) if isinstance(value, str) else _go_text(value)
