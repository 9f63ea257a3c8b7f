"""The entries of ``metadata.managedFields``: each manager with its fields.

Entries are wire dicts in a list. An unchanged entry is returned as the same dict, and lists are never changed in place.
No two entries of an object have the same identity.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter, methodcaller
from typing import Any, NamedTuple

import orjson

from clusterregistry.apimachinery.fieldmanager import field_set
from clusterregistry.apimachinery.fieldmanager.field_set import Fields
from clusterregistry.apimachinery.fieldmanager.path_element import MalformedElementError

APPLY = "Apply"
UPDATE = "Update"
FIELDS_V1 = "FieldsV1"

MOST_UPDATERS = 10
"""The most entries of updates that an object may have; the oldest of more are merged into one."""

_ANCIENT = "ancient-changes"

Entry = dict[str, Any]


class Identity(NamedTuple):
    """The identity of an entry. An applier has one entry for all versions, an updater one for each version."""

    manager: str
    operation: str
    api_version: str
    subresource: str

    @property
    def sort_key(self) -> bytes:
        """kube-apiserver sorts managers by this JSON."""
        named = {"manager": self.manager, "operation": self.operation, "apiVersion": self.api_version}
        named["subresource"] = self.subresource
        return orjson.dumps({name: value for name, value in named.items() if value})


Entries = Sequence[Entry]


class MalformedEntryError(ValueError):
    """A client sent an invalid entry of managedFields."""


def identity_of(entry: Entry) -> Identity:
    operation = entry["operation"]
    return Identity(
        entry.get("manager", ""),
        operation,
        entry["apiVersion"] if operation == UPDATE else "",
        entry.get("subresource", ""),
    )


def own_and_others(entries: Entries, identity: Identity) -> tuple[Entry | None, list[Entry]]:
    """The entry with the identity, None if there is none, and the other entries."""
    manager, operation, api_version, subresource = identity
    own, others = None, []
    for entry in entries:
        if (
            entry.get("subresource", "") == subresource
            and entry.get("manager", "") == manager
            and entry["operation"] == operation
            and (not api_version or entry["apiVersion"] == api_version)
        ):
            own = entry
        else:
            others.append(entry)
    return own, others


def from_client(entries: Entries) -> list[Entry]:
    """Parses the entries that a client sent; of those with one identity the last counts. Raises MalformedEntryError."""
    managed: dict[Identity, Entry] = {}
    for entry in entries:
        if entry.get("operation") not in (APPLY, UPDATE):
            raise MalformedEntryError("operation must be `Apply` or `Update`")
        if not entry.get("apiVersion"):
            raise MalformedEntryError("apiVersion must not be empty")
        if entry.get("fieldsType") != FIELDS_V1:
            raise MalformedEntryError("fieldsType must be FieldsV1")
        try:
            fields = field_set.parse(entry.get("fieldsV1"))
        except MalformedElementError as error:
            raise MalformedEntryError(str(error)) from None
        managed[identity_of(entry)] = {**entry, "fieldsV1": fields}
    return list(managed.values())


def entry_for(identity: Identity, *, api_version: str, fields: Fields, time: str | None) -> Entry:
    entry: Entry = {
        "manager": identity.manager,
        "operation": identity.operation,
        "apiVersion": api_version,
        "fieldsType": FIELDS_V1,
        "fieldsV1": fields,
    }
    if identity.subresource:
        entry["subresource"] = identity.subresource
    if time is not None:
        entry["time"] = time
    return entry


_SUBRESOURCE = methodcaller("get", "subresource", "")
_PLACE = itemgetter("operation", "time", "manager", "apiVersion")


def to_stored(entries: Entries) -> list[Entry]:
    """The entries in kube-apiserver's order: applies before updates, then by time and name."""
    # Sorting is stable, so the least significant key comes first.
    ordered = sorted(entries, key=_SUBRESOURCE)
    try:
        ordered.sort(key=_PLACE)
    except KeyError:  # an apply that changed nothing has no time
        ordered.sort(key=_place)
    return ordered


def _place(entry: Entry) -> tuple[str, str, str, str]:
    return entry["operation"], entry.get("time", ""), entry.get("manager", ""), entry["apiVersion"]


def merge_oldest(entries: list[Entry]) -> list[Entry]:
    """Merges the oldest entries of updates, version by version, until MOST_UPDATERS are left."""
    if len(entries) <= MOST_UPDATERS:
        return entries
    managed = {identity_of(entry): entry for entry in entries}
    updaters = [identity for identity in managed if identity.operation == UPDATE]
    surplus = len(updaters) - MOST_UPDATERS
    if surplus <= 0:
        return entries
    updaters.sort(key=lambda identity: (managed[identity].get("time", ""), identity.sort_key))
    first_of: dict[str, Identity] = {}
    for identity in updaters:
        bucket = Identity(_ANCIENT, UPDATE, identity.api_version, "")
        first = first_of.setdefault(identity.api_version, identity)
        if identity in (first, bucket) or surplus == 0:
            continue
        if bucket not in managed:
            managed[bucket] = _renamed(managed.pop(first), bucket)
        _absorb(managed, bucket, identity)
        surplus -= 1
    return list(managed.values())


def _renamed(entry: Entry, identity: Identity) -> Entry:
    return entry_for(identity, api_version=entry["apiVersion"], fields=entry["fieldsV1"], time=entry.get("time"))


def _absorb(managed: dict[Identity, Entry], bucket: Identity, identity: Identity) -> None:
    """Merges an entry into the bucket, which gets the entry's time, the later one."""
    entry = managed.pop(identity)
    fields = field_set.union(entry["fieldsV1"], managed[bucket]["fieldsV1"])
    managed[bucket] = entry_for(bucket, api_version=entry["apiVersion"], fields=fields, time=entry.get("time"))


def is_reset(entries: Any) -> bool:
    """Whether a client asks to clear the managed fields: with a list of one empty entry."""
    return bool(entries) and len(entries) == 1 and not entries[0]


def differ_only_in_time(one: list[Entry] | None, other: list[Entry] | None) -> bool:
    """Whether entries are the same but for their times."""
    if not one or not other or len(one) != len(other):
        return False
    return all(_timeless(mine) == _timeless(theirs) for mine, theirs in zip(one, other, strict=True))


def _timeless(entry: Entry) -> Entry:
    return {key: value for key, value in entry.items() if key != "time"}
