"""Removes the fields that a manager gives up when it applies less than before.

A field is removed if the manager applied it before and no entry has it now. The struct that held it is removed too,
unless something else is left in there. A field that never had a manager stays. ``Pruning`` has three steps, the second
of which is repeated for each version with entries.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from clusterregistry.apimachinery.fieldmanager.field_set import (
    Fields,
    below,
    difference,
    intersection,
    is_atomic,
    is_member,
    union,
    with_structs,
)
from clusterregistry.apimachinery.fieldmanager.path_element import FIELD, NoIdentityError, element_of
from clusterregistry.apimachinery.fieldmanager.to_field_set import Owned
from clusterregistry.apimachinery.schema import schemas
from clusterregistry.apimachinery.schema.schemas import Array, Schema

Object = dict[str, Any]


class Version(NamedTuple):
    """One version of a kind: its schema, and the function from an object to its fields."""

    schema: schemas.Object
    owned: Owned


class Pruning:
    """Finds the fields to prune from an object, given those that its manager applied before."""

    def __init__(self, version: Version, merged: Object, before: Fields) -> None:
        self._version = version
        self._merged = merged
        self._before = with_structs(before, version.schema)
        # No other field can be pruned, so no other is looked at.
        self._parts = frozenset(element.removeprefix(FIELD) for element in before)
        self._everything = self._fields(version, merged)

    def without(self) -> Object:
        """Step 1: the merged object without all that was applied before."""
        return remove(self._version.schema, self._merged, self._before) or {}

    def with_owned(self, version: Version, merged: Object, pruned: Object, owned_now: Fields) -> Object:
        """Step 2: the pruned object with all fields of entries put back, in the given version."""
        everything = self._everything if merged is self._merged else self._fields(version, merged)
        kept = union(self._fields(version, pruned), with_structs(owned_now, version.schema))
        return remove(version.schema, merged, difference(everything, kept)) or {}

    def given_up(self, pruned: Object) -> Fields:
        """Step 3: the fields to remove from the merged object: applied before, and absent from the pruned one."""
        return intersection(difference(self._everything, self._fields(self._version, pruned)), self._before)

    def _fields(self, version: Version, obj: Object) -> Fields:
        if version.schema is self._version.schema:
            obj = {name: value for name, value in obj.items() if name in self._parts}
        return with_structs(version.owned(obj), version.schema)


# Removal


def remove(schema: Schema | None, value: Any, fields: Fields) -> Any:
    """The value without these fields. Shares all other parts.

    A struct, map or list of which nothing is left, and which is not one of the fields itself, becomes None.
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
    """The value with ``{}`` and ``[]`` for the nulls that ``remove`` left: converters need not handle null."""
    if value is None:
        return [] if type(schema) is Array else {} if type(schema) in (schemas.Object, schemas.Map) else None
    if type(value) is dict:
        return {name: empties_for_nulls(below(schema, FIELD + name), part) for name, part in value.items()}
    return value


def nulls_for_empties(value: Any) -> Any:
    """Reverts ``empties_for_nulls`` after a conversion."""
    if type(value) is dict:
        return {name: nulls_for_empties(part) for name, part in value.items()} or None
    return None if value == [] else value
