"""Server-side apply: a configuration is merged into the live object, and its manager owns those fields."""

from __future__ import annotations

from typing import Any

from clusterregistry.apimachinery.fieldmanager import last_applied, managed_fields
from clusterregistry.apimachinery.fieldmanager.errors import InvalidConfigurationError, conflicts_error
from clusterregistry.apimachinery.fieldmanager.field_set import Fields, difference, intersection
from clusterregistry.apimachinery.fieldmanager.managed_fields import APPLY, Entries, Identity
from clusterregistry.apimachinery.fieldmanager.merge import compile_merge, is_settled, settled
from clusterregistry.apimachinery.fieldmanager.update import Updater
from clusterregistry.apimachinery.fieldmanager.validate import compile_plainness, problems_text
from clusterregistry.apimachinery.fieldmanager.versions import (
    Change,
    Endpoint,
    Object,
    Versions,
    stored_entries,
    without_name,
)

_BEFORE_FIRST_APPLY = "before-first-apply"
"""The manager of all fields of an object without managed fields."""


class Applier:
    """Applies configurations through one endpoint."""

    def __init__(self, versions: Versions, endpoint: Endpoint, *, updater: Updater) -> None:
        self._versions = versions
        self._endpoint = endpoint
        self._updater = updater
        self._schema = versions.schema
        self._merge = compile_merge(self._schema)
        self._is_plain = compile_plainness(self._schema)

    def apply(self, live: Object | None, configuration: Object, *, manager: str, force: bool) -> Object:
        """Returns the live object with the configuration applied; see ``FieldManager.apply``."""
        is_plain = self._validate(configuration)
        before = live or {"apiVersion": self._endpoint.api_version, "kind": self._endpoint.kind, "metadata": {}}
        entries = self._versions.reconcile(stored_entries(before))
        entries = entries or self._updater.update((), {}, before, manager=_BEFORE_FIRST_APPLY)
        identity = self._endpoint.identity(manager, operation=APPLY)
        last, others = managed_fields.own_and_others(entries, identity)
        claimed = without_name(self._versions.claimed(configuration))
        merged: Object = self._merge(before, configuration)
        merged["metadata"] = merged["metadata"] or {}
        after = self._versions.prune(merged, entries, claimed=claimed, last=last) if last else merged
        change = self._versions.change(before, after)
        if not force:
            self._check_conflicts(change, others, own=identity)
        others = change.release(others)
        if claimed:
            time = last.get("time") if last else None
            time = self._endpoint.now() if after != before else time
            others.append(self._endpoint.entry(identity, claimed, time=time))
        if after is not merged or not (is_plain or is_settled(configuration)):
            after = settled(self._schema, after, before, configuration)
        after["metadata"] = {**after["metadata"], "managedFields": managed_fields.to_stored(others)}
        if manager == last_applied.MANAGER:
            last_applied.update_annotation(after, configuration)
        return after

    def _validate(self, configuration: Object) -> bool:
        """True if the configuration is plain, see ``compile_plainness``. Raises InvalidConfigurationError."""
        endpoint = self._endpoint
        if (configuration.get("apiVersion"), configuration.get("kind")) != (endpoint.api_version, endpoint.kind):
            raise InvalidConfigurationError(f"invalid object type: {_format_type(configuration)}")
        metadata = configuration.get("metadata")
        if isinstance(metadata, dict) and isinstance(metadata.get("managedFields"), list):
            raise InvalidConfigurationError("metadata.managedFields must be nil")
        if self._is_plain(configuration):
            return True
        if text := problems_text(self._schema, configuration):
            namespace, name = _text(metadata, "namespace"), _text(metadata, "name")
            what = f"{namespace}/{name}; {_format_type(configuration)}"
            raise InvalidConfigurationError(f"failed to create typed patch object ({what}): {text}")
        return False

    def _check_conflicts(self, change: Change, others: Entries, *, own: Identity) -> None:
        """Raises ConflictsError if the change gains fields of other managers."""
        conflicting: dict[Identity, Fields] = {}
        for entry in others:
            if common := intersection(entry["fieldsV1"], change.comparison_for(entry).gained):
                conflicting[managed_fields.identity_of(entry)] = common
        if conflicting and own.manager == last_applied.MANAGER:
            allowed = last_applied.allowed_conflicts(self._schema, change.before)
            conflicting = {
                identity: left for identity, fields in conflicting.items() if (left := difference(fields, allowed))
            }
        if conflicting:
            raise conflicts_error(conflicting)


def _format_type(configuration: Object) -> str:
    """``GROUP/VERSION, Kind=KIND``, as Go formats it; without both for an invalid group and version."""
    version, kind = _text(configuration, "apiVersion"), _text(configuration, "kind")
    if version.count("/") > 1:
        return "/, Kind="
    return f"{version if '/' in version else '/' + version}, Kind={kind}"


def _text(value: Any, name: str) -> str:
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, str) else ""
