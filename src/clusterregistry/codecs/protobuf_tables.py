"""Protobuf messages from a table of their fields, where all that is needed of an API is a handful of messages.

A message is ``"name:number:type ..."``; no type is a string, ``[]`` repeats, capitals are messages of the same table.
Fields that the table does not have are skipped when a message is read. An enumeration travels as an ``int32`` does.
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
        message.field.extend(_field(package, text) for text in fields.split())
    return file


def _field(package: str, text: str) -> descriptor_pb2.FieldDescriptorProto:
    name, number, kind = (*text.split(":"), "string")[:3]
    field = descriptor_pb2.FieldDescriptorProto(name=name, number=int(number))
    field.label = field.LABEL_REPEATED if kind.startswith("[]") else field.LABEL_OPTIONAL
    kind = kind.removeprefix("[]")
    if kind in _SCALARS:
        field.type = _SCALARS[kind]
    else:
        field.type = field.TYPE_MESSAGE
        field.type_name = f".{package}.{kind}"
    return field
