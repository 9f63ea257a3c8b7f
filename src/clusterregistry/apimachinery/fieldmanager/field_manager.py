"""Who owns which field after a write: the one entrance to this package for those who write objects.

Two kinds of writes. An update (create, PUT, patches) has made its object already: whoever changed a field
owns it now. An apply says what a manager wants: it is merged into the live object, and who else owns a field
that it would change has to be overruled by force.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from clusterregistry.apimachinery.bounded_cache import bounded_cache
from clusterregistry.apimachinery.fieldmanager import last_applied, managed_fields
from clusterregistry.apimachinery.fieldmanager.compare import NO_CHANGE, Comparison, compile_compare
from clusterregistry.apimachinery.fieldmanager.errors import InvalidConfigurationError, conflicts_error
from clusterregistry.apimachinery.fieldmanager.field_set import (
    LEAF,
    SELF,
    Fields,
    compile_reconcile,
    difference,
    intersection,
    union,
)
from clusterregistry.apimachinery.fieldmanager.managed_fields import (
    APPLY,
    UPDATE,
    Entries,
    Entry,
    Identity,
    MalformedEntryError,
)
from clusterregistry.apimachinery.fieldmanager.merge import compile_merge, is_settled, settled
from clusterregistry.apimachinery.fieldmanager.prune import (
    Pruning,
    Version,
    empties_for_nulls,
    nulls_for_empties,
    remove,
)
from clusterregistry.apimachinery.fieldmanager.to_field_set import compile_to_field_set
from clusterregistry.apimachinery.fieldmanager.validate import compile_plainness, problems_text
from clusterregistry.apimachinery.schema import schemas

Object = dict[str, Any]
Convert = Callable[[Object], Object]

_BEFORE_FIRST_APPLY = "before-first-apply"
_UNKNOWN_MANAGER = "unknown"

_MANAGERS = 256
"""Whose identities are remembered. Few write to a registry, and they do so all the time."""

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
"""Of the metadata. Nor are ``apiVersion``, ``kind`` and the name, see ``_NAME``."""

_SET_BY_DELETION = ("deletionTimestamp", "deletionGracePeriodSeconds")
"""No object is created with them."""

_NAME: Fields = {"f:metadata": {SELF: LEAF, "f:name": LEAF}}
"""Every object has them and nobody owns them, but while a set is worked on they keep the metadata from being pruned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """One version of a kind: the schema of whole objects, and the way to other versions, through the stored one."""

    schema: schemas.Object
    to_storage: Convert
    from_storage: Convert


