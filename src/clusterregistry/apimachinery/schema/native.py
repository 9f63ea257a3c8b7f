"""Decodes objects of native kinds, those compiled into kube-apiserver, as Go decodes JSON into structs.

Unlike a custom resource, such an object has no other form than its struct: decoding refuses a value of a wrong type,
leaves out empty fields unless the struct always writes them (``required``, ``always_written``), and treats null as Go
does. Pure functions over wire objects; they must not know any one kind.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from clusterregistry.apimachinery.meta.json_types import ShapeError, json_type
from clusterregistry.apimachinery.schema import schemas
from clusterregistry.apimachinery.schema.schemas import Schema

Object = dict[str, Any]

_COMMON = frozenset(("apiVersion", "kind", "metadata"))


def decoder(schema: schemas.Object, *, kind: str) -> Callable[[Object], list[str]]:
    """A function that converts an object to the form of its struct, in place.

    It returns the paths of unknown fields, in the order of the document, and raises ShapeError for the first value of a
    wrong type. ``apiVersion``, ``kind`` and ``metadata`` stay unchanged.
    """

    def decode(obj: Object) -> list[str]:
        reading = _Reading()
        sent = {name: value for name, value in obj.items() if name not in _COMMON}
        fields = reading.fields(schema, sent, _Place(struct=kind))
        for name in sent:
            del obj[name]
        obj.update(fields)
        return reading.unknown

    return decode


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

    def mismatch(self, value: Any, schema: Schema) -> ShapeError:
        where = f"Go struct field {self.struct}.{self.go_path}"
        return ShapeError(f"json: cannot unmarshal {json_type(value)} into {where} of type {_go_type(schema)}")


class _Reading:
    """One pass over one object."""

    def __init__(self) -> None:
        self.unknown: list[str] = []

    def fields(self, schema: schemas.Object, value: Object, place: _Place) -> Object:
        found: Object = {}
        written = schema.required + schema.always_written
        for name, part in value.items():
            field = schema.fields.get(name)
            at = place.field(name)
            if field is None:
                self.unknown.append(at.path)
            else:
                read = self._value(field, part, at)
                if name in written or not _left_out(field, read):
                    found[name] = read
        for name in written:
            if found.get(name) is None:
                found[name] = self._zero(schema.fields[name], place.field(name))
        return found

    def _value(self, schema: Schema, value: Any, place: _Place) -> Any:
        if value is None:
            return None
        match schema:
            case schemas.String() if isinstance(value, str):
                return value
            case schemas.Array(items=items) if isinstance(value, list):
                return [self._item(items, each, place.item(index)) for index, each in enumerate(value)]
            case schemas.Map(values=values) if isinstance(value, dict):
                return {key: self._item(values, each, place) for key, each in value.items()}
            case schemas.Object() if isinstance(value, dict):
                return self.fields(schema, value, place.within(schema))
        raise place.mismatch(value, schema)

    def _item(self, schema: Schema, value: Any, place: _Place) -> Any:
        """An item of a list or a value of a map, which stays even if it is null."""
        return self._zero(schema, place) if value is None else self._value(schema, value, place)

    def _zero(self, schema: Schema, place: _Place) -> Any:
        match schema:
            case schemas.String():
                return ""
            case schemas.Object():
                return self.fields(schema, {}, place.within(schema))
        return None


def _left_out(schema: Schema, value: Any) -> bool:
    """Whether Go's ``omitempty`` leaves a value out. An optional struct is a pointer, and not left out when empty."""
    return value is None or (not value and not isinstance(schema, schemas.Object))


def _go_type(schema: Schema) -> str:
    if schema.type_name:
        return schema.type_name
    match schema:
        case schemas.Array(items=items):
            return f"[]{_go_type(items)}"
        case schemas.Map(values=values):
            return f"map[string]{_go_type(values)}"
    return "string"
