"""The versions of a kind: what changes from one object to another, in the fields of each version.

Every entry of managed fields names its fields in the version of its write. So an object is converted to the
version of an entry before the entry is compared with it. Each version's schema is compiled once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from clusterregistry.apimachinery.fieldmanager.compare import NO_CHANGE, Comparison, compile_compare
from clusterregistry.apimachinery.fieldmanager.field_set import (
    LEAF,
    SELF,
    Fields,
    compile_reconcile,
    difference,
    union,
)
from clusterregistry.apimachinery.fieldmanager.managed_fields import Entries, Entry
from clusterregistry.apimachinery.fieldmanager.merge import settled
from clusterregistry.apimachinery.fieldmanager.prune import (
    Pruning,
    Version,
    empties_for_nulls,
    nulls_for_empties,
    remove,
)
from clusterregistry.apimachinery.fieldmanager.to_field_set import compile_to_field_set
from clusterregistry.apimachinery.schema import schemas

Object = dict[str, Any]
Convert = Callable[[Object], Object]

_NEVER_OWNED = frozenset(
    (
        "namespace",
        "creationTimestamp",
        "selfLink",
        "uid",
        "clusterName",
        "generation",
        "managedFields",
        "resourceVersion",
    )
)
"""Fields of the metadata without a manager. ``apiVersion``, ``kind`` and the name have none either, see ``_NAME``."""

_NAME: Fields = {"f:metadata": {SELF: LEAF, "f:name": LEAF}}
"""Fields of every object that no entry has. Pruning needs them, or it would remove the metadata."""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """One version of a kind: the schema of whole objects, and their conversion to and from the stored version."""

    schema: schemas.Object
    to_storage: Convert
    from_storage: Convert


class Versions:
    """The versions of a kind, for writes in one of them through one endpoint."""

    def __init__(self, views: Mapping[str, View], *, api_version: str, reset_fields: frozenset[str]) -> None:
        self._views = views
        self.api_version = api_version
        self.schema = views[api_version].schema
        unreached = _tree_of((*reset_fields, "apiVersion", "kind"))
        hidden = {"metadata": dict.fromkeys(_NEVER_OWNED), **unreached}
        unclaimed = {"metadata": dict.fromkeys((*_NEVER_OWNED, "name")), **unreached}
        self._compare = {version: compile_compare(view.schema, hidden) for version, view in views.items()}
        self._reconcile = {version: compile_reconcile(view.schema) or _unchanged for version, view in views.items()}
        self._versions = {name: Version(view.schema, compile_to_field_set(view.schema)) for name, view in views.items()}
        self.claimed = compile_to_field_set(self.schema, unclaimed)
        """The fields that a configuration claims for its manager."""

    def change(self, before: Object, after: Object) -> Change:
        comparison = self._compare[self.api_version](_with_metadata(before), _with_metadata(after))
        return Change(self, before, after, comparison)

    def compare_in(self, version: str, before: Object, after: Object) -> Comparison:
        """Compares two objects after conversion to another version."""
        old, new = (_with_metadata(self._convert(obj, self.api_version, version)) for obj in (before, after))
        return self._compare[version](old, new)

    def reconcile(self, entries: Entries) -> list[Entry]:
        """The entries of versions that still exist, with fields that fit the version's schema."""
        reconciled = []
        for entry in entries:
            reconcile, fields = self._reconcile.get(entry["apiVersion"]), entry["fieldsV1"]
            if reconcile and (fitting := reconcile(fields)):
                reconciled.append(entry if fitting is fields else {**entry, "fieldsV1": fitting})
        return reconciled

    def prune(self, merged: Object, entries: Entries, *, claimed: Fields, last: Entry) -> Object:
        """The merged object without the fields that its manager has given up and that no other entry has.

        ``last`` is the manager's entry of its last apply, one of ``entries``; ``claimed`` are the fields of this one.
        Every version with entries is pruned in turn.
        """
        before, version = last["fieldsV1"], last["apiVersion"]
        if version == self.api_version and (before == claimed or not difference(before, claimed)):
            return merged
        merged = self._convert(merged, self.api_version, version)
        pruning = Pruning(self._versions[version], merged, before)
        pruned, at = pruning.without(), version
        claim = {**last, "apiVersion": self.api_version, "fieldsV1": claimed}
        now = [claim if each is last else each for each in entries]
        for each, owned_now in _owned_by_version(now, version).items():
            converted = self._convert(merged, version, each), self._convert_pruned(pruned, at, each)
            pruned, at = pruning.with_owned(self._versions[each], *converted, owned_now), each
        gone = pruning.given_up(self._convert_pruned(pruned, at, version))
        left = remove(self._views[version].schema, merged, gone) if gone else merged
        return self._convert(left, version, self.api_version)

    def _convert_pruned(self, pruned: Object, version: str, other: str) -> Object:
        """Converts a pruned object. Structs that pruning emptied stay until the end: their managers keep them."""
        if version == other:
            return pruned
        converted = self._convert(empties_for_nulls(self._views[version].schema, pruned), version, other)
        return nulls_for_empties(converted) or {}

    def _convert(self, obj: Object, version: str, other: str) -> Object:
        if version == other:
            return obj
        settled_obj = settled(self._views[version].schema, obj)
        return self._views[other].from_storage(self._views[version].to_storage(settled_obj))


