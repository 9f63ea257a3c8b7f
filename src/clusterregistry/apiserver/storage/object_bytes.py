"""All surgery on the stored bytes of objects: the resourceVersion slot, the metadata span, labels, and their memo.

Objects are stored and cached as JSON bytes and mostly served without being decoded. A stored value and the served value
differ in one place, the slot:

    stored   {"apiVersion":...,"metadata":{...,"name":"a",<newline>"uid":"..."},"spec":...}
    served   {"apiVersion":...,"metadata":{...,"name":"a","resourceVersion":"42","uid":"..."},"spec":...}

Invariants, which ``to_stored`` establishes, ``registry.storage_codec`` checks for values that others wrote, and
tests/apiserver/storage/test_object_bytes.py tests:

1. The keys of the object and of its metadata are sorted. Of the keys that metadata may have, ``uid`` sorts last and
   ``resourceVersion`` just before it. ``metadata.uid`` is always set.
2. A stored value holds exactly one newline, the slot. JSON escapes newlines in strings.
3. ``KeyValue.slot`` of a served value is the offset of the slot. The resourceVersion begins there, unless the revision
   is 0, which stands for an object that is not stored.
4. No property that sorts before ``metadata`` holds an object named ``metadata``; after the slot, the metadata holds
   only the resourceVersion and a uid without braces. So the metadata begins at the first ``"metadata":{`` and ends at
   the first brace after the slot.
5. Keys and values of labels have no braces. Before ``labels`` the metadata holds only strings, in which quotes are
   escaped, and strings in ``annotations``; ``managedFields``, which may hold anything, follows ``labels`` and is
   followed by ``name``. No array that a ``name`` follows lies between ``managedFields`` and the slot.
6. Of the keys that metadata may have, ``ownerReferences`` is the last before the slot, and the only array after
   ``managedFields``. So the slot follows ``],`` if, and only if, the object has owners.

``KeyValue.memo`` keeps what was derived from a served value: a ``Memo``, or a subclass with more fields that another
module puts in its place (``endpoints.table``). One object per key-value takes the least memory, and most of the cost of
a long list is memory access.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import orjson
from msgspec import Struct

from clusterregistry.apiserver.storage.interface import KeyValue

Object = dict[str, Any]
Convert = Callable[[Object], Object]

_SLOT = b"\n"
_RESOURCE_VERSION = b'"resourceVersion":"%d",'
_METADATA = b'"metadata":{'
_METADATA_BRACE = len(_METADATA) - 1
_LABELS = b'"labels":{'
_MANAGED_FIELDS = b'"managedFields":['
_AFTER_MANAGED_FIELDS = b'],"name":'
_OWNER_REFERENCES = b'"ownerReferences":['
_DELETION_TIMESTAMP = b'"deletionTimestamp":"'
_UID = b'"uid":"'
_END_OF_ARRAY = ord("]")
_BACKSLASH = ord("\\")
_WRITE_TIME = re.compile(rb'"(?:time|creationTimestamp)":"([^"]{20})"')
_NO_LABELS: Mapping[str, str] = {}


# The resourceVersion slot


def to_stored(obj: Object) -> bytes:
    """Encodes an object with sorted keys and a slot for its resourceVersion. ``metadata.uid`` must be set."""
    metadata = obj["metadata"]
    if "resourceVersion" in metadata:
        metadata = {key: value for key, value in metadata.items() if key != "resourceVersion"}
    encoded = orjson.dumps(metadata, option=orjson.OPT_SORT_KEYS)
    at = encoded.rindex(b'"uid":')
    spliced = orjson.Fragment(encoded[:at] + _SLOT + encoded[at:])
    return orjson.dumps({**obj, "metadata": spliced}, option=orjson.OPT_SORT_KEYS)


def to_served(stored: bytes, revision: int) -> bytes:
    """Fills the slot of a stored value with the resourceVersion; revision 0 leaves it empty."""
    return stored.replace(_SLOT, _resource_version(revision), 1)


def presented(kv: KeyValue) -> KeyValue:
    """The served key-value of a stored one."""
    return KeyValue(kv.key, to_served(kv.value, kv.revision), kv.revision, slot=kv.value.find(_SLOT))


def at_revision(kv: KeyValue, revision: int) -> KeyValue:
    """A served key-value with another resourceVersion."""
    before, behind = kv.value[: kv.slot], kv.value[kv.slot + len(_resource_version(kv.revision)) :]
    return KeyValue(kv.key, before + _resource_version(revision) + behind, revision, slot=kv.slot)


def _resource_version(revision: int) -> bytes:
    return _RESOURCE_VERSION % revision if revision else b""


# Whole objects


def decoded(kv: KeyValue) -> Object:
    """The object as a new dict, which belongs to the caller."""
    obj: Object = orjson.loads(kv.value)
    return obj


def decoded_to_read(kv: KeyValue) -> Object:
    """The object as a new dict without managedFields, which are most of the metadata."""
    value = kv.value
    at = value.find(_MANAGED_FIELDS, (kv.memo or memo_of(kv)).start, kv.slot)
    if at >= 0:
        value = value[:at] + value[value.rindex(_AFTER_MANAGED_FIELDS, at, kv.slot) + len(b"],") :]
    obj: Object = orjson.loads(value)
    return obj


def converted(items: Sequence[KeyValue], api_version: str, convert: Convert) -> list[KeyValue]:
    """The objects in another version, as they are served there. The memo keeps them: each is converted once."""
    return [
        memo.converted if memo is not None and memo.api_version == api_version else _converted(kv, api_version, convert)
        for kv in items
        for memo in (kv.memo,)
    ]


def _converted(kv: KeyValue, api_version: str, convert: Convert) -> KeyValue:
    memo, found = memo_of(kv), presented(KeyValue(kv.key, to_stored(convert(decoded(kv))), kv.revision))
    memo.api_version, memo.converted = api_version, found
    return found


def size_of(items: Sequence[KeyValue]) -> int:
    """The total size of the values in bytes."""
    return sum([len(kv.value) for kv in items])


def name_of(kv: KeyValue) -> str:
    return name_of_key(kv.key)


def name_of_key(key: str) -> str:
    return key.rpartition("/")[2]


def namespace_of(kv: KeyValue) -> str:
    """The namespace of an object of a namespaced resource."""
    return kv.key.rpartition("/")[0].rpartition("/")[2]


# Metadata and labels, and the memo that keeps where they are


class Memo(Struct, gc=False):
    """The offsets of the metadata in a served value, the labels once they were read, and the object converted.

    ``converted`` is the object in the version ``api_version``, as it is served there: the last one that was asked for.
    """

    start: int
    end: int
    labels: Mapping[str, str] | None = None
    api_version: str = ""
    converted: KeyValue | None = None


def memo_of(kv: KeyValue) -> Memo:
    """Returns the memo, creating it on first use. Loops over many write ``kv.memo or ...``, which saves the call."""
    memo: Memo | None = kv.memo
    if memo is None:
        memo = kv.memo = Memo(*metadata_span(kv))
    return memo


def metadata_span(kv: KeyValue) -> tuple[int, int]:
    """The offsets at which the metadata begins and ends in a served value."""
    return kv.value.index(_METADATA, 0, kv.slot) + _METADATA_BRACE, kv.value.index(b"}", kv.slot) + 1


def read_metadata(kv: KeyValue) -> Object:
    """The metadata as a new dict."""
    start, end = metadata_span(kv)
    metadata: Object = orjson.loads(kv.value[start:end])
    return metadata


def metadata_of(items: Sequence[KeyValue]) -> list[bytes]:
    """The JSON of each object's metadata."""
    return [kv.value[memo.start : memo.end] for kv in items for memo in (kv.memo or memo_of(kv),)]


