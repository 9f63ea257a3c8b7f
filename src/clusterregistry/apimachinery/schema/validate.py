"""Compiles a schema to functions that validate values, with the messages of kube-apiserver for custom resources."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import orjson

from clusterregistry.apimachinery.meta import field_errors, times
from clusterregistry.apimachinery.meta.base64_text import is_base64
from clusterregistry.apimachinery.meta.field_errors import ENOUGH, FieldError
from clusterregistry.apimachinery.schema import schemas
from clusterregistry.apimachinery.schema.schemas import Schema

_INT32 = range(-(2**31), 2**31)
_INT64 = range(-(2**63), 2**63)

MakeError = Callable[[str, str], FieldError]
"""Takes the field's path and its name in the message."""


class Problem(NamedTuple):
    """``whole`` marks the kind that kube-apiserver reports on the validated part rather than on the field."""

    path: str
    make: MakeError
    whole: bool = False


Problems = list[Problem] | None
Check = Callable[[Any], Problems]


def problems_as_errors(problems: Iterable[Problem], *, part: str, named_from: str) -> list[FieldError]:
    """Field errors below ``part``; in the messages fields are named from ``named_from`` on."""
    return [
        problem.make(part if problem.whole else part + problem.path, (named_from + problem.path).removeprefix("."))
        for problem in problems
    ]


def compile_check(schema: Schema) -> Check:
    match schema:
        case schemas.Object():
            return _object_check(schema)
        case schemas.Map():
            return _map_check(schema)
        case schemas.Array():
            return _array_check(schema)
        case schemas.String():
            return _string_check(schema)
        case schemas.Integer():
            return _integer_check(schema)
        case schemas.Boolean():
            return lambda value: None if type(value) is bool else [_wrong_type(value, "boolean")]
        case schemas.IntOrString():
            return _int_or_string
        case schemas.NumberOrString():
            return _number_or_string
        case _:
            return lambda _value: None


def _object_check(schema: schemas.Object) -> Check:
    checks = {name: compile_check(field) for name, field in schema.fields.items()}
    required = schema.required

    def check(value: Any) -> Problems:
        if type(value) is not dict:
            return [_wrong_type(value, "object")]
        problems: list[Problem] = []
        for key, item in value.items():
            below = checks.get(key)
            if below is None or (below is plain_string and type(item) is str):
                continue
            if found := below(item):
                problems += under(f".{key}", found)
        if required:
            problems += [Problem(f".{key}", _required) for key in required if key not in value]
        return problems or None

    return check


def _map_check(schema: schemas.Map) -> Check:
    below = compile_check(schema.values)

    def check(value: Any) -> Problems:
        if type(value) is not dict:
            return [_wrong_type(value, "object")]
        problems: list[Problem] = []
        for key, item in value.items():
            if found := below(item):
                problems += under(f".{key}", found)
                if len(problems) >= ENOUGH:
                    break
        return problems or None

    return check


def _array_check(schema: schemas.Array) -> Check:
    below = compile_check(schema.items)

    def check(value: Any) -> Problems:
        if type(value) is not list:
            return [_wrong_type(value, "array")]
        problems: list[Problem] = []
        for index, item in enumerate(value):
            if found := below(item):
                problems += under(f"[{index}]", found)
                if len(problems) >= ENOUGH:
                    break
        return problems or None

    return check


def under(prefix: str, problems: list[Problem]) -> list[Problem]:
    return [problem._replace(path=prefix + problem.path) for problem in problems]


def plain_string(value: Any) -> Problems:
    """The check of a string of any content; objects skip the call for it."""
    return None if type(value) is str else [_wrong_type(value, "string")]


def _string_check(schema: schemas.String) -> Check:
    if not schema.format and not schema.enum and schema.max_length is None:
        return plain_string
    rules = tuple(_string_rules(schema))

    def check(value: Any) -> Problems:
        problems = None if type(value) is str else [_wrong_string(value, schema.format)]
        for rule in rules:
            if problem := rule(value):
                problems = [*(problems or ()), problem]
        return problems

    return check


Rule = Callable[[Any], Problem | None]


def _string_rules(schema: schemas.String) -> list[Rule]:
    rules: list[Rule] = []
    if schema.max_length is not None:
        rules.append(_length_rule(schema.max_length))
    if (test := _FORMATS.get(schema.format)) is not None:
        rules.append(_format_rule(schema.format, test))
    if schema.enum:
        rules.append(_enum_rule(schema.enum))
    return rules


