"""Who owns which field after a write: the one entrance to this package for those who write objects.

Two kinds of writes. An update (create, PUT, patches) has made its object already: whoever changed a field
owns it now. An apply says what a manager wants: it is merged into the live object, and who else owns a field
that it would change has to be overruled by force.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from clusterregistry.apis.meta import schemas
from clusterregistry.apply import last_applied, managed_fields
from clusterregistry.apply.checking import compile_plainness, problems_text
from clusterregistry.apply.comparing import NO_CHANGE, Comparison, compile_compare
from clusterregistry.apply.conflicts import conflicts_error
from clusterregistry.apply.errors import InvalidConfigurationError
from clusterregistry.apply.field_sets import LEAF, SELF, Fields, difference, intersection, union
from clusterregistry.apply.fitting import compile_fitting
from clusterregistry.apply.managed_fields import APPLY, UPDATE, Entry, Identity, MalformedEntryError, Managed
from clusterregistry.apply.merging import compile_merge, is_settled, settled
from clusterregistry.apply.owning import compile_owned
from clusterregistry.apply.pruning import Pruning, Version
from clusterregistry.apply.removing import empties_for_nulls, nulls_for_empties, remove

Object = dict[str, Any]
Convert = Callable[[Object], Object]

_BEFORE_FIRST_APPLY = "before-first-apply"
_UNKNOWN_MANAGER = "unknown"

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


class Ownership:
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
        self._hidden = reset_fields | {"apiVersion", "kind"}
        self._now = now
        self._schema = views[api_version].schema
        hidden = {"metadata": dict.fromkeys(_NEVER_OWNED), **dict.fromkeys(self._hidden)}
        self._compare = {version: compile_compare(view.schema, hidden) for version, view in views.items()}
        self._versions = {name: Version(view.schema, compile_owned(view.schema)) for name, view in views.items()}
        self._claimed = compile_owned(self._schema, hidden)
        self._merge = compile_merge(self._schema)
        self._is_plain = compile_plainness(self._schema)
        self._fit = {version: compile_fitting(view.schema) for version, view in views.items()}

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
        managed = self._to_start_from(live, sent)
        if live is None or managed:
            managed = self._updated(managed, live or self._blank, obj, manager=manager)
        if managed:
            metadata["managedFields"] = managed_fields.to_stored(managed)

    def _to_start_from(self, live: Object | None, sent: Any) -> Managed:
        """The live entries, unless the client may and does replace them."""
        entries = live["metadata"].get("managedFields") if live else None
        stored = managed_fields.from_stored(entries)
        if not sent or self._subresource or sent == entries:
            return stored
        if managed_fields.is_reset(sent):
            return {}
        try:
            return managed_fields.from_client(sent) or stored
        except MalformedEntryError:
            return stored

    def _updated(self, managed: Managed, live: Object, obj: Object, *, manager: str) -> Managed:
        managed = self._fitting(managed)
        # A new object is compared with an empty one, whose fields are null in kube-apiserver.
        changes = self._changes(live, obj if live else {key: part for key, part in obj.items() if part is not None})
        if changes != NO_CHANGE:
            self._release(managed, live, obj, changes=changes)
            if gained := difference(changes.gained, _NAME):
                self._take(managed, self._identity(manager, UPDATE), gained)
        managed_fields.merge_oldest(managed)
        return managed

    def _take(self, managed: Managed, identity: Identity, gained: Fields) -> None:
        previous = managed.get(identity)
        fields = union(previous["fieldsV1"], gained) if previous else gained
        managed[identity] = managed_fields.entry_for(
            identity, api_version=self._api_version, fields=fields, time=self._now()
        )

    # Applies

    def apply(self, live: Object | None, configuration: Object, *, manager: str, force: bool) -> Object:
        """The live object (None: there is none) with the configuration applied, its managed fields brought up to date.

        Changes neither of them. Raises InvalidConfigurationError and, unless forced, ConflictsError.
        """
        is_plain = self._checked(configuration)
        before = live or {"apiVersion": self._api_version, "kind": self._kind, "metadata": {}}
        managed = self._fitting(managed_fields.from_stored(before["metadata"].get("managedFields")))
        if not managed:
            managed = self._updated({}, {}, before, manager=_BEFORE_FIRST_APPLY)
        identity = self._identity(manager, APPLY)
        last = managed.get(identity)
        managed[identity] = self._claim(configuration, identity, last)
        merged: Object = self._merge(before, configuration)
        merged["metadata"] = merged["metadata"] or {}
        after = self._without_given_up(merged, managed, identity, last) if last else merged
        changes = self._changes(before, after)
        if not force:
            self._refuse_conflicts(managed, before, after, changes=changes, own=identity)
        self._release(managed, before, after, changes=changes, own=identity)
        managed_fields.replace_fields(managed, identity, difference(managed[identity]["fieldsV1"], _NAME))
        if after != before and identity in managed:
            managed[identity]["time"] = self._now()
        if after is not merged or not (is_plain or is_settled(configuration)):
            after = settled(self._schema, after, before, configuration)
        after["metadata"] = {**after["metadata"]}
        after["metadata"]["managedFields"] = managed_fields.to_stored(managed)
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

    def _claim(self, configuration: Object, identity: Identity, last: Entry | None) -> Entry:
        fields = self._claimed(configuration)
        time = last.get("time") if last else None
        return managed_fields.entry_for(identity, api_version=self._api_version, fields=fields, time=time)

    def _without_given_up(self, merged: Object, managed: Managed, identity: Identity, last: Entry) -> Object:
        before, version = last["fieldsV1"], last["apiVersion"]
        claimed = managed[identity]["fieldsV1"]
        if version == self._api_version and (before == claimed or not difference(before, claimed)):
            return merged
        merged = self._converted(merged, self._api_version, version)
        pruning = Pruning(self._versions[version], merged, before)
        pruned, at = pruning.without(), version
        for each, owned_now in _owned_by_version(managed, version).items():
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
        self, managed: Managed, before: Object, after: Object, *, changes: Comparison, own: Identity
    ) -> None:
        """Raises ConflictsError when others own what changes."""
        conflicting: dict[Identity, Fields] = {}
        for identity, entry in managed.items():
            gained = self._changes_for(entry, before, after, changes).gained
            if identity != own and (common := intersection(entry["fieldsV1"], gained)):
                conflicting[identity] = common
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

    def _release(
        self, managed: Managed, before: Object, after: Object, *, changes: Comparison, own: Identity | None = None
    ) -> None:
        """Takes what has changed from all owners but ``own``."""
        for identity, entry in list(managed.items()):
            if identity != own:
                gained, removed = self._changes_for(entry, before, after, changes)
                left = difference(entry["fieldsV1"], gained)
                managed_fields.replace_fields(managed, identity, difference(left, removed) if removed else left)

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

    def _fitting(self, managed: Managed) -> Managed:
        """The entries of versions that still exist, each fitting its schema."""
        fitted: Managed = {}
        for identity, entry in managed.items():
            version = entry["apiVersion"]
            if version not in self._fit:
                continue
            fit, fields = self._fit[version], entry["fieldsV1"]
            proper = fit(fields) if fit else fields
            if proper:
                fitted[identity] = entry if proper is fields else {**entry, "fieldsV1": proper}
        return fitted


def _with_metadata(obj: Object) -> Object:
    """What an object without metadata lacks is what is in it, not the metadata itself."""
    return obj if obj.get("metadata") else {**obj, "metadata": {}}


def _owned_by_version(managed: Managed, first: str) -> dict[str, Fields]:
    """What anybody owns, by the version that names it, beginning with ``first``."""
    owned_now = {first: _NAME}
    for entry in managed.values():
        version = entry["apiVersion"]
        owned_now[version] = union(owned_now.get(version, _NAME), entry["fieldsV1"])
    return owned_now


def _shown_type(configuration: Object) -> str:
    """``GROUP/VERSION, Kind=KIND``, as Go shows it; of a version that is none, nothing is known."""
    version, kind = _text(configuration, "apiVersion"), _text(configuration, "kind")
    if version.count("/") > 1:
        return "/, Kind="
    return f"{version if '/' in version else '/' + version}, Kind={kind}"


def _text(value: Any, name: str) -> str:
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, str) else ""
