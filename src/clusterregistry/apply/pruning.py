"""What goes when a manager applies less than before.

A field goes when it was applied before and nobody owns it any more. With it goes the struct that held it, unless
something else is left in there; and what nobody ever owned stays. Three steps lead there, the second of them for each
version in which fields are owned.
"""

from __future__ import annotations

from typing import Any

from clusterregistry.apis.meta import schemas
from clusterregistry.apply.elements import FIELD
from clusterregistry.apply.field_sets import Fields, difference, intersection, union, with_structs
from clusterregistry.apply.owning import owned
from clusterregistry.apply.removing import remove

Object = dict[str, Any]


class Pruning:
    """Finds what to prune of an object, given the fields that its manager applied before."""

    def __init__(self, schema: schemas.Object, merged: Object, before: Fields) -> None:
        self._schema = schema
        self._merged = merged
        self._before = with_structs(before, schema)
        # Nothing else can go, so nothing else is looked at.
        self._parts = frozenset(element.removeprefix(FIELD) for element in before)
        self._everything = self._fields(schema, merged)

    def without(self) -> Object:
        """The merged object without all that was applied before."""
        return remove(self._schema, self._merged, self._before) or {}

    def with_owned(self, schema: schemas.Object, merged: Object, pruned: Object, owned_now: Fields) -> Object:
        """The pruned object with what is owned now back in it, all in the version of the given schema."""
        everything = self._everything if merged is self._merged else self._fields(schema, merged)
        kept = union(self._fields(schema, pruned), with_structs(owned_now, schema))
        return remove(schema, merged, difference(everything, kept)) or {}

    def given_up(self, pruned: Object) -> Fields:
        """The fields to remove from the merged object: the pruned one lacks them and they were applied before."""
        return intersection(difference(self._everything, self._fields(self._schema, pruned)), self._before)

    def _fields(self, schema: schemas.Object, obj: Object) -> Fields:
        if schema is self._schema:
            obj = {name: value for name, value in obj.items() if name in self._parts}
        return with_structs(owned(schema, obj), schema)
