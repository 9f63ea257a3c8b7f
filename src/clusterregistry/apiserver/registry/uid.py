"""Unique ids for objects and requests: random UUIDs, made from random bytes that are read in bulk.

A system call for each id costs more than the rest of a create's metadata: it releases the interpreter lock, and the
storage's writer thread then holds it for a while.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

_IDS_AT_ONCE = 256
_BYTES = 16


def _random_ids() -> Iterator[str]:
    while True:
        pool = os.urandom(_BYTES * _IDS_AT_ONCE)
        for at in range(0, len(pool), _BYTES):
            yield _formatted(pool[at : at + _BYTES])


def _formatted(raw: bytes) -> str:
    """A version 4 UUID of these bytes."""
    digits = raw.hex()
    variant = "89ab"[raw[8] & 3]
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"


_ids = _random_ids()


def new_uid() -> str:
    """A new random UUID. Not thread-safe."""
    return next(_ids)
