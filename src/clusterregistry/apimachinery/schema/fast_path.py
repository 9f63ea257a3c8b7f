"""Recognises values that are exactly as their schema says, in one call into msgspec.

What is not recognised goes through ``validate`` and ``object_meta``, whose messages are those of kube-apiserver.
Property tests compare both ways.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal, Union

import msgspec
from msgspec import UNSET, Meta, UnsetType

from clusterregistry.apimachinery.meta import times
from clusterregistry.apimachinery.meta.base64_text import is_base64
from clusterregistry.apimachinery.schema import schemas
from clusterregistry.apimachinery.schema.schemas import Schema

Recognise = Callable[[Any], bool]
Leaf = Callable[[Schema], Any]
"""The type of what has no parts."""

_INT32 = (-(2**31), 2**31 - 1)
_INT64 = (-(2**63), 2**63 - 1)
_Integer64 = Annotated[int, msgspec.Meta(ge=_INT64[0], le=_INT64[1])]


class _Base64:
    """Stands for a format that takes a function to check."""


class _Time:
    """The same: a pattern would take longer, for what is known of a text is not looked at again."""


class _Recognised(_Base64, _Time):
    """Stands for a value of such a format."""


_FORMATS: dict[type, Callable[[str], bool]] = {_Base64: is_base64, _Time: times.is_usual}
_RECOGNISED = _Recognised()
_UNLIKE = (msgspec.ValidationError, UnicodeEncodeError)
"""What msgspec raises; the latter for half of a surrogate pair."""


class _NeverRecognised:
    """Stands for what a type cannot say."""


def compile_recognition(schema: schemas.Object) -> Recognise:
    """A function that tells whether a value has the types, fields and formats of the schema, and nothing else.

    No null is recognised, nor a former spelling of a field. Whether the items of a list are unique is not looked at.
    """
    struct = _struct(schema, _exact_type)
    convert = msgspec.convert

    def recognise(value: Any) -> bool:
        try:
            convert(value, struct, dec_hook=_formatted)
        except _UNLIKE:
            return False
        return True

    return recognise


def compile_shape_recognition(schema: schemas.Object, *, untouched: frozenset[str]) -> Recognise:
    """The same for types and fields alone, since formats are most of the work, and pruning does not ask for them.

    Properties in ``untouched`` may be there and be anything.
    """
    struct = _struct(schema, _bare_type, untouched)
    convert = msgspec.convert

    def recognise(value: Any) -> bool:
        try:
            convert(value, struct)  # without the hook, which costs something even where nothing calls it
        except _UNLIKE:
            return False
        return True

    return recognise


def _formatted(wanted: type, value: Any) -> Any:
    """Called for the types that are none of msgspec's, of which it wants to have instances."""
    is_good = _FORMATS.get(wanted)
    if is_good and type(value) is str and is_good(value):
        return _RECOGNISED
    raise ValueError(value)  # msgspec makes a ValidationError of it


def _struct(schema: schemas.Object, leaf: Leaf, untouched: frozenset[str] = frozenset()) -> type[msgspec.Struct]:
    known = {name: field for name, field in schema.fields.items() if name not in schema.old_spellings}
    types: dict[str, Any] = {name: _type(field, leaf) for name, field in known.items()} | dict.fromkeys(untouched, Any)
    fields = [
        # Named by number, since names on the wire need not be names in Python.
        (f"field{number}", type_, msgspec.field(name=name, **({} if name in schema.required else {"default": None})))
        for number, (name, type_) in enumerate(types.items())
    ]
    return msgspec.defstruct("Recognised", fields, kw_only=True, forbid_unknown_fields=True, gc=False)


def _type(schema: Schema, leaf: Leaf) -> Any:
    match schema:
        case schemas.Object():
            return _struct(schema, leaf)
        case schemas.Map(values=values):
            return dict[str, _type(values, leaf)]  # type: ignore[misc]  # made for msgspec, when the server starts
        case schemas.Array(items=items):
            return list[_type(items, leaf)]  # type: ignore[misc]  # as above
        case _:
            return leaf(schema)


