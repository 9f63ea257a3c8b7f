"""Decodes objects of native kinds, those compiled into kube-apiserver, as Go decodes JSON into structs.

Unlike a custom resource, such an object has no other form than its struct: decoding refuses a value of a wrong type,
leaves out empty fields unless the struct always writes them (``required``, ``always_written``) or has a pointer there,
and treats null as Go does. Pure functions over wire objects; they must not know any one kind.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from clusterregistry.apimachinery.meta import times
from clusterregistry.apimachinery.meta.base64_text import canonical
from clusterregistry.apimachinery.meta.json_types import ShapeError, json_type
from clusterregistry.apimachinery.schema import schemas
from clusterregistry.apimachinery.schema.fast_path import Recognise, compile_struct_recognition
from clusterregistry.apimachinery.schema.schemas import Schema

Object = dict[str, Any]

_COMMON = frozenset(("apiVersion", "kind", "metadata"))
_RANGES = {"int32": range(-(2**31), 2**31), "int64": range(-(2**63), 2**63)}


def decoder(schema: schemas.Object, *, kind: str) -> Callable[[Object], list[str]]:
    """A function that converts an object to the form of its struct, in place.

    It returns the paths of unknown fields, in the order of the document, and raises ShapeError for the first value of a
    wrong type. ``apiVersion``, ``kind`` and ``metadata`` stay unchanged.
    """
    recognise: Recognise | None = None

    def decode(obj: Object) -> list[str]:
        nonlocal recognise
        if recognise is None:  # compiled for the first object: most kinds get none in a short life
            recognise = compile_struct_recognition(schema, untouched=_COMMON)
        return [] if recognise(obj) else decode_slowly(schema, obj, kind=kind)

    return decode


def decode_slowly(schema: schemas.Object, obj: Object, *, kind: str) -> list[str]:
    """Decodes an object field by field: one that has not the form of its struct yet."""
    reading = _Reading()
    sent = {name: value for name, value in obj.items() if name not in _COMMON}
    fields = reading.fields(schema, sent, _Place(struct=kind))
    if reading.mismatch is not None:
        raise reading.mismatch
    for name in sent:
        del obj[name]
    obj.update(fields)
    return reading.unknown


class _Place:
    """The place of a value: its struct, and its path in Go's form and in that of ``fieldValidation``."""

    __slots__ = ("go_path", "path", "struct")

    def __init__(self, *, struct: str, go_path: str = "", path: str = "") -> None:
        self.struct, self.go_path, self.path = struct, go_path, path

    def field(self, name: str) -> _Place:
        return _Place(
            struct=self.struct,
            go_path=f"{self.go_path}.{name}" if self.go_path else name,
            path=f"{self.path}.{name}" if self.path else name,
        )

    def item(self, index: int) -> _Place:
        return _Place(struct=self.struct, go_path=self.go_path, path=f"{self.path}[{index}]")

    def within(self, schema: schemas.Object) -> _Place:
        struct = schema.type_name.rpartition(".")[2]
        return _Place(struct=struct, go_path=self.go_path, path=self.path)

    def mismatch(self, found: str, schema: Schema) -> ShapeError:
        where = f"Go struct field {self.struct}.{self.go_path}"
        return ShapeError(f"json: cannot unmarshal {found} into {where} of type {_go_type(schema)}")


class _Reading:
    """One pass over one object.

    As in Go, a value of a wrong type does not end the pass, and the first one is reported at its end. What is no time
    ends it.
    """

    def __init__(self) -> None:
        self.unknown: list[str] = []
        self.mismatch: ShapeError | None = None

    def fields(self, schema: schemas.Object, value: Object, place: _Place) -> Object:
        found: Object = {}
        written = schema.required + schema.always_written
        kept = written + schema.pointers
        for name, part in value.items():
            field = schema.fields.get(name)
            at = place.field(name)
            if field is None:
                self.unknown.append(at.path)
            else:
                read = self._value(field, part, at)
                if not _left_out(field, read, is_kept=name in kept):
                    found[name] = read
        for name in written:
            if found.get(name) is None:
                found[name] = self._zero(schema.fields[name], place.field(name))
        return found

    def _value(self, schema: Schema, value: Any, place: _Place) -> Any:
        if value is None:
            return None
        match schema:
            case schemas.String(format="date-time"):
                return _time(schema, value, place)
            case schemas.String() if type(value) is str:
                return self._bytes(value) if schema.format == "byte" else value
            case schemas.Integer() if type(value) in (int, float):
                return self._integer(schema, value, place)
            case schemas.Boolean() if type(value) is bool:
                return value
            case schemas.Array(items=items) if type(value) is list:
                return [self._item(items, each, place.item(index)) for index, each in enumerate(value)]
            case schemas.Map(values=values) if type(value) is dict:
                return {key: self._item(values, each, place) for key, each in value.items()}
            case schemas.Object() if type(value) is dict:
                return self.fields(schema, value, place.within(schema))
        return self._refuse(place.mismatch(json_type(value), schema))

    def _integer(self, schema: schemas.Integer, value: float, place: _Place) -> int | None:
        if type(value) is int and value in _RANGES[schema.format]:
            return value
        self._refuse(place.mismatch(f"number {value}", schema))
        return None

    def _bytes(self, text: str) -> str | None:
        """Base64 as Go writes it, which reads it without regard to line breaks and to bits that are left over."""
        try:
            return canonical(text)
        except ValueError as error:
            self._refuse(ShapeError(str(error)))
            return None

    def _refuse(self, error: ShapeError) -> None:
        self.mismatch = self.mismatch or error

    def _item(self, schema: Schema, value: Any, place: _Place) -> Any:
        """An item of a list or a value of a map, which stays even if it is null."""
        return self._zero(schema, place) if value is None else self._value(schema, value, place)

    def _zero(self, schema: Schema, place: _Place) -> Any:
        match schema:
            case schemas.String(format=""):
                return ""
            case schemas.Integer():
                return 0
            case schemas.Boolean():
                return False
            case schemas.Object():
                return self.fields(schema, {}, place.within(schema))
        return None


def _left_out(schema: Schema, value: Any, *, is_kept: bool) -> bool:
    """Whether Go's ``omitempty`` leaves a value out. An optional struct is a pointer, and not left out when empty."""
    return value is None or (not value and not is_kept and not isinstance(schema, schemas.Object))


def _time(schema: schemas.String, text: Any, place: _Place) -> str | None:
    """A time as Go writes it; None for its zero time."""
    if type(text) is not str:
        raise place.mismatch(json_type(text), schema)
    is_micro = schema.type_name == schemas.MICRO_TIME
    try:
        time = times.normalise_micro(text) if is_micro else times.normalise(text)
    except ValueError as error:
        raise ShapeError(str(error)) from None
    return None if time in (times.ZERO, times.ZERO_MICRO) else time


_NAMES: dict[type[Schema], str] = {schemas.String: "string", schemas.Boolean: "bool"}


def _go_type(schema: Schema) -> str:
    match schema:
        case schemas.String(format="date-time"):
            return "string"
        case schemas.String(format="byte"):
            return "[]uint8"
        case _ if schema.type_name:
            return schema.type_name
        case schemas.Integer(format=name):
            return name
        case schemas.Array(items=items):
            return f"[]{_go_type(items)}"
        case schemas.Map(values=values):
            return f"map[string]{_go_type(values)}"
    return _NAMES.get(type(schema), "string")