class FieldManager:
    """Keeps the managed fields of one kind's objects, written in one version through one endpoint."""

    def __init__(  # noqa: PLR0913 - what an endpoint is, all by keyword
        self,
        views: Mapping[str, View],
        *,
        api_version: str,
        kind: str,
        subresource: str,
        reset_fields: frozenset[str],
        blank: Object | None = None,
        now: Callable[[], str],
    ) -> None:
        """``reset_fields`` are the top-level fields that writes through this endpoint do not reach.

        ``blank`` is what a new object is compared with: what every object has anyhow is nobody's.
        """
        self._views = views
        self._api_version = api_version
        self._kind = kind
        self._subresource = subresource
        self._blank = blank or {}
        self._now = now
        self._schema = views[api_version].schema
        unreached = dict.fromkeys((*reset_fields, "apiVersion", "kind"))
        hidden = {"metadata": dict.fromkeys(_NEVER_OWNED), **unreached}
        unclaimed = {"metadata": dict.fromkeys((*_NEVER_OWNED, "name")), **unreached}
        self._compare = {version: compile_compare(view.schema, hidden) for version, view in views.items()}
        self._versions = {name: Version(view.schema, compile_to_field_set(view.schema)) for name, view in views.items()}
        self._claimed = compile_to_field_set(self._schema, unclaimed)
        self._merge = compile_merge(self._schema)
        self._updater = bounded_cache(_MANAGERS)(lambda manager: self._identity(manager, UPDATE))
        self._is_plain = compile_plainness(self._schema)
        self._fit = {version: compile_reconcile(view.schema) or _as_it_is for version, view in views.items()}

    # Updates

    def record_update(self, live: Object | None, obj: Object, *, manager: str) -> None:
        """Sets the managed fields of ``obj``, which replaces ``live`` (None: it is created).

        Objects that have none are not tracked until somebody applies: so does kube-apiserver with objects from
        before it kept any.
        """
        metadata = obj["metadata"]
        if live is None:
            for name in _SET_BY_DELETION:
                metadata.pop(name, None)
        sent = metadata.pop("managedFields", None)
        entries = self._to_start_from(live, sent)
        if live is None or entries:
            entries = self._updated(entries, live or self._blank, obj, manager=manager)
        if entries:
            metadata["managedFields"] = managed_fields.to_stored(entries)

    def _to_start_from(self, live: Object | None, sent: Any) -> Entries:
        """The live entries, unless the client may and does replace them."""
        stored: Entries = _stored(live) if live else ()
        if not sent or self._subresource or sent == stored:
            return stored
        if managed_fields.is_reset(sent):
            return ()
        try:
            return managed_fields.from_client(sent) or stored
        except MalformedEntryError:
            return stored

    def _updated(self, entries: Entries, live: Object, obj: Object, *, manager: str) -> list[Entry]:
        fitting = self._fitting(entries)
        changes = self._changes(live, obj if live else _without_nulls(obj))
        gained = _without_name(changes.gained)
        if gained:
            identity = self._updater(manager)
            own, others = managed_fields.own_and_others(fitting, identity)
            left = self._released(others, live, obj, changes=changes)
            left.append(self._entry(identity, _with_gained(own, gained, changes), time=self._now()))
        else:
            left = self._released(fitting, live, obj, changes=changes)
        return managed_fields.merge_oldest(left)

    # Applies

    def apply(self, live: Object | None, configuration: Object, *, manager: str, force: bool) -> Object:
        """The live object (None: there is none) with the configuration applied, its managed fields brought up to date.

        Changes neither of them. Raises InvalidConfigurationError and, unless forced, ConflictsError.
        """
        is_plain = self._checked(configuration)
        before = live or {"apiVersion": self._api_version, "kind": self._kind, "metadata": {}}
        entries = self._fitting(_stored(before)) or self._updated((), {}, before, manager=_BEFORE_FIRST_APPLY)
        identity = self._identity(manager, APPLY)
        last, others = managed_fields.own_and_others(entries, identity)
        claimed = _without_name(self._claimed(configuration))
        merged: Object = self._merge(before, configuration)
        merged["metadata"] = merged["metadata"] or {}
        after = self._without_given_up(merged, entries, claimed, last) if last else merged
        changes = self._changes(before, after)
        if not force:
            self._refuse_conflicts(others, before, after, changes=changes, own=identity)
        others = self._released(others, before, after, changes=changes)
        if claimed:
            time = last.get("time") if last else None
            others.append(self._entry(identity, claimed, time=self._now() if after != before else time))
        if after is not merged or not (is_plain or is_settled(configuration)):
            after = settled(self._schema, after, before, configuration)
        after["metadata"] = {**after["metadata"]}
        after["metadata"]["managedFields"] = managed_fields.to_stored(others)
        if manager == last_applied.MANAGER:
            last_applied.keep_in_step(after, configuration)
        return after

    def _checked(self, configuration: Object) -> bool:
        """Whether it is plain, which spares some work later on. Raises InvalidConfigurationError unless it fits."""
        if (configuration.get("apiVersion"), configuration.get("kind")) != (self._api_version, self._kind):
            raise InvalidConfigurationError(f"invalid object type: {_shown_type(configuration)}")
        metadata = configuration.get("metadata")
        if isinstance(metadata, dict) and isinstance(metadata.get("managedFields"), list):
            raise InvalidConfigurationError("metadata.managedFields must be nil")
        if self._is_plain(configuration):
            return True
        if text := problems_text(self._schema, configuration):
            namespace, name = _text(metadata, "namespace"), _text(metadata, "name")
            what = f"{namespace}/{name}; {_shown_type(configuration)}"
            raise InvalidConfigurationError(f"failed to create typed patch object ({what}): {text}")
        return False

    def _without_given_up(self, merged: Object, entries: Entries, claimed: Fields, last: Entry) -> Object:
        before, version = last["fieldsV1"], last["apiVersion"]
        if version == self._api_version and (before == claimed or not difference(before, claimed)):
            return merged
        merged = self._converted(merged, self._api_version, version)
        pruning = Pruning(self._versions[version], merged, before)
        pruned, at = pruning.without(), version
        claim = {**last, "apiVersion": self._api_version, "fieldsV1": claimed}
        now = [claim if each is last else each for each in entries]
        for each, owned_now in _owned_by_version(now, version).items():
            converted = self._converted(merged, version, each), self._pruned_in(each, pruned, at)
            pruned, at = pruning.with_owned(self._versions[each], *converted, owned_now), each
        gone = pruning.given_up(self._pruned_in(version, pruned, at))
        left = remove(self._views[version].schema, merged, gone) if gone else merged
        return self._converted(left, version, self._api_version)

    def _pruned_in(self, version: str, pruned: Object, at: str) -> Object:
        """A pruned object in another version. What was emptied counts until the end: its owners keep it."""
        if version == at:
            return pruned
        converted = self._converted(empties_for_nulls(self._views[at].schema, pruned), at, version)
        return nulls_for_empties(converted) or {}

    def _refuse_conflicts(
        self, others: Entries, before: Object, after: Object, *, changes: Comparison, own: Identity
    ) -> None:
        """Raises ConflictsError when others own what changes."""
        conflicting: dict[Identity, Fields] = {}
        for entry in others:
            gained = self._changes_for(entry, before, after, changes).gained
            if common := intersection(entry["fieldsV1"], gained):
                conflicting[managed_fields.identity_of(entry)] = common
        if conflicting and own.manager == last_applied.MANAGER:
            allowed = last_applied.allowed_conflicts(self._schema, before)
            conflicting = {
                identity: left for identity, fields in conflicting.items() if (left := difference(fields, allowed))
            }
        if conflicting:
            raise conflicts_error(conflicting)

    # Both

    def _identity(self, manager: str, operation: str) -> Identity:
        version = self._api_version if operation == UPDATE else ""
        return Identity(manager or _UNKNOWN_MANAGER, operation, version, self._subresource)

    def _entry(self, identity: Identity, fields: Fields, *, time: str | None) -> Entry:
        return managed_fields.entry_for(identity, api_version=self._api_version, fields=fields, time=time)

    def _released(self, entries: Entries, before: Object, after: Object, *, changes: Comparison) -> list[Entry]:
        """The entries without what has changed; those that own nothing any more are gone."""
        if changes == NO_CHANGE:
            return list(entries)
        released = []
        for entry in entries:
            fields = entry["fieldsV1"]
            gained, removed = self._changes_for(entry, before, after, changes)
            left = difference(fields, gained)
            if removed:
                left = difference(left, removed)
            if left:
                released.append(entry if left is fields else {**entry, "fieldsV1": left})
        return released

    def _changes(self, before: Object, after: Object) -> Comparison:
        return self._compare[self._api_version](_with_metadata(before), _with_metadata(after))

    def _changes_for(self, entry: Entry, before: Object, after: Object, changes: Comparison) -> Comparison:
        """The changes in the words of the version in which an entry names its fields."""
        version = entry["apiVersion"]
        if version == self._api_version or changes == NO_CHANGE:
            return changes
        old, new = (_with_metadata(self._converted(obj, self._api_version, version)) for obj in (before, after))
        return self._compare[version](old, new)

    def _converted(self, obj: Object, version: str, other: str) -> Object:
        if version == other:
            return obj
        settled_obj = settled(self._views[version].schema, obj)
        return self._views[other].from_storage(self._views[version].to_storage(settled_obj))

    def _fitting(self, entries: Entries) -> list[Entry]:
        """The entries of versions that still exist, each fitting its schema."""
        fitted = []
        for entry in entries:
            fit, fields = self._fit.get(entry["apiVersion"]), entry["fieldsV1"]
            if fit and (proper := fit(fields)):
                fitted.append(entry if proper is fields else {**entry, "fieldsV1": proper})
        return fitted