def _bare_type(schema: Schema) -> Any:
    match schema:
        case schemas.String():
            return str
        case schemas.Integer():
            return int
        case schemas.Boolean():
            return bool
        case schemas.IntOrString():
            return str | int
        case _:  # anything: what has no parts needs no look
            return str | bool | int


def _exact_type(schema: Schema) -> Any:
    match schema:
        case schemas.String():
            return _string(schema)
        case schemas.Integer():
            return _integer(schema)
        case schemas.IntOrString():
            return Union[str, _Integer64]  # noqa: UP007 - an annotated type has no |
        case _:
            return _bare_type(schema)


def _string(schema: schemas.String) -> Any:
    if [bool(schema.enum), bool(schema.format), schema.max_length is not None].count(True) > 1:
        return _NeverRecognised
    if schema.enum:
        return Literal[schema.enum]
    if schema.format == "byte":
        return _Base64
    if schema.format == "date-time":
        return _Time
    return str if schema.max_length is None else Annotated[str, msgspec.Meta(max_length=schema.max_length)]


def _integer(schema: schemas.Integer) -> Any:
    least, most = _INT32 if schema.format == "int32" else _INT64
    low = least if schema.minimum is None else max(least, schema.minimum)
    high = most if schema.maximum is None else min(most, schema.maximum)
    return Annotated[int, msgspec.Meta(ge=low, le=high)]


_Text = Annotated[str, Meta(min_length=1)]
_Texts = Annotated[dict[str, str], Meta(min_length=1)]
_Number = Annotated[int, Meta(ge=1, le=2**63 - 1)]


class _MetadataTime:
    """Stands for a time that is not Go's zero, just as we write it. What is known of a text is not looked at again."""


_A_TIME = _MetadataTime()


class _Usual(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """No field is null, none is empty, none is unknown."""


class _Entry(_Usual):
    apiVersion: _Text | UnsetType = UNSET  # noqa: N815 - as on the wire, here and below
    fieldsType: _Text | UnsetType = UNSET  # noqa: N815
    fieldsV1: dict[str, Any] | UnsetType = UNSET  # noqa: N815
    manager: _Text | UnsetType = UNSET
    operation: _Text | UnsetType = UNSET
    subresource: _Text | UnsetType = UNSET
    time: _MetadataTime | UnsetType = UNSET


class _Metadata(_Usual):
    """Without what is rare: owners, deletion, finalizers, and what is kept only to be refused."""

    annotations: _Texts | UnsetType = UNSET
    creationTimestamp: _MetadataTime | UnsetType = UNSET  # noqa: N815
    generateName: _Text | UnsetType = UNSET  # noqa: N815
    generation: _Number | UnsetType = UNSET
    labels: _Texts | UnsetType = UNSET
    managedFields: Annotated[list[_Entry], Meta(min_length=1)] | UnsetType = UNSET  # noqa: N815
    name: _Text | UnsetType = UNSET
    namespace: _Text | UnsetType = UNSET
    resourceVersion: _Text | UnsetType = UNSET  # noqa: N815
    selfLink: _Text | UnsetType = UNSET  # noqa: N815
    uid: _Text | UnsetType = UNSET


def is_usual(metadata: dict[str, Any]) -> bool:
    """Whether decoding gives the very same, and nothing to say about it."""
    try:
        if "creationTimestamp" in metadata:
            msgspec.convert(metadata, _Metadata, dec_hook=_usual_time)
        else:  # no server has seen it, so there are no times; to name a hook costs something even if nothing calls it
            msgspec.convert(metadata, _Metadata)
    except (msgspec.ValidationError, UnicodeEncodeError):  # the latter for half of a surrogate pair
        return False
    return True


def _usual_time(_wanted: type, value: Any) -> _MetadataTime:
    """Called for what is to be a time, which is no type of msgspec's."""
    if type(value) is str and times.is_usual(value) and value != times.ZERO:
        return _A_TIME
    raise ValueError(value)  # msgspec makes a ValidationError of it
