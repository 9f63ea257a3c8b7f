"""Objects as the cache holds them, and what is derived from them.

A ``KeyValue`` is one object at one revision, as it is served (``storage.revisions``). What selectors look at is derived
from it once and kept in its ``memo``; the whole object is decoded only where somebody needs it and is the caller's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson
from msgspec import Struct

from clusterregistry.apiserver.storage.interface import KeyValue

_SLOT = b"\n"
_FILLING = b'"resourceVersion":"%d",'
_METADATA = b'"metadata":{'
_OPENING = len(_METADATA) - 1


def to_stored(obj: dict[str, Any]) -> bytes:
    """Encodes an object with sorted keys and without its resource version. ``metadata.uid`` must be set."""
    metadata = obj["metadata"]
    if "resourceVersion" in metadata:
        metadata = {key: value for key, value in metadata.items() if key != "resourceVersion"}
    encoded = orjson.dumps(metadata, option=orjson.OPT_SORT_KEYS)
    # Of the keys that metadata may have, uid sorts last and resourceVersion just before it.
    at = encoded.rindex(b'"uid":')
    spliced = orjson.Fragment(encoded[:at] + _SLOT + encoded[at:])
    return orjson.dumps({**obj, "metadata": spliced}, option=orjson.OPT_SORT_KEYS)


def to_served(stored: bytes, revision: int) -> bytes:
    """The stored bytes with ``metadata.resourceVersion`` filled in; revision 0 is that of what is not stored."""
    return stored.replace(_SLOT, _filling(revision), 1)


def _filling(revision: int) -> bytes:
    return _FILLING % revision if revision else b""


def presented(kv: KeyValue) -> KeyValue:
    """A stored object as it is served."""
    return KeyValue(kv.key, to_served(kv.value, kv.revision), kv.revision, slot=kv.value.find(_SLOT))


def at_revision(kv: KeyValue, revision: int) -> KeyValue:
    """A served object under another revision."""
    before, behind = kv.value[: kv.slot], kv.value[kv.slot + len(_filling(kv.revision)) :]
    return KeyValue(kv.key, before + _filling(revision) + behind, revision, slot=kv.slot)


MetadataSpan = tuple[int, int]
"""Where the metadata begins within served bytes, and where it ends.

A plain tuple: there is one for each object, and those the garbage collector need not look at.
"""


def metadata_span(kv: KeyValue) -> MetadataSpan:
    """As objects are stored in order, their metadata can be read without decoding the rest.

    No property that sorts before ``metadata`` holds another object of that name, and nothing but the revision and a
    uid, which have no braces, lies between the slot and the end.
    """
    return kv.value.index(_METADATA, 0, kv.slot) + _OPENING, kv.value.index(b"}", kv.slot) + 1


Object = dict[str, Any]
_NO_LABELS: Mapping[str, str] = {}
_LABELS = b'"labels":{'
_MANAGED_FIELDS = b'"managedFields":['
_BEHIND_MANAGED_FIELDS = b'],"name":'


class Memo(Struct, gc=False):
    """What is kept with an object in the cache, once somebody asked for it: where its metadata is, and its labels.

    Who keeps more puts a memo of its own in its place (the tables do): one object for each is the least memory, and
    what a list of many costs is for the most part looking for its objects in memory.
    """

    start: int
    end: int
    labels: Mapping[str, str] | None = None


def size_of(items: Sequence[KeyValue]) -> int:
    """How many bytes these are in all."""
    return sum([len(kv.value) for kv in items])


def metadata_of(items: Sequence[KeyValue]) -> list[bytes]:
    """The JSON of each object's metadata."""
    return [kv.value[memo.start : memo.end] for kv in items for memo in (kv.memo or memo_of(kv),)]


def metadata_size(items: Sequence[KeyValue]) -> int:
    """How many bytes ``metadata_of`` makes of these in all."""
    return sum([memo.end - memo.start for kv in items for memo in (kv.memo or memo_of(kv),)])


def decoded(kv: KeyValue) -> Object:
    """The object as a fresh dict."""
    obj: Object = orjson.loads(kv.value)
    return obj


def decoded_to_read(kv: KeyValue) -> Object:
    """The object as a fresh dict but for its managed fields, of which most of the metadata consists.

    In the order of stored metadata the name follows them. Before them there are but strings, in which quotes are
    escaped, and no array that a name follows lies between them and the slot.
    """
    value = kv.value
    at = value.find(_MANAGED_FIELDS, (kv.memo or memo_of(kv)).start, kv.slot)
    if at >= 0:
        value = value[:at] + value[value.rindex(_BEHIND_MANAGED_FIELDS, at, kv.slot) + len(b"],") :]
    obj: Object = orjson.loads(value)
    return obj


def memo_of(kv: KeyValue) -> Memo:
    """What is kept with an object. Who asks for many may see for themselves that they have one: ``kv.memo or ...``."""
    memo: Memo | None = kv.memo
    if memo is None:
        memo = kv.memo = Memo(*metadata_span(kv))
    return memo


def labels_of(kv: KeyValue) -> Mapping[str, str]:
    memo = memo_of(kv)
    if memo.labels is None:
        memo.labels = _labels_in(kv, memo.start)
    return memo.labels


def read_labels(kv: KeyValue) -> Mapping[str, str]:
    """The same for who looks at them once: nothing is kept."""
    memo: Memo | None = kv.memo
    if memo is not None and memo.labels is not None:
        return memo.labels
    return _labels_in(kv, metadata_span(kv)[0])


def _labels_in(kv: KeyValue, start: int) -> Mapping[str, str]:
    """The labels, decoded from where they stand: with the rest of the metadata it takes five times as long.

    Stored metadata is in order: before the labels there are but strings, in which quotes are escaped, behind them
    managed fields, which may be of any form. Keys and values of labels have no braces.
    """
    value = kv.value
    at = value.find(_LABELS, start, kv.slot)
    if at < 0 or value.find(_MANAGED_FIELDS, start, at) >= 0:
        return _NO_LABELS
    at += len(_LABELS) - 1
    labels: Mapping[str, str] = orjson.loads(value[at : value.index(b"}", at) + 1])
    return labels


def name_of(kv: KeyValue) -> str:
    return name_of_key(kv.key)


def name_of_key(key: str) -> str:
    return key.rpartition("/")[2]