def metadata_size(items: Sequence[KeyValue]) -> int:
    """The total size of ``metadata_of`` in bytes."""
    return sum([memo.end - memo.start for kv in items for memo in (kv.memo or memo_of(kv),)])


def labels_of(kv: KeyValue) -> Mapping[str, str]:
    """The labels, which the memo keeps."""
    memo = memo_of(kv)
    if memo.labels is None:
        memo.labels = _labels_in(kv, memo.start)
    return memo.labels


def read_labels(kv: KeyValue) -> Mapping[str, str]:
    """The labels, for a single use: the memo does not keep them."""
    memo: Memo | None = kv.memo
    if memo is not None and memo.labels is not None:
        return memo.labels
    return _labels_in(kv, metadata_span(kv)[0])


def _labels_in(kv: KeyValue, start: int) -> Mapping[str, str]:
    """Decodes the labels alone: decoding all metadata takes five times as long."""
    value = kv.value
    at = value.find(_LABELS, start, kv.slot)
    if at < 0 or value.find(_MANAGED_FIELDS, start, at) >= 0:
        return _NO_LABELS
    at += len(_LABELS) - 1
    labels: Mapping[str, str] = orjson.loads(value[at : value.index(b"}", at) + 1])
    return labels


# Properties outside of the metadata, which unique fields look at in every event, hence without decoding: some 0.6 us


