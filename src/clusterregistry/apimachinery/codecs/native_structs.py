"""Converts objects of Kubernetes' own kinds to the form that Go's JSON decoder gives them.

The types are those of the protobuf messages. Nulls, empty fields and unknown fields are dropped as in Go; unknown
fields are reported. ``meta.object_meta`` decodes ``metadata``.
"""

from __future__ import annotations

from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from clusterregistry.apimachinery.codecs.protobuf_codec import from_message, into_message
from clusterregistry.apimachinery.codecs.protobuf_messages import CLASSES, KINDS
from clusterregistry.apimachinery.meta.json_types import ShapeError, json_type

Object = dict[str, Any]

_COMMON = ("apiVersion", "kind", "metadata")
_SCALARS: dict[int, type] = {FieldDescriptor.CPPTYPE_STRING: str, FieldDescriptor.CPPTYPE_BOOL: bool}
_LISTS = {"ExtraValue"}


def conform(obj: Object) -> list[str]:
    """Converts an object of a known kind to Go's form, in place, and returns the paths of unknown fields.

    Paths are in the order of the document. Raises ShapeError for a value of a wrong type.
    """
    message = CLASSES[KINDS[obj["apiVersion"], obj["kind"]]]()
    own = {name: value for name, value in obj.items() if name not in _COMMON}
    unknown: list[str] = []
    into_message(message, _struct(own, message.DESCRIPTOR, go_path=(), path="", unknown=unknown))
    for name in own:
        del obj[name]
    obj.update(from_message(message))
    return unknown


def _struct(value: Object, struct: Descriptor, *, go_path: tuple[str, ...], path: str, unknown: list[str]) -> Object:
    checked: Object = {}
    for name, item in value.items():
        field = struct.fields_by_name.get(name)
        below = f"{path}.{name}" if path else name
        if field is None:
            unknown.append(below)
        elif item is not None:
            check = _Field(field, (*go_path, name), unknown)
            checked[name] = check.whole(item, below)
    return checked


class _Field:
    """Checks the value of one field. Messages name it by its struct and its path from the top, without indices."""

    def __init__(self, field: FieldDescriptor, go_path: tuple[str, ...], unknown: list[str]) -> None:
        self._field = field
        self._go_path = go_path
        self._unknown = unknown

    def whole(self, value: Any, path: str) -> Any:
        of = self._field.message_type
        if of is not None and of.GetOptions().map_entry:
            self._must_be(value, dict, self._go_type())
            entry = of.fields_by_name["value"]
            return {key: self._one(item, entry, f"{path}.{key}") for key, item in value.items()}
        if self._field.is_repeated:
            self._must_be(value, list, self._go_type())
            return [self._one(item, self._field, f"{path}[{index}]") for index, item in enumerate(value)]
        return self._one(value, self._field, path)

    def _one(self, value: Any, field: FieldDescriptor, path: str) -> Any:
        of = field.message_type
        if of is None:
            wanted = _SCALARS[field.cpp_type]
            return wanted() if value is None else self._must_be(value, wanted, _scalar_name(field))
        if of.name in _LISTS:
            return self._strings(value, of)
        self._must_be({} if value is None else value, dict, f"v1.{of.name}")
        return _struct(value or {}, of, go_path=self._go_path, path=path, unknown=self._unknown)

    def _strings(self, value: Any, of: Descriptor) -> list[str]:
        items = [] if value is None else self._must_be(value, list, f"v1.{of.name}")
        return ["" if item is None else self._must_be(item, str, "string") for item in items]

    def _must_be(self, value: Any, wanted: type, go_type: str) -> Any:
        if type(value) is not wanted:
            struct = self._field.full_name.split(".")[-2]
            where, found = f"{struct}.{'.'.join(self._go_path)}", json_type(value)
            raise ShapeError(f"json: cannot unmarshal {found} into Go struct field {where} of type {go_type}")
        return value

    def _go_type(self) -> str:
        of = self._field.message_type
        if of is not None and of.GetOptions().map_entry:
            return f"map[string]{_item_name(of.fields_by_name['value'])}"
        return f"[]{_item_name(self._field)}"


def _item_name(field: FieldDescriptor) -> str:
    return _scalar_name(field) if field.message_type is None else f"v1.{field.message_type.name}"


def _scalar_name(field: FieldDescriptor) -> str:
    return _SCALARS[field.cpp_type].__name__.replace("str", "string")
