"""Protobuf before it is parsed: how many values a message has.

The parser makes an object of some hundred bytes of each empty message, which takes two bytes on the wire. So a large
message is counted first, by the wire format alone and as JSON is counted: every field is a value, and one that is a
message is another for itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from google.protobuf.descriptor import Descriptor

from clusterregistry.apimachinery.codecs import json_codec

_LEAST = 2
"""Bytes that a field takes: its number and its length."""

_LONGEST_VARINT = 10
_VARINT, _FIXED64, _DELIMITED, _GROUP, _END_OF_GROUP, _FIXED32 = range(6)
_FIXED = {_FIXED64: 8, _FIXED32: 4, _GROUP: 0, _END_OF_GROUP: 0}
"""Bytes behind the number of a field. What is in a group counts like what is around it."""

_JSON = object()
"""Stands for a field whose bytes are a JSON document."""


class MalformedError(Exception):
    """The bytes are no message."""


def has_more_values(data: bytes, descriptor: Descriptor, limit: int) -> bool:
    """Whether a message has more values than ``limit``, those of the messages and documents in it included.

    Raises MalformedError for what no parser would take; other mistakes are left to the parser.
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
    """The fields of one message; what has to be counted in them is left in ``pending``."""
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
    """A number and where it ends."""
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
    """What the numbers of fields that hold further values stand for."""
    if descriptor.name == "FieldsV1":
        return {descriptor.fields_by_name["Raw"].number: _JSON}
    return {field.number: field.message_type for field in descriptor.fields if field.message_type is not None}
