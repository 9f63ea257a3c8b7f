"""How a type is described: once, as data.

From one description come validation, pruning and defaults (``structural``), OpenAPI v2 and v3
(``discovery``), strategic merge patch (``patching``) and, later, server-side apply. ``apiVersion``,
``kind`` and ``metadata`` are common to all kinds and are not described here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

ListType = Literal["atomic", "set", "map"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """Any value. The subclasses say which."""

    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class String(Schema):
    """``format`` is ``byte`` (base64) or ``date-time`` (RFC 3339), or empty."""

    format: str = ""
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
class Array(Schema):
    """``atomic`` lists change as a whole; ``map`` lists have one item for each value of ``map_keys``."""

    items: Schema
    list_type: ListType = "atomic"
    map_keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Map(Schema):
    """Any keys, all values alike."""

    values: Schema


@dataclass(frozen=True, slots=True, kw_only=True)
class Object(Schema):
    """A struct.

    ``old_spellings`` maps a property's former name to its present one: accepted with a warning,
    stored and answered under the present name, and listed as deprecated where old clients look.
    """

    fields: Mapping[str, Schema]
    required: tuple[str, ...] = ()
    old_spellings: Mapping[str, str] = field(default_factory=dict)
