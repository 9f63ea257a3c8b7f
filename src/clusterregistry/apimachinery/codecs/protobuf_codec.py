"""Kubernetes' protobuf: ``application/vnd.kubernetes.protobuf``, for the kinds in ``protobuf_messages``.

A body is four magic bytes and an envelope: a message ``Unknown`` with the kind and the object's own message. kubectl
1.32 and later sends the kinds of Kubernetes so. Decoding returns the same value as the object's JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import orjson
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError as ParseError

from clusterregistry.apimachinery.codecs import json_codec
from clusterregistry.apimachinery.codecs.decoded import MAX_VALUES, TOO_MANY_VALUES, Decoded, DecodeError
from clusterregistry.apimachinery.codecs.protobuf_messages import ALWAYS, CLASSES, KINDS

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

MAGIC = b"k8s\x00"

_UNKNOWN = CLASSES["Unknown"]


def decode(body: bytes, *, default_type: tuple[str, str] = ("", "")) -> Decoded:
    """Decodes a body to the object's JSON value. An envelope without a kind has ``default_type``.

    Raises DecodeError for a malformed body, and for a kind without a protobuf message.
    """
    if not body:
        raise DecodeError("empty data")
    if not body.startswith(MAGIC):
        prefix = " ".join(map(str, MAGIC))
        raise DecodeError(f"provided data does not appear to be a protobuf message, expected prefix [{prefix}]")
    if len(body) == len(MAGIC):
        raise DecodeError("empty body")
    envelope = _parsed(_UNKNOWN, body[len(MAGIC) :], "the envelope")
    if envelope.contentEncoding:
        raise DecodeError(f"the envelope's content encoding {envelope.contentEncoding!r} is not supported")
    api_version = envelope.typeMeta.apiVersion or default_type[0]
    kind = envelope.typeMeta.kind or default_type[1]
    name = KINDS.get((api_version, kind))
    if name is None:
        raise DecodeError(f"no kind {kind!r} of version {api_version!r} is sent as protobuf here")
    message = _parsed(CLASSES[name], envelope.raw, kind)
    return Decoded({"kind": kind, "apiVersion": api_version} | from_message(message))


def encode(value: dict[str, Any]) -> bytes:
    """Encodes an object of one of the kinds. Fields without a place in the kind's message are left out."""
    api_version, kind = value["apiVersion"], value["kind"]
    message = CLASSES[KINDS[api_version, kind]]()
    into_message(message, value)
    envelope = _UNKNOWN(raw=message.SerializeToString(deterministic=True))
    envelope.typeMeta.apiVersion, envelope.typeMeta.kind = api_version, kind
    return MAGIC + bytes(envelope.SerializeToString(deterministic=True))


def _parsed(cls: Any, data: bytes, what: str) -> Any:
    try:
        if has_more_values(data, cls.DESCRIPTOR, MAX_VALUES):
            raise DecodeError(TOO_MANY_VALUES)
        return cls.FromString(data)
    except (MalformedError, ParseError):
        raise DecodeError(f"the protobuf message of {what} is malformed or cut off") from None


# Messages and JSON values


def from_message(message: Any) -> dict[str, Any]:
    """The JSON value of a message. Raises DecodeError for an invalid time or field set."""
    found = ((field.name, field.read(message)) for field in _fields(message.DESCRIPTOR))
    return {name: value for name, value in found if value is not None}


def into_message(message: Any, value: Mapping[str, Any]) -> None:
    """Fills a message from its JSON value; unknown fields are skipped."""
    for field in _fields(message.DESCRIPTOR):
        given = value.get(field.name)
        if given is not None:
            field.write(message, given)


@dataclass(frozen=True, slots=True)
class _Field:
    """Reads a field from a message (None: absent from JSON) and writes it."""

    name: str
    read: Callable[[Any], Any]
    write: Callable[[Any, Any], None]


@cache
def _fields(descriptor: Descriptor) -> Sequence[_Field]:
    always = ALWAYS.get(descriptor.name, ())
    return tuple(_field(field, always=field.name in always) for field in descriptor.fields)


def _field(field: FieldDescriptor, *, always: bool) -> _Field:
    name, of = field.name, field.message_type
    if of is not None and of.GetOptions().map_entry:
        return _map(name, of.fields_by_name["value"].message_type)
    if field.is_repeated:
        return _list(name, of)
    if of is not None:
        return _single(name, of)
    return _scalar(name, pointer=field.has_presence, always=always)


def _scalar(name: str, *, pointer: bool, always: bool) -> _Field:
    def read(message: Any) -> Any:
        if pointer:
            return getattr(message, name) if message.HasField(name) else None
        value = getattr(message, name)
        return value if value or always else None

    def write(message: Any, value: Any) -> None:
        setattr(message, name, value)

    return _Field(name, read, write)


def _single(name: str, of: Descriptor) -> _Field:
    load, store = _of(of)

    def read(message: Any) -> Any:
        return load(getattr(message, name)) if message.HasField(name) else None

    def write(message: Any, value: Any) -> None:
        below = getattr(message, name)
        below.SetInParent()
        store(below, value)

    return _Field(name, read, write)


