"""Stored bytes and served bytes of an object.

A revision is known only when a write commits, so stored JSON lacks ``metadata.resourceVersion``. It
has exactly one newline instead, at the place where the property belongs (compact JSON has no other).
The stored form stays plain JSON for whoever opens the file, and serving an object needs one copy of
its bytes and no decoding.
"""

from __future__ import annotations

from typing import Any

import orjson

SLOT = b"\n"
FILLING = b'"resourceVersion":"%d",'
"""What is served in the place of the slot."""

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
    spliced = orjson.Fragment(encoded[:at] + SLOT + encoded[at:])
    return orjson.dumps({**obj, "metadata": spliced}, option=orjson.OPT_SORT_KEYS)


def to_served(stored: bytes, revision: int) -> bytes:
    """The stored bytes with ``metadata.resourceVersion`` filled in; revision 0 is that of what is not stored."""
    return stored.replace(SLOT, FILLING % revision if revision else b"", 1)


GROWTH_BUT_DIGITS = len(FILLING) - len(b"%d") - len(SLOT)
"""How much longer served bytes are than stored ones, not counting the digits of the revision."""


MetadataSpan = tuple[int, int, int]
"""Where the metadata begins within stored bytes, where its slot is and where it ends.

A plain tuple: there is one for each object, and those the garbage collector need not look at.
"""


def metadata_span(stored: bytes) -> MetadataSpan:
    """As objects are stored in order, their metadata can be read without decoding the rest.

    No property that sorts before ``metadata`` holds another object of that name, and nothing but a uid, which has no
    braces, lies between the slot and the end.
    """
    slot = stored.index(SLOT)
    return stored.index(_METADATA, 0, slot) + _OPENING, slot, stored.index(b"}", slot) + 1
