"""What goes when a manager applies less than before.

A field goes when it was applied before and nobody owns it any more. With it goes the struct that held it, unless
something else is left in there; and what nobody ever owned stays. Three steps lead there, the second of them for each
version in which fields are owned.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from clusterregistry.apimachinery.fieldmanager.field_set import Fields, difference, intersection, union, with_structs
from clusterregistry.apimachinery.fieldmanager.path_element import FIELD
from clusterregistry.apimachinery.fieldmanager.remove import remove
from clusterregistry.apimachinery.fieldmanager.to_field_set import Owned
from clusterregistry.apimachinery.schema import schemas

Object = dict[str, Any]


class Version(NamedTuple):
    """One version of a kind: its schema, and what an object in it claims."""

    schema: schemas.Object
    owned: Owned


class Pruning:
    """Finds what to prune of an object, given the fields that its manager applied before."""

    def __init__(self, version: Version, merged: Object, before: Fields) -> None:
        self._version = version
        self._merged = merged
        self._before = with_structs(before, version.schema)
        # Nothing else can go, so nothing else is looked at.
        self._parts = frozenset(element.removeprefix(FIELD) for element in before)
        self._everything = self._fields(version, merged)

    def without(self) -> Object:
        """The merged object without all that was applied before."""
        return remove(self._version.schema, self._merged, self._before) or {}

    def with_owned(self, version: Version, merged: Object, pruned: Object, owned_now: Fields) -> Object:
        """The pruned object with what is owned now back in it, all in the given version."""
        everything = self._everything if merged is self._merged else self._fields(version, merged)
        kept = union(self._fields(version, pruned), with_structs(owned_now, version.schema))
        return remove(version.schema, merged, difference(everything, kept)) or {}

    def given_up(self, pruned: Object) -> Fields:
        """The fields to remove from the merged object: the pruned one lacks them and they were applied before."""
        return intersection(difference(self._everything, self._fields(self._version, pruned)), self._before)

    def _fields(self, version: Version, obj: Object) -> Fields:
        if version.schema is self._version.schema:
            obj = {name: value for name, value in obj.items() if name in self._parts}
        return with_structs(version.owned(obj), version.schema)
