"""Validates each stored value once, when the cache reads it, and converts it to the storage version.

A value is decoded by its own ``apiVersion``: it may have been written when another version was the storage version, and
the version need not be served any more.

Other programs can write to etcd, and a disk can flip a bit. Lists are joined from stored bytes and metadata is cut out
of them (``storage.object_bytes``), so one value of another form would break every response that contains it.
"""

from __future__ import annotations

from typing import Any

import orjson

from clusterregistry.apimachinery.fieldmanager import managed_fields
from clusterregistry.apimachinery.meta import object_meta
from clusterregistry.apimachinery.meta.field_errors import TYPE_INVALID, shown
from clusterregistry.apimachinery.meta.json_types import ShapeError
from clusterregistry.apimachinery.meta.names import path_segment_errors
from clusterregistry.apimachinery.schema.structural import Structural
from clusterregistry.apiserver.registry.resource import Resource, Version
from clusterregistry.apiserver.storage import interface
from clusterregistry.apiserver.storage.errors import CorruptObject
from clusterregistry.apiserver.storage.interface import KeyValue
from clusterregistry.apiserver.storage.object_bytes import presented, to_stored

Object = dict[str, Any]

_ALWAYS_SET = ("uid", "creationTimestamp")
"""The fields that the server sets in every object that it stores."""


class _Unreadable(Exception):  # noqa: N818 - the message says what is wrong with a value
    pass


class StorageCodec:
    """Decodes the values of one resource, in any version that the resource knows, and encodes them in a version."""

    def __init__(self, resource: Resource, structural: Structural | None = None) -> None:
        """``structural`` is that of the storage version; None: it is made when it is needed."""
        self._prefix_length = len(interface.prefix_of(resource.group, resource.plural))
        self._is_namespaced = resource.namespaced
        self._kind, self._stored_as = resource.kind, resource.stored_as
        self._versions = {_api_version(resource, version): version for version in resource.known_versions}
        self._expected = _api_version(resource, resource.stored_as)
        # Those of other versions are made when the first such object is read: nearly always there is none.
        self._structurals = {} if structural is None else {self._expected: structural}

    def decode(self, kv: KeyValue) -> KeyValue:
        """A stored object as it is served, in the storage version. Raises CorruptObject.

        A valid object in another form (another version, other spaces, another order of keys) is converted and encoded
        again, and fields that the schema does not have are dropped, as kube-apiserver does when it reads.
        """
        stored = self.encode(kv, self._stored_as)
        return presented(kv if stored == kv.value else KeyValue(kv.key, stored, kv.revision))

    def encode(self, kv: KeyValue, version: Version) -> bytes:
        """The value that a stored object has when it is stored in ``version``. Raises CorruptObject."""
        try:
            obj = self._read(kv)
            if version is not self._stored_as:
                obj = (version.from_storage_whole or version.from_storage)(obj)
            return to_stored(obj)
        except _Unreadable as error:
            raise CorruptObject(kv.key, revision=kv.revision, reason=str(error)) from None
        except Exception as error:  # noqa: BLE001 - whatever error a foreign value leads to, it concerns one value
            raise CorruptObject(kv.key, revision=kv.revision, reason=f"it is no object: {error!r}"[:200]) from None

    def _read(self, kv: KeyValue) -> Object:
        """The object in the storage version."""
        obj = _json_object(kv.value)
        version = self._version_of(obj)
        try:
            metadata = obj["metadata"] = object_meta.decode(obj.get("metadata")).metadata
            self._tidy(obj, version)
        except ShapeError as error:
            raise _Unreadable(_cut(error)) from None
        self._check_key(metadata, kv.key[self._prefix_length :])
        for field in _ALWAYS_SET:
            if field not in metadata:
                raise _Unreadable(f"its metadata has no {field}")
        if "}" in metadata["uid"] or ("labels" in metadata and orjson.dumps(metadata["labels"]).count(b"}") > 1):
            # ``object_bytes`` finds the end of metadata and labels by the next brace.
            raise _Unreadable("its uid or its labels have braces")
        # No server sets it any more, and ``object_bytes`` expects nothing between owners and slot.
        metadata.pop("selfLink", None)
        if "managedFields" in metadata:
            _drop_malformed_managed_fields(metadata)
        return obj if version is self._stored_as else version.to_storage(obj)

    def _version_of(self, obj: Object) -> Version:
        """The version that an object says it is of."""
        api_version, kind = obj.get("apiVersion"), obj.get("kind")
        found = self._versions.get(api_version) if isinstance(api_version, str) else None
        if found is None or kind != self._kind:
            expected = f"a {self._kind} of {self._expected}"
            raise _Unreadable(f"it is not {expected}, but a {_cut(kind)} of {_cut(api_version)}")
        return found

    def _check_key(self, metadata: Object, key: str) -> None:
        """An object has the name, and in a namespaced resource the namespace, of its key."""
        if self._is_namespaced:
            namespace, _, key = key.rpartition("/")
            if (found := metadata.get("namespace", "")) != namespace or not namespace:
                raise _Unreadable(f"it has the namespace {shown(_cut(found))}, which is not that of its key")
        _check_name(metadata.get("name", ""), wanted=key)

    def _tidy(self, obj: Object, version: Version) -> None:
        """Drops fields that the kind does not have. Raises ShapeError and _Unreadable for values of another type."""
        if version.decode is not None:
            version.decode(obj)
            return
        structural = self._structurals.get(obj["apiVersion"])
        if structural is None:
            structural = self._structurals[obj["apiVersion"]] = Structural(version.schema)
        if not structural.is_tidy(obj):
            structural.rename_old_spellings(obj)
            structural.prune(obj)
            for error in structural.validate(obj):
                # Validation may have become stricter since it was written: such an object is served.
                if error.reason == TYPE_INVALID:
                    raise _Unreadable(_cut(error))


def _api_version(resource: Resource, version: Version) -> str:
    group = resource.group_of(version)
    return f"{group}/{version.name}" if group else version.name


def _check_name(name: str, *, wanted: str) -> None:
    if name != wanted:
        raise _Unreadable(f"it has the name {shown(_cut(name))}, which is not that of its key")
    wrong = path_segment_errors(name) if name else ("may not be empty",)
    if wrong:  # clients could not use it, and a list could not continue after it
        raise _Unreadable(f"no request can name it: its name {wrong[0]}. Its key has to be removed from the storage")


def _drop_malformed_managed_fields(metadata: Object) -> None:
    """Drops managed fields that cannot be decoded, as kube-apiserver does: every write relies on them."""
    try:
        metadata["managedFields"] = managed_fields.from_client(metadata["managedFields"])
    except managed_fields.MalformedEntryError:
        del metadata["managedFields"]


def _json_object(value: bytes) -> Object:
    try:
        obj = orjson.loads(value)
    except orjson.JSONDecodeError as error:
        raise _Unreadable(f"it is not JSON: {error}") from None
    if type(obj) is not dict:
        raise _Unreadable("it is JSON, but no object")
    return obj


def _cut(text: object) -> str:
    """Limits a stored text for a message: it may be long."""
    return str(text)[:100]