def find_property(kv: KeyValue, name: str) -> bool:
    """Whether a string property of that name may be somewhere after the metadata; False: there is none."""
    return kv.value.find(_string_property(name), kv.slot) >= 0


def has_same_property(one: KeyValue, other: KeyValue, name: str) -> bool:
    """True if all string properties of a name after the metadata are certainly the same in two states of an object.

    Keys are sorted, so states that are equal from the metadata to the last such property have the same ones. It does
    not matter whether a key-value is served or stored, if its slot is set.
    """
    value, start = one.value, one.value.index(b"}", one.slot)
    other_value, other_start = other.value, other.value.index(b"}", other.slot)
    marker = _string_property(name)
    last, other_last = value.rfind(marker, start), other_value.rfind(marker, other_start)
    if last < 0 or other_last < 0:
        return last == other_last
    if last - start != other_last - other_start:
        return False
    end = value.index(b'"', last + len(marker))
    # With an escape it may not be the end.
    return value[end - 1] != _BACKSLASH and other_value.startswith(value[start : end + 1], other_start)


@cache
def _string_property(name: str) -> bytes:
    return b'"%s":"' % name.encode()


# What garbage collection looks at in every event, hence without decoding: some 0.3 us together


def uid_of(kv: KeyValue) -> str:
    value = kv.value
    start = value.index(_UID, kv.slot) + len(_UID)
    uid = value[start : value.index(b'"', start)]
    return uid.decode() if b"\\" not in uid else str(read_metadata(kv)["uid"])


def has_owners(kv: KeyValue) -> bool:
    """Whether the metadata has owner references."""
    return kv.value[kv.slot - 2] == _END_OF_ARRAY


def owner_references_of(kv: KeyValue) -> list[Object]:
    """The owner references as new dicts."""
    if not has_owners(kv):
        return []
    at = kv.value.rindex(_OWNER_REFERENCES, 0, kv.slot) + len(_OWNER_REFERENCES) - 1
    references: list[Object] = orjson.loads(kv.value[at : kv.slot - 1])
    return references


def is_being_deleted(kv: KeyValue) -> bool:
    """Whether the object has a deletion timestamp."""
    if _DELETION_TIMESTAMP not in kv.value:
        return False
    value = kv.value
    start = kv.memo.start if kv.memo is not None else value.index(_METADATA, 0, kv.slot)
    end = value.find(_MANAGED_FIELDS, start, kv.slot)  # they are most of the metadata, and follow
    if value.find(_DELETION_TIMESTAMP, start, end if end >= 0 else kv.slot) < 0:
        return False
    return "deletionTimestamp" in read_metadata(kv)  # an annotation may have that name, too


def newest_write_time(kv: KeyValue) -> str:
    """The newest time of a write that the metadata names, on the wire; empty without managed fields.

    It is a lower bound, or one of an annotation of such a name. Decoding the metadata takes five times as long.
    """
    start = kv.value.index(_METADATA, 0, kv.slot)
    if kv.value.find(_MANAGED_FIELDS, start, kv.slot) < 0:
        return ""
    found: list[bytes] = _WRITE_TIME.findall(kv.value, start, kv.slot)
    return max(found, default=b"").decode()
