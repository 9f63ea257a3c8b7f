"""Stored bytes and served bytes of an object.

A revision is known only when a write commits, so stored JSON lacks ``metadata.resourceVersion``. It
has exactly one newline instead, at the place where the property belongs (compact JSON has no other).
The stored form stays plain JSON for whoever opens the file, and serving an object needs no decoding.

In memory objects are kept as they are served, and know where their revision stands: lists are joined from them as they
are. What users wrote may look like the revision, so it could not be found again.
"""

from __future__ import annotations

from typing import Any

import orjson

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
