"""Between protobuf messages and the values of JSON, by the rules of Go's types.

Most fields are the same in both. Times, extra values and sets of fields are messages on one side and plain values on
the other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import orjson
from google.protobuf.descriptor import Descriptor, FieldDescriptor

from clusterregistry.apimachinery.codecs import json_codec
from clusterregistry.apimachinery.codecs.decoded import DecodeError
from clusterregistry.apimachinery.codecs.kubernetes_messages import ALWAYS

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def from_message(message: Any) -> dict[str, Any]:
    """The value that JSON has for a message. Raises DecodeError for a time or a set of fields that is none."""
    found = ((field.name, field.read(message)) for field in _fields(message.DESCRIPTOR))
    return {name: value for name, value in found if value is not None}


def into_message(message: Any, value: Mapping[str, Any]) -> None:
    """Fills a message from the value that JSON has for it; what the message has no field for is passed over."""
    for field in _fields(message.DESCRIPTOR):
        given = value.get(field.name)
        if given is not None:
            field.write(message, given)


@dataclass(frozen=True, slots=True)
class _Field:
    """How a field is read from a message (None: JSON leaves it out) and written into one."""

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
    """A message without anything in it is Go's zero time, which JSON leaves out."""
    if not message.HasField("seconds") and not message.HasField("nanos"):
        return None
    try:
        time = _EPOCH + timedelta(seconds=message.seconds)
    except OverflowError:
        raise DecodeError(f"{message.seconds} seconds since 1970 is no time that can be told") from None
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
"""The messages that are no objects in JSON."""