def _list(name: str, of: Descriptor | None) -> _Field:
    if of is None:
        return _Field(
            name,
            read=lambda message: list(getattr(message, name)) or None,
            write=lambda message, value: getattr(message, name).extend(value),
        )
    load, store = _of(of)

    def write(message: Any, values: Any) -> None:
        for value in values:
            store(getattr(message, name).add(), value)

    return _Field(name, lambda message: [load(item) for item in getattr(message, name)] or None, write)


def _map(name: str, of: Descriptor | None) -> _Field:
    """Keys in order, as Go writes them."""
    if of is None:
        return _Field(
            name,
            read=lambda message: dict(sorted(getattr(message, name).items())) or None,
            write=lambda message, value: getattr(message, name).update(value),
        )
    load, store = _of(of)

    def read(message: Any) -> Any:
        return {key: load(item) for key, item in sorted(getattr(message, name).items(), key=_first)} or None

    def write(message: Any, values: Any) -> None:
        for key, value in values.items():
            store(getattr(message, name)[key], value)

    return _Field(name, read, write)


def _first(pair: tuple[str, Any]) -> str:
    return pair[0]


_Load = Callable[[Any], Any]
_Store = Callable[[Any, Any], None]


def _of(descriptor: Descriptor) -> tuple[_Load, _Store]:
    return _PLAIN.get(descriptor.name, (from_message, into_message))


def _read_time(message: Any) -> str | None:
    """An empty message is Go's zero time, which is absent from JSON."""
    if not message.HasField("seconds") and not message.HasField("nanos"):
        return None
    try:
        time = _EPOCH + timedelta(seconds=message.seconds)
    except OverflowError:
        raise DecodeError(f"{message.seconds} seconds since 1970 is out of range for a time") from None
    return time.replace(tzinfo=None).isoformat(timespec="seconds") + "Z"


def _write_time(message: Any, text: str) -> None:
    message.seconds = int((datetime.fromisoformat(text) - _EPOCH).total_seconds())
    message.nanos = 0


def _read_field_set(message: Any) -> Any:
    return json_codec.decode(message.Raw, strict=False).value if message.Raw else None


def _write_field_set(message: Any, value: Any) -> None:
    message.Raw = orjson.dumps(value)


def _read_extra(message: Any) -> list[str]:
    return list(message.items)


def _write_extra(message: Any, values: Any) -> None:
    message.items.extend(values)


_PLAIN: Mapping[str, tuple[_Load, _Store]] = {
    "Time": (_read_time, _write_time),
    "FieldsV1": (_read_field_set, _write_field_set),
    "ExtraValue": (_read_extra, _write_extra),
}
"""The messages that are not objects in JSON."""


# Counting values before a message is parsed

_LEAST = 2
"""Bytes of the smallest field: its number and its length."""

_LONGEST_VARINT = 10
_VARINT, _FIXED64, _DELIMITED, _GROUP, _END_OF_GROUP, _FIXED32 = range(6)
_FIXED = {_FIXED64: 8, _FIXED32: 4, _GROUP: 0, _END_OF_GROUP: 0}
"""Bytes after the number of a field. The fields of a group count like those around it."""

_JSON = object()
"""Marks a field with a JSON document."""


class MalformedError(Exception):
    """The bytes are not a message."""


def has_more_values(data: bytes, descriptor: Descriptor, limit: int) -> bool:
    """Whether a message has more than ``limit`` values, with those of the messages and documents in it.

    Raises MalformedError for bytes that no parser accepts; the parser finds other errors.
    """
    if len(data) <= _LEAST * limit:
        return False
    found = 0
    pending: list[tuple[int, int, Any]] = [(0, len(data), descriptor)]
    while pending:
        at, end, of = pending.pop()
        if of is _JSON:
            found += json_codec.count_values(data[at:end], most=limit)
        else:
            found += _count_fields(data, at, end=end, below=_below(of), most=limit - found, pending=pending)
        if found > limit:
            return True
    return False


def _count_fields(  # noqa: PLR0913 - a place in the data, all but two by keyword
    data: bytes, at: int, *, end: int, below: Mapping[int, Any], most: int, pending: list[tuple[int, int, Any]]
) -> int:
    """Counts the fields of one message, and adds nested messages to ``pending``."""
    found = 0
    while at < end and found <= most:
        found += 1
        key, at = _varint(data, at)
        kind = key & 7
        if kind == _DELIMITED:
            size, at = _varint(data, at)
            if key >> 3 in below:
                found += 1
                pending.append((at, at + size, below[key >> 3]))
            at += size
        elif kind == _VARINT:
            _, at = _varint(data, at)
        elif kind in _FIXED:
            at += _FIXED[kind]
        else:
            raise MalformedError
    if at > end:
        raise MalformedError
    return found


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number and the position after it."""
    number = 0
    for index in range(_LONGEST_VARINT):
        if at + index >= len(data):
            raise MalformedError
        byte = data[at + index]
        number |= (byte & 0x7F) << 7 * index
        if byte < 0x80:  # noqa: PLR2004 - the last byte of the number
            return number, at + index + 1
    raise MalformedError


@cache
def _below(descriptor: Descriptor) -> Mapping[int, Any]:
    """The types of nested messages by field number."""
    if descriptor.name == "FieldsV1":
        return {descriptor.fields_by_name["Raw"].number: _JSON}
    return {field.number: field.message_type for field in descriptor.fields if field.message_type is not None}
