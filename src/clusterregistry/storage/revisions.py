"""Stored bytes and served bytes of an object.

A revision is known only when a write commits, so stored JSON lacks ``metadata.resourceVersion``. It
has exactly one newline instead, at the place where the property belongs (compact JSON has no other).
The stored form stays plain JSON for whoever opens the file, and serving an object needs one copy of
its bytes and no decoding.
"""

from __future__ import annotations

from typing import Any

import orjson

_SLOT = b"\n"


def to_stored(obj: dict[str, Any]) -> bytes:
    """Encodes an object with sorted keys and without its resource version. ``metadata.uid`` must be set."""
    metadata = {key: value for key, value in obj["metadata"].items() if key != "resourceVersion"}
    encoded = orjson.dumps(metadata, option=orjson.OPT_SORT_KEYS)
    # Of the keys that metadata may have, uid sorts last and resourceVersion just before it.
    at = encoded.rindex(b'"uid":')
    spliced = orjson.Fragment(encoded[:at] + _SLOT + encoded[at:])
    return orjson.dumps({**obj, "metadata": spliced}, option=orjson.OPT_SORT_KEYS)


def to_served(stored: bytes, revision: int) -> bytes:
    """The stored bytes with ``metadata.resourceVersion`` filled in; revision 0 is that of what is not stored."""
    if not revision:
        return stored.replace(_SLOT, b"", 1)
    return stored.replace(_SLOT, b'"resourceVersion":"%d",' % revision, 1)
