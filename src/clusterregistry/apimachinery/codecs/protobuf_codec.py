"""Kubernetes' protobuf: ``application/vnd.kubernetes.protobuf``, for the kinds in ``protobuf_messages``.

A body is four magic bytes and an envelope: a message ``Unknown`` with the kind and the object's own message. kubectl
1.32 and later sends the kinds of Kubernetes so. Decoding returns the same value as the object's JSON.
"""

from __future__ import annotations

import binascii
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache, lru_cache
from typing import Any, NamedTuple

import orjson
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError as ParseError

from clusterregistry.apimachinery.bounded_cache import bounded_cache
from clusterregistry.apimachinery.codecs import json_codec
from clusterregistry.apimachinery.codecs.decoded import MAX_VALUES, TOO_MANY_VALUES, Decoded, DecodeError
from clusterregistry.apimachinery.codecs.protobuf_messages import ALWAYS, CLASSES, KINDS

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - all times are in UTC
_TO_THE_SECOND = len("1970-01-01T00:00:00")

MAGIC = b"k8s\x00"

_UNKNOWN = CLASSES["Unknown"]
_WATCH_EVENT = CLASSES["WatchEvent"]


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


def encode_event(kind: str, obj: dict[str, Any]) -> bytes:
    """One frame of a watch: its length in four bytes, and the message WatchEvent with the encoded object."""
    event = _WATCH_EVENT(type=kind)
    event.object.raw = encode(obj)
    message = bytes(event.SerializeToString(deterministic=True))
    return len(message).to_bytes(4, "big") + message


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
    fields = _fields(message.DESCRIPTOR)
    found = dict(fields.always)
    for field, given in message.ListFields():  # without those that are absent, which are most of them
        value = fields.by_name[field.name].read(given)
        if value is not None:
            found[field.name] = value
    return found


def into_message(message: Any, value: Mapping[str, Any]) -> None:
    """Fills a message from its JSON value; unknown fields are skipped."""
    fields = _fields(message.DESCRIPTOR).by_name
    for name, given in value.items():
        if given is not None and (field := fields.get(name)):
            field.write(message, given)


@dataclass(frozen=True, slots=True)
class _Field:
    """Reads the JSON value of a field's value (None: absent from JSON), and writes a field."""

    read: Callable[[Any], Any]
    write: Callable[[Any, Any], None]


class _Fields(NamedTuple):
    by_name: Mapping[str, _Field]
    always: Mapping[str, Any]
    """The fields that JSON has even if they are empty, with their empty values."""


@cache
def _fields(descriptor: Descriptor) -> _Fields:
    always = {name: descriptor.fields_by_name[name].default_value for name in ALWAYS.get(descriptor.name, ())}
    return _Fields({field.name: _field(field) for field in descriptor.fields}, always)


def _field(field: FieldDescriptor) -> _Field:
    name, of = field.name, field.message_type
    if of is not None and of.GetOptions().map_entry:
        return _map(name, of.fields_by_name["value"].message_type)
    if field.is_repeated:
        return _list(name, of)
    if of is not None:
        return _single(name, of)
    if field.type == FieldDescriptor.TYPE_BYTES:
        return _bytes(name)
    return _Field(_same, lambda message, value: setattr(message, name, value))


def _same(value: Any) -> Any:
    return value


def _bytes(name: str) -> _Field:
    """Bytes, which are base64 in JSON."""
    return _Field(
        lambda value: binascii.b2a_base64(value, newline=False).decode(),
        lambda message, value: setattr(message, name, binascii.a2b_base64(value)),
    )


def _single(name: str, of: Descriptor) -> _Field:
    load, store = _of(of)

    def write(message: Any, value: Any) -> None:
        below = getattr(message, name)
        below.SetInParent()
        store(below, value)

    return _Field(load, write)


def _list(name: str, of: Descriptor | None) -> _Field:
    if of is None:
        return _Field(list, lambda message, value: getattr(message, name).extend(value))
    load, store = _of(of)

    def write(message: Any, values: Any) -> None:
        items = getattr(message, name)
        for value in values:
            store(items.add(), value)

    return _Field(lambda items: [load(item) for item in items], write)


def _map(name: str, of: Descriptor | None) -> _Field:
    """Keys in order, as Go writes them."""
    if of is None:
        return _Field(
            lambda pairs: dict(sorted(pairs.items())), lambda message, value: getattr(message, name).update(value)
        )
    load, store = _of(of)

    def write(message: Any, values: Any) -> None:
        pairs = getattr(message, name)
        for key, value in values.items():
            below = pairs[key]  # which adds the key
            if value is not None:
                store(below, value)

    return _Field(lambda pairs: {key: load(pairs[key]) for key in sorted(pairs)}, write)


_Load = Callable[[Any], Any]
_Store = Callable[[Any, Any], None]


def _of(descriptor: Descriptor) -> tuple[_Load, _Store]:
    return _PLAIN.get(descriptor.name, (from_message, into_message))


def _read_time(message: Any) -> str | None:
    """An empty message is Go's zero time, which is absent from JSON."""
    to_the_second = _read_seconds(message)
    return None if to_the_second is None else f"{to_the_second}Z"


def _read_micro_time(message: Any) -> str | None:
    to_the_second = _read_seconds(message)
    return None if to_the_second is None else f"{to_the_second}.{message.nanos // 1000 % 1_000_000:06}Z"


def _read_seconds(message: Any) -> str | None:
    if not message.HasField("seconds") and not message.HasField("nanos"):
        return None
    try:
        return _text_of(message.seconds)
    except OverflowError:
        raise DecodeError(f"{message.seconds} seconds since 1970 is out of range for a time") from None


def _write_time(message: Any, text: str) -> None:
    message.seconds = _seconds_of(text[:_TO_THE_SECOND])
    message.nanos = int(text[_TO_THE_SECOND + 1 : -1]) * 1000 if len(text) > _TO_THE_SECOND + 1 else 0


@lru_cache(maxsize=4096)
def _text_of(seconds: int) -> str:
    """The time without a zone. Cached, as the inverse is: times are most of the work of a small object."""
    return (_EPOCH + timedelta(seconds=seconds)).isoformat(timespec="seconds")


@bounded_cache(4096)
def _seconds_of(text: str) -> int:
    return (datetime.fromisoformat(text) - _EPOCH) // timedelta(seconds=1)


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
    "MicroTime": (_read_micro_time, _write_time),
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
