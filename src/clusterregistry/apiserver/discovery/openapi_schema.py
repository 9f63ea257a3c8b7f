"""Schemas as OpenAPI writes them, in the dialect of version 2 or of version 3."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from clusterregistry.apimachinery.schema.schemas import (
    Array,
    Boolean,
    Integer,
    IntOrString,
    Map,
    NumberOrString,
    Object,
    Schema,
    String,
)
from clusterregistry.apiserver.discovery.definitions import NamedSchema, NamedSchemas, Reference

Rendered = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """What differs between the versions of OpenAPI.

    ``has_alternatives``: whether ``anyOf`` and ``allOf`` are written.
    ``lists_old_spellings``: old kubectl validates against version 2 by itself and would refuse an object
    with a former name; newer ones leave validation to the server, so version 3 need not list them.
    """

    reference_prefix: str
    has_alternatives: bool
    lists_old_spellings: bool


V2 = Dialect(reference_prefix="#/definitions/", has_alternatives=False, lists_old_spellings=True)
V3 = Dialect(reference_prefix="#/components/schemas/", has_alternatives=True, lists_old_spellings=False)


def rendered_all(schemas: NamedSchemas, dialect: Dialect) -> dict[str, Rendered]:
    return {name: _named(named, dialect) for name, named in schemas.items()}


def rendered(schema: Schema, dialect: Dialect) -> Rendered:
    """The schema, and all that is written in place below it."""
    out = _typed(schema, dialect)
    if schema.description:
        out["description"] = schema.description
    return out


def _named(named: NamedSchema, dialect: Dialect) -> Rendered:
    out = rendered(named.schema, dialect)
    if named.kinds:
        out["x-kubernetes-group-version-kind"] = [kind.wire() for kind in named.kinds]
    return out


def _typed(schema: Schema, dialect: Dialect) -> Rendered:
    match schema:
        case String():
            return _string(schema)
        case Integer():
            return _integer(schema)
        case Boolean():
            return {"type": "boolean"}
        case IntOrString():
            return _int_or_string(dialect)
        case NumberOrString():
            return {"oneOf": [{"type": "string"}, {"type": "number"}]} if dialect.has_alternatives else {}
        case Array():
            return _array(schema, dialect)
        case Map():
            return {"type": "object", "additionalProperties": rendered(schema.values, dialect)}
        case Object():
            return _object(schema, dialect)
        case Reference():
            return _reference(schema, dialect)
        case _:
            return {}


def _string(schema: String) -> Rendered:
    out: Rendered = {"type": "string"}
    if schema.format:
        out["format"] = schema.format
    if schema.enum:
        out["enum"] = list(schema.enum)
    if schema.max_length is not None:
        out["maxLength"] = schema.max_length
    return out


def _integer(schema: Integer) -> Rendered:
    out: Rendered = {"type": "integer", "format": schema.format}
    if schema.minimum is not None:
        out["minimum"] = schema.minimum
    if schema.maximum is not None:
        out["maximum"] = schema.maximum
    return out


def _int_or_string(dialect: Dialect) -> Rendered:
    """Without a type: version 2 has no word for it, and clients then let any value through."""
    out: Rendered = {"x-kubernetes-int-or-string": True}
    if dialect.has_alternatives:
        out["anyOf"] = [{"type": "integer"}, {"type": "string"}]
    return out


def _array(schema: Array, dialect: Dialect) -> Rendered:
    out: Rendered = {
        "type": "array",
        "items": rendered(schema.items, dialect),
        "x-kubernetes-list-type": schema.list_type,
    }
    if schema.list_type == "map":
        out["x-kubernetes-list-map-keys"] = list(schema.map_keys)
    return out | _patch_directions(schema)


def _patch_directions(schema: Array) -> Rendered:
    """How a strategic merge patch treats the list. It knows one key for each list, so the first counts."""
    if schema.list_type == "atomic" or not schema.merges_in_patches:
        return {}
    if schema.list_type == "set":
        return {"x-kubernetes-patch-strategy": "merge"}
    return {"x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": schema.map_keys[0]}


def _object(schema: Object, dialect: Dialect) -> Rendered:
    out: Rendered = {"type": "object"}
    if schema.atomic:
        out["x-kubernetes-map-type"] = "atomic"
    properties = {name: rendered(field, dialect) for name, field in schema.fields.items()}
    required = schema.required
    if dialect.lists_old_spellings and schema.old_spellings:
        properties |= _old_spellings(schema, dialect)
        required = tuple(name for name in required if name not in schema.old_spellings.values())
    if properties:
        out["properties"] = properties
    if required:
        out["required"] = list(required)
    return out


def _old_spellings(schema: Object, dialect: Dialect) -> dict[str, Rendered]:
    return {
        old: _typed(schema.fields[new], dialect) | {"description": f"Deprecated: use {new}."}
        for old, new in schema.old_spellings.items()
    }


def _reference(schema: Reference, dialect: Dialect) -> Rendered:
    """A bare reference; wrapped in version 3, which ignores a description beside a reference."""
    reference = {"$ref": dialect.reference_prefix + schema.name}
    if dialect.has_alternatives and schema.description:
        return {"allOf": [reference]}
    return dict(reference)
