"""Makes protobuf messages from a table of their fields, for APIs of which a few messages are needed.

A message is ``"name:number:type ..."``; no type is a string, ``[]`` repeats, ``{}`` is a map from strings, capitals are
messages of the same table. ``?`` before a scalar distinguishes zero from absent. Fields that are not in the table
are skipped when a message is read. An enumeration is an ``int32``.
"""

from __future__ import annotations

from collections.abc import Mapping

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import Message

_SCALARS = {
    "string": descriptor_pb2.FieldDescriptorProto.TYPE_STRING,
    "bytes": descriptor_pb2.FieldDescriptorProto.TYPE_BYTES,
    "bool": descriptor_pb2.FieldDescriptorProto.TYPE_BOOL,
    "int32": descriptor_pb2.FieldDescriptorProto.TYPE_INT32,
    "int64": descriptor_pb2.FieldDescriptorProto.TYPE_INT64,
    "uint64": descriptor_pb2.FieldDescriptorProto.TYPE_UINT64,
    "double": descriptor_pb2.FieldDescriptorProto.TYPE_DOUBLE,
}


def message_classes(package: str, messages: Mapping[str, str]) -> dict[str, type[Message]]:
    """A class for each message of the table, by its name."""
    pool = descriptor_pool.DescriptorPool()
    pool.Add(_file(package, messages))
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.{name}")) for name in messages}


def _file(package: str, messages: Mapping[str, str]) -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto(name=f"{package}.proto", package=package, syntax="proto3")
    for name, fields in messages.items():
        message = file.message_type.add(name=name)
        for text in fields.split():
            _add_field(message, package, text)
    return file


def _add_field(message: descriptor_pb2.DescriptorProto, package: str, text: str) -> None:
    name, number, kind = (*text.split(":"), "string")[:3]
    field = message.field.add(name=name, number=int(number))
    field.label = field.LABEL_REPEATED if kind.startswith(("[]", "{}")) else field.LABEL_OPTIONAL
    if kind.startswith("{}"):
        field.type = field.TYPE_MESSAGE
        field.type_name = f".{package}.{message.name}.{_add_entry(message, package, field=name, kind=kind[2:])}"
        return
    if kind.startswith("?"):
        field.proto3_optional, field.oneof_index = True, len(message.oneof_decl)
        message.oneof_decl.add(name=f"_{name}")
    _set_type(field, package, kind.removeprefix("[]").removeprefix("?"))


def _add_entry(message: descriptor_pb2.DescriptorProto, package: str, *, field: str, kind: str) -> str:
    """The pairs of a map are messages of their own."""
    entry = message.nested_type.add(name=f"{field[:1].upper()}{field[1:]}Entry")
    entry.options.map_entry = True
    _set_type(entry.field.add(name="key", number=1, label=descriptor_pb2.FieldDescriptorProto.LABEL_OPTIONAL), package)
    value = entry.field.add(name="value", number=2, label=descriptor_pb2.FieldDescriptorProto.LABEL_OPTIONAL)
    _set_type(value, package, kind)
    return entry.name


def _set_type(field: descriptor_pb2.FieldDescriptorProto, package: str, kind: str = "string") -> None:
    if kind in _SCALARS:
        field.type = _SCALARS[kind]
    else:
        field.type = field.TYPE_MESSAGE
        field.type_name = f".{package}.{kind}"
