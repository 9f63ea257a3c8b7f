"""Validates each stored value once, when the cache reads it.

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
from clusterregistry.apiserver.registry.resource import Resource
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
    """Decodes the values of one resource."""

    def __init__(self, resource: Resource, structural: Structural) -> None:
        """``structural`` is that of the storage version."""
        version = resource.stored_as
        self._prefix_length = len(interface.prefix_of(resource.group, resource.plural))
        self._type = (f"{resource.group}/{version.name}" if resource.group else version.name, resource.kind)
        self._decode, self._structural = version.decode, structural

    def decode(self, kv: KeyValue) -> KeyValue:
        """A stored object as it is served. Raises CorruptObject.

        A valid object in another form (other spaces, another order of keys) is encoded again, and fields that the
        schema does not have are dropped, as kube-apiserver does when it reads.
        """
        try:
            stored = to_stored(self._read(kv))
        except _Unreadable as error:
            raise CorruptObject(kv.key, revision=kv.revision, reason=str(error)) from None
        except Exception as error:  # noqa: BLE001 - whatever error a foreign value leads to, it concerns one value
            raise CorruptObject(kv.key, revision=kv.revision, reason=f"it is no object: {error!r}"[:200]) from None
        return presented(kv if stored == kv.value else KeyValue(kv.key, stored, kv.revision))

    def _read(self, kv: KeyValue) -> Object:
        obj = _json_object(kv.value)
        if (found := (obj.get("apiVersion"), obj.get("kind"))) != self._type:
            api_version, kind = self._type
            raise _Unreadable(f"it is not a {kind} of {api_version}, but a {_cut(found[1])} of {_cut(found[0])}")
        try:
            metadata = obj["metadata"] = object_meta.decode(obj.get("metadata")).metadata
            self._tidy(obj)
        except ShapeError as error:
            raise _Unreadable(_cut(error)) from None
        _check_name(metadata.get("name", ""), wanted=kv.key[self._prefix_length :])
        for field in _ALWAYS_SET:
            if field not in metadata:
                raise _Unreadable(f"its metadata has no {field}")
        if "}" in metadata["uid"] or ("labels" in metadata and orjson.dumps(metadata["labels"]).count(b"}") > 1):
            # ``object_bytes`` finds the end of metadata and labels by the next brace.
            raise _Unreadable("its uid or its labels have braces")
        if "managedFields" in metadata:
            _drop_malformed_managed_fields(metadata)
        return obj

    def _tidy(self, obj: Object) -> None:
        """Drops fields that the kind does not have. Raises ShapeError and _Unreadable for values of another type."""
        if self._decode is not None:
            self._decode(obj)
        elif not self._structural.is_tidy(obj):
            self._structural.rename_old_spellings(obj)
            self._structural.prune(obj)
            for error in self._structural.validate(obj):
                # Validation may have become stricter since it was written: such an object is served.
                if error.reason == TYPE_INVALID:
                    raise _Unreadable(_cut(error))


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
