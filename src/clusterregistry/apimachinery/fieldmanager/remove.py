"""Taking fields out of a value, or keeping nothing but them."""

from __future__ import annotations

from typing import Any

from clusterregistry.apimachinery.fieldmanager.field_set import Fields, below, is_atomic, is_member
from clusterregistry.apimachinery.fieldmanager.list_items import NoIdentityError, element_of
from clusterregistry.apimachinery.fieldmanager.path_element import FIELD
from clusterregistry.apimachinery.schema import schemas
from clusterregistry.apimachinery.schema.schemas import Array, Schema


def remove(schema: Schema | None, value: Any, fields: Fields) -> Any:
    """The value without these fields. What is not concerned is shared.

    A container of which nothing is left, and which is not among the fields itself, is None.
    """
    if is_atomic(schema):
        return None
    if type(schema) is Array and type(value) is list:
        return _list_without(schema, value, fields) or None
    if type(schema) in (schemas.Object, schemas.Map) and type(value) is dict:
        return _map_without(schema, value, fields) or None  # type: ignore[arg-type]  # not None: it has a type
    return value


def _map_without(schema: Schema, value: dict[str, Any], fields: Fields) -> dict[str, Any]:
    kept = {}
    for name, part in value.items():
        node = fields.get(FIELD + name)
        if node is None:
            kept[name] = part
        elif not is_member(node):
            kept[name] = remove(below(schema, FIELD + name), part, node)
    return kept


def _list_without(schema: Array, value: list[Any], fields: Fields) -> list[Any]:
    kept = []
    for item in value:
        node = _node(schema, item, fields)
        if node is None:
            kept.append(item)
        elif not is_member(node):
            kept.append(remove(schema.items, item, node))
    return kept


def _node(schema: Array, item: Any, fields: Fields) -> Fields | None:
    try:
        return fields.get(element_of(schema, item))
    except NoIdentityError:
        return None


def empties_for_nulls(schema: Schema | None, value: Any) -> Any:
    """The value with ``{}`` and ``[]`` where ``remove`` has left nothing: converters need not expect null."""
    if value is None:
        return [] if type(schema) is Array else {} if type(schema) in (schemas.Object, schemas.Map) else None
    if type(value) is dict:
        return {name: empties_for_nulls(below(schema, FIELD + name), part) for name, part in value.items()}
    return value


def nulls_for_empties(value: Any) -> Any:
    """The way back, after conversion."""
    if type(value) is dict:
        return {name: nulls_for_empties(part) for name, part in value.items()} or None
    return None if value == [] else value


def extract(schema: Schema | None, value: Any, fields: Fields) -> Any:
    """Only these fields of the value, with the keys that tell items apart; None where there are none."""
    if not value or is_atomic(schema):
        return value
    if type(schema) is Array and type(value) is list:
        return _extracted_items(schema, value, fields) or None
    if type(schema) in (schemas.Object, schemas.Map) and type(value) is dict:
        return _extracted_fields(schema, value, fields) or None
    return value


def _extracted_fields(schema: Schema | None, value: dict[str, Any], fields: Fields) -> dict[str, Any]:
    return {
        name: part if not node else extract(below(schema, FIELD + name), part, node)
        for name, part in value.items()
        if (node := fields.get(FIELD + name)) is not None
    }


def _extracted_items(schema: Array, value: list[Any], fields: Fields) -> list[Any]:
    kept = []
    for item in value:
        node = _node(schema, item, fields)
        if node is None:
            continue
        keys = {name: item[name] for name in schema.map_keys if name in item}
        kept.append(keys | (extract(schema.items, item, node) or {}) if node and keys else item)
    return kept
