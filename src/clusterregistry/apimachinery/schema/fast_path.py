"""Fast checks of values against their schema, each one call into msgspec.

A value that passes is valid. Any other goes through ``validate``, ``prune`` or ``object_meta``, which have the messages
of kube-apiserver. Property tests compare the fast path with these.
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
"""Maps the schema of a scalar to its type in Python."""

_INT32 = (-(2**31), 2**31 - 1)
_INT64 = (-(2**63), 2**63 - 1)
_Integer64 = Annotated[int, msgspec.Meta(ge=_INT64[0], le=_INT64[1])]


class _Base64:
    """The type of base64 texts, which a function checks."""


class _Time:
    """The type of times, which a function checks: its cache is faster than a pattern."""


class _NonzeroTime:
    """The type of times other than Go's zero time, which ``native`` drops."""


class _MicroTime:
    """The same with six decimals."""


class _Recognised(_Base64, _Time, _NonzeroTime, _MicroTime):
    """The instance that msgspec gets for a valid text of any of these types."""


_FORMATS: dict[type, Callable[[str], bool]] = {
    _Base64: is_base64,
    _Time: times.is_usual,
    _NonzeroTime: lambda text: times.is_usual(text) and text != times.ZERO,
    _MicroTime: lambda text: times.is_usual_micro(text) and text != times.ZERO_MICRO,
}
_RECOGNISED = _Recognised()
_UNLIKE = (msgspec.ValidationError, UnicodeEncodeError)
"""The errors of msgspec; the latter for a lone surrogate."""


class _NeverRecognised:
    """The type of texts that only ``validate`` can check: no value passes."""


def compile_recognition(schema: schemas.Object) -> Recognise:
    """A function that checks types, fields and formats of a value. Unknown fields fail.

    Nulls and former spellings of fields fail, too. The uniqueness of list items is not checked.
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
    """A function that checks types and fields alone: formats are most of the work, and pruning does not need them.

    Properties in ``untouched`` may have any value.
    """
    struct = _struct(schema, _bare_type, untouched)
    convert = msgspec.convert

    def recognise(value: Any) -> bool:
        try:
            convert(value, struct)  # without the hook, which has a cost even if it is never called
        except _UNLIKE:
            return False
        return True

    return recognise


def compile_struct_recognition(schema: schemas.Object, *, untouched: frozenset[str]) -> Recognise:
    """A function that checks that an object of a native kind has the form of its struct: ``native`` changes nothing.

    Some other objects have it, too. Properties in ``untouched`` may have any value.
    """
    struct = _native_struct(schema, untouched)
    convert = msgspec.convert

    def recognise(value: Any) -> bool:
        try:
            convert(value, struct, dec_hook=_formatted)
        except _UNLIKE:
            return False
        return True

    return recognise


def _native_struct(schema: schemas.Object, untouched: frozenset[str] = frozenset()) -> type[msgspec.Struct]:
    """The struct, in which a field that is empty is absent, unless Go writes it all the same."""
    written = schema.required + schema.always_written
    kept = written + schema.pointers
    types: dict[str, Any] = {name: _native_type(field, is_kept=name in kept) for name, field in schema.fields.items()}
    types |= {name: types[name] | None for name in written if _is_null_when_empty(schema.fields[name])}
    types |= dict.fromkeys(untouched, Any)
    fields = [
        (f"field{number}", type_, msgspec.field(name=name, **({} if name in written else {"default": None})))
        for number, (name, type_) in enumerate(types.items())
    ]
    return msgspec.defstruct("Recognised", fields, kw_only=True, forbid_unknown_fields=True, gc=False)


def _native_type(schema: Schema, *, is_kept: bool) -> Any:
    match schema:
        case schemas.Object():
            return _native_struct(schema)
        case schemas.Map(values=values):
            found: Any = dict[str, _native_type(values, is_kept=True)]  # type: ignore[misc]  # made for msgspec
        case schemas.Array(items=items):
            found = list[_native_type(items, is_kept=True)]  # type: ignore[misc]  # as above
        case schemas.String(format=""):
            found = str
        case schemas.String(format="date-time"):
            return _MicroTime if schema.type_name == schemas.MICRO_TIME else _NonzeroTime
        case schemas.Integer():
            least, most = _INT32 if schema.format == "int32" else _INT64
            return Annotated[int, Meta(ge=least if is_kept else 1, le=most)]
        case schemas.Boolean() if is_kept:
            return bool
        case _:
            return _NeverRecognised
    return found if is_kept else Annotated[found, Meta(min_length=1)]


def _is_null_when_empty(schema: Schema) -> bool:
    return isinstance(schema, schemas.Map | schemas.Array) or (
        isinstance(schema, schemas.String) and schema.format != ""
    )


def _formatted(wanted: type, value: Any) -> Any:
    """Msgspec's hook for types of ours: returns an instance of the type for a valid text."""
    is_good = _FORMATS.get(wanted)
    if is_good and type(value) is str and is_good(value):
        return _RECOGNISED
    raise ValueError(value)  # msgspec makes a ValidationError of it


def _struct(schema: schemas.Object, leaf: Leaf, untouched: frozenset[str] = frozenset()) -> type[msgspec.Struct]:
    known = {name: field for name, field in schema.fields.items() if name not in schema.old_spellings}
    types: dict[str, Any] = {name: _type(field, leaf) for name, field in known.items()} | dict.fromkeys(untouched, Any)
    fields = [
        # Names on the wire need not be identifiers in Python.
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
        case schemas.NumberOrString():
            return str | int | float
        case _:  # a value of any type
            return str | bool | int


def _exact_type(schema: Schema) -> Any:
    match schema:
        case schemas.String():
            return _string(schema)
        case schemas.Integer():
            return _integer(schema)
        case schemas.IntOrString():
            return Union[str, _Integer64]  # noqa: UP007 - an annotated type has no |
        case schemas.NumberOrString():
            return Union[str, float, _Integer64]  # noqa: UP007 - as above
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


# Metadata

_Text = Annotated[str, Meta(min_length=1)]
_Texts = Annotated[dict[str, str], Meta(min_length=1)]
_Number = Annotated[int, Meta(ge=1, le=2**63 - 1)]


class _MetadataTime:
    """The type of times in the form in which we write them, except for Go's zero time."""


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
    """Metadata without rare fields: owners, deletion, finalizers, and fields that validation refuses."""

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
    """Whether decoding returns equal metadata without warnings."""
    try:
        if "creationTimestamp" in metadata:
            msgspec.convert(metadata, _Metadata, dec_hook=_usual_time)
        else:  # a new object has no times, and the hook has a cost even if it is never called
            msgspec.convert(metadata, _Metadata)
    except (msgspec.ValidationError, UnicodeEncodeError):  # the latter for half of a surrogate pair
        return False
    return True


def _usual_time(_wanted: type, value: Any) -> _MetadataTime:
    """Msgspec's hook for times."""
    if type(value) is str and times.is_usual(value) and value != times.ZERO:
        return _A_TIME
    raise ValueError(value)  # msgspec makes a ValidationError of it
