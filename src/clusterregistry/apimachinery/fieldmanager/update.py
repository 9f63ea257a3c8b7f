"""Managed fields after an update: its manager owns every field that the update changes."""

from __future__ import annotations

from functools import partial
from typing import Any

from clusterregistry.apimachinery.bounded_cache import bounded_cache
from clusterregistry.apimachinery.fieldmanager import managed_fields
from clusterregistry.apimachinery.fieldmanager.compare import Comparison
from clusterregistry.apimachinery.fieldmanager.field_set import Fields, difference, union
from clusterregistry.apimachinery.fieldmanager.managed_fields import (
    UPDATE,
    Endpoint,
    Entries,
    Entry,
    MalformedEntryError,
)
from clusterregistry.apimachinery.fieldmanager.versions import (
    Object,
    Versions,
    stored_entries,
    without_name,
)

_MANAGERS = 256
"""Cached identities. Few managers write to a registry, and they write all the time."""

_SET_BY_DELETION = ("deletionTimestamp", "deletionGracePeriodSeconds")
"""Fields that no object is created with."""


class Updater:
    """Records updates through one endpoint."""

    def __init__(self, versions: Versions, endpoint: Endpoint, *, blank: Object) -> None:
        self._versions = versions
        self._endpoint = endpoint
        self._blank = blank
        self._identity = bounded_cache(_MANAGERS)(partial(endpoint.identity, operation=UPDATE))

    def record_update(self, live: Object | None, obj: Object, *, manager: str) -> None:
        """Sets the managed fields of ``obj``, which replaces ``live`` (None: it is created).

        An object without managed fields gets none until the first apply. kube-apiserver does the same with objects
        from before it had managed fields.
        """
        metadata = obj["metadata"]
        if live is None:
            for name in _SET_BY_DELETION:
                metadata.pop(name, None)
        sent = metadata.pop("managedFields", None)
        entries = self._entries_before(live, sent)
        if live is None or entries:
            entries = self.update(entries, live or self._blank, obj, manager=manager)
        if entries:
            metadata["managedFields"] = managed_fields.to_stored(entries)

    def _entries_before(self, live: Object | None, sent: Any) -> Entries:
        """The live entries, or those that the client sent in their place, which it may outside of subresources."""
        stored: Entries = stored_entries(live) if live else ()
        if not sent or self._endpoint.subresource or sent == stored:
            return stored
        if managed_fields.is_reset(sent):
            return ()
        try:
            return managed_fields.from_client(sent) or stored
        except MalformedEntryError:
            return stored

    def update(self, entries: Entries, live: Object, obj: Object, *, manager: str) -> list[Entry]:
        """The entries after an update of ``live`` to ``obj``. An update that changes nothing adds no entry."""
        reconciled = self._versions.reconcile(entries)
        change = self._versions.change(live, obj if live else _without_nulls(obj))
        comparison = change.comparison
        gained = without_name(comparison.gained)
        if gained:
            identity = self._identity(manager)
            own, others = managed_fields.own_and_others(reconciled, identity)
            left = change.release(others)
            fields = _with_gained(own, gained, comparison)
            left.append(self._endpoint.entry(identity, fields, time=self._endpoint.now()))
        else:
            left = change.release(reconciled)
        return managed_fields.merge_oldest(left)


def _without_nulls(obj: Object) -> Object:
    """A new object is compared with an empty one, whose fields are null in kube-apiserver."""
    return {name: part for name, part in obj.items() if part is not None} if None in obj.values() else obj


def _with_gained(own: Entry | None, gained: Fields, comparison: Comparison) -> Fields:
    """The fields of the update's manager: those it had and still has, and those it gains. Never the object's name."""
    if own is None:
        return gained
    taken = comparison.removed if gained is comparison.gained else union(*comparison)
    return union(difference(own["fieldsV1"], taken), gained)
