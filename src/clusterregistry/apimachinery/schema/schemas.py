"""Types as data: each type is described once.

Validation and pruning (``structural``), OpenAPI v2 and v3, strategic merge patch (``patch``) and server-side apply
(``fieldmanager``) all use the same description. A kind's own description leaves out ``apiVersion``, ``kind`` and
``metadata``, which all kinds share; ``object_meta_schema`` adds them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

ListType = Literal["atomic", "set", "map"]

MICRO_TIME = "v1.MicroTime"
"""The Go type of a time with six decimals; other times of native kinds are to the second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """Any value; subclasses are the types.

    ``type_name`` is the name of the Go type of a native kind, for messages and OpenAPI.
    """

    description: str = ""
    type_name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class String(Schema):
    """``format`` is ``byte`` (base64) or ``date-time`` (RFC 3339), or empty.

    ``default`` is the value of a list's key for items without the key.
    """

    format: str = ""
    default: str | None = None
    enum: tuple[str, ...] = ()
    max_length: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Integer(Schema):
    format: Literal["int32", "int64"] = "int64"
    minimum: int | None = None
    maximum: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Boolean(Schema):
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class IntOrString(Schema):
    """A number or a string, as quantities and ports are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberOrString(Schema):
    """A number, or a decimal number as a string, which no client rounds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Array(Schema):
    """``atomic`` lists change as a whole; ``map`` lists have one item for each value of ``map_keys``.

    ``merges_in_patches``: whether a strategic merge patch merges it, as an apply does, if it is not atomic.
    """

    items: Schema
    list_type: ListType = "atomic"
    map_keys: tuple[str, ...] = ()
    merges_in_patches: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Map(Schema):
    """Any keys, all values alike. An ``atomic`` one changes as a whole."""

    values: Schema
    atomic: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Object(Schema):
    """A struct.

    ``old_spellings`` maps a property's former name to its present one: accepted with a warning,
    stored and answered under the present name, and listed as deprecated where old clients look.
    An ``atomic`` struct changes as a whole.

    For a native kind, ``always_written`` names fields that a client may leave out and that are written anyway, and
    ``pointers`` scalar fields that are pointers in Go: an empty value of theirs is not the same as none.
    """

    fields: Mapping[str, Schema]
    atomic: bool = False
    required: tuple[str, ...] = ()
    always_written: tuple[str, ...] = ()
    pointers: tuple[str, ...] = ()
    old_spellings: Mapping[str, str] = field(default_factory=dict)