def _as_it_is(fields: Fields) -> Fields:
    """What makes sets fit a schema that everything fits."""
    return fields


def _stored(obj: Object) -> Entries:
    """The entries of a stored object, which are as we wrote them."""
    return obj["metadata"].get("managedFields") or ()


def _with_metadata(obj: Object) -> Object:
    """What an object without metadata lacks is what is in it, not the metadata itself."""
    return obj if obj.get("metadata") else {**obj, "metadata": {}}


def _owned_by_version(entries: Entries, first: str) -> dict[str, Fields]:
    """What anybody owns, by the version that names it, beginning with ``first``."""
    owned_now = {first: _NAME}
    for entry in entries:
        version = entry["apiVersion"]
        owned_now[version] = union(owned_now.get(version, _NAME), entry["fieldsV1"])
    return owned_now


def _without_nulls(obj: Object) -> Object:
    """A new object is compared with an empty one, whose fields are null in kube-apiserver."""
    return {name: part for name, part in obj.items() if part is not None} if None in obj.values() else obj


def _with_gained(own: Entry | None, gained: Fields, changes: Comparison) -> Fields:
    """What the writer owns after its update. It keeps what it had and has gained again; nobody keeps a new name."""
    if own is None:
        return gained
    taken = changes.removed if gained is changes.gained else union(*changes)
    return union(difference(own["fieldsV1"], taken), gained)


def _without_name(fields: Fields) -> Fields:
    """What somebody claims or has gained, without ``_NAME``. Shorter than a difference, for all of it is leaves."""
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


def _shown_type(configuration: Object) -> str:
    """``GROUP/VERSION, Kind=KIND``, as Go shows it; of a version that is none, nothing is known."""
    version, kind = _text(configuration, "apiVersion"), _text(configuration, "kind")
    if version.count("/") > 1:
        return "/, Kind="
    return f"{version if '/' in version else '/' + version}, Kind={kind}"


def _text(value: Any, name: str) -> str:
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, str) else ""