class Change(NamedTuple):
    """Two objects in the version of a write, and the fields that differ between them."""

    versions: Versions
    before: Object
    after: Object
    comparison: Comparison

    def comparison_for(self, entry: Entry) -> Comparison:
        """The fields that differ, in the version of an entry."""
        version, comparison = entry["apiVersion"], self.comparison
        if version == self.versions.api_version or comparison == NO_CHANGE:
            return comparison
        return self.versions.compare_in(version, self.before, self.after)

    def release(self, entries: Entries) -> list[Entry]:
        """The entries without the fields that differ. An entry without fields is dropped."""
        comparison, own = self.comparison, self.versions.api_version
        if comparison == NO_CHANGE:
            return list(entries)
        released = []
        for entry in entries:
            fields = entry["fieldsV1"]
            gained, removed = comparison if entry["apiVersion"] == own else self.comparison_for(entry)
            left = difference(fields, gained)
            if removed:
                left = difference(left, removed)
            if left:
                released.append(entry if left is fields else {**entry, "fieldsV1": left})
        return released


def _tree_of(paths: Iterable[str]) -> dict[str, Any]:
    """A tree of names from paths of names with dots between them."""
    tree: dict[str, Any] = {}
    for path in paths:
        *above, name = path.split(".")
        node = tree
        for each in above:
            node = node.setdefault(each, {})
        node[name] = None
    return tree


def stored_entries(obj: Object) -> Entries:
    """The entries of a stored object, which the server wrote itself."""
    return obj["metadata"].get("managedFields") or ()


def without_name(fields: Fields) -> Fields:
    """The fields without ``_NAME``. Faster than ``difference``, because ``_NAME`` has nothing but leaves."""
    metadata = fields.get("f:metadata")
    if metadata is None or (metadata and metadata.keys().isdisjoint(_NAME["f:metadata"])):
        return fields
    left, kept = dict(fields), dict(metadata)
    kept.pop(SELF, None)
    kept.pop("f:name", None)
    if kept:
        left["f:metadata"] = kept
    else:
        del left["f:metadata"]
    return left


def _owned_by_version(entries: Entries, first: str) -> dict[str, Fields]:
    """The fields of all entries by their version, beginning with ``first``."""
    owned_now = {first: _NAME}
    for entry in entries:
        version = entry["apiVersion"]
        owned_now[version] = union(owned_now.get(version, _NAME), entry["fieldsV1"])
    return owned_now


def _with_metadata(obj: Object) -> Object:
    """An object without metadata is compared as if it had empty metadata: only fields in the metadata can differ."""
    return obj if obj.get("metadata") else {**obj, "metadata": {}}


def _unchanged(fields: Fields) -> Fields:
    return fields