def _length_rule(limit: int) -> Rule:
    problem = Problem("", lambda field, _name: field_errors.too_long(field, limit))
    return lambda value: problem if type(value) is str and len(value) > limit else None


def _format_rule(name: str, test: Callable[[str], object]) -> Rule:
    return lambda value: None if type(value) is not str or test(value) else _mistyped(value, name)


def _enum_rule(allowed: tuple[str, ...]) -> Rule:
    def rule(value: Any) -> Problem | None:
        if value in allowed:
            return None
        return Problem("", lambda field, _name: field_errors.not_supported(field, printable(value), allowed))

    return rule


def _integer_check(schema: schemas.Integer) -> Check:
    fitting = _INT32 if schema.format == "int32" else _INT64
    # An unbounded side is bounded by the range of the type, so that the usual case is one comparison.
    low = fitting.start if schema.minimum is None else schema.minimum
    high = fitting.stop - 1 if schema.maximum is None else schema.maximum

    def check(value: Any) -> Problems:
        if type(value) is not int or value not in _INT64:
            return [_wrong_integer(value, schema.format)]
        if low <= value <= high and value in fitting:
            return None
        return _range_problems(value, schema, fitting)

    return check


def _range_problems(value: int, schema: schemas.Integer, fitting: range) -> list[Problem]:
    problems: list[Problem] = []
    if value not in fitting:
        text = f"Checked value must be of type integer with format {schema.format} in "
        problems.append(Problem("", lambda field, name: field_errors.invalid(field, "", text + name), whole=True))
    for limit, broken, words in (
        (schema.maximum, schema.maximum is not None and value > schema.maximum, "less than or equal to"),
        (schema.minimum, schema.minimum is not None and value < schema.minimum, "greater than or equal to"),
    ):
        if broken:
            problems.append(_out_of_bounds(value, f"should be {words} {limit}"))
    return problems


def _out_of_bounds(value: int, detail: str) -> Problem:
    return Problem("", lambda field, name: field_errors.invalid(field, value, f"{name} in body {detail}"))


def _int_or_string(value: Any) -> Problems:
    if type(value) is str or (type(value) is int and value in _INT64):
        return None
    return [_wrong_type(value, "integer,string")]


def _number_or_string(value: Any) -> Problems:
    return None if type(value) is float else _int_or_string(value) and [_wrong_type(value, "number,string")]


def _required(field: str, _name: str) -> FieldError:
    return field_errors.required(field)


def _wrong_type(value: Any, expected: str) -> Problem:
    return _mistyped(_type_name(value), expected)


def _wrong_string(value: Any, format_: str) -> Problem:
    """A value that should be a string of a format: kube-apiserver names the format, and what Go type came."""
    if not format_ or value is None or type(value) is list:
        return _wrong_type(value, "string")
    return _mistyped(_go_format(value), format_)


def _wrong_integer(value: Any, format_: str) -> Problem:
    if value is None or type(value) in (str, list):
        return _wrong_type(value, "integer")
    return _mistyped(_go_format(value), format_)


def _mistyped(shown: str, expected: str) -> Problem:
    def make(field: str, name: str) -> FieldError:
        detail = f"{name} in body must be of type {expected}: {field_errors.shown(shown)}"
        return field_errors.type_invalid(field, shown, detail)

    return Problem("", make)


_TYPE_NAMES = {dict: "object", list: "array", str: "string", bool: "boolean", type(None): "null", float: "number"}


def _type_name(value: Any) -> str:
    if type(value) is int:
        return "integer" if value in _INT64 else "number"
    return _TYPE_NAMES.get(type(value), "object")


def _go_format(value: Any) -> str:
    """The format that kube-apiserver infers from a decoded value, empty for all but numbers."""
    return {"integer": "int64", "number": "float64"}.get(_type_name(value), "")


def printable(value: Any) -> Any:
    """``value`` where JSON can hold it, else the name of its type."""
    try:
        orjson.dumps(value)
    except TypeError:
        return _type_name(value)
    return value


_TIME_OF_DAY = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))")


def _is_date_time(text: str) -> bool:
    """As go-openapi checks it: somewhat more lenient than RFC 3339, in either case."""
    if times.is_usual(text):
        return True
    date, t, rest = text.lower().partition("t")
    match = _TIME_OF_DAY.fullmatch(rest.split("t", 1)[0])
    if not t or match is None or match[1] > "23" or match[2] > "59" or match[3] > "59":
        return False
    try:
        times.parse(f"{date}T00:00:00Z")
    except ValueError:
        return False
    return True


_FORMATS: dict[str, Callable[[str], object]] = {"byte": is_base64, "date-time": _is_date_time}


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
