"""Has the C library give memory back that is free again.

glibc keeps what large buffers have left behind, more with each size that it meets: after a storm of large bodies the
process would stay four times as large as it needs to be. Elsewhere this does nothing.
"""

from __future__ import annotations

import ctypes
import sys

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""The names of these settings in glibc's mallopt."""

_OF_ITS_OWN = 256 * 1024
"""Bytes from which a buffer is taken from the system alone, and given back to it when it is freed.

uvloop has a buffer of just this size for each connection over TLS, of which an idle one uses next to nothing: taken
from the system it is not even there, while on the heap it would be what others have left, 25 KB a connection."""

_KEPT = 16 * 1024 * 1024
"""Bytes at the end of the heap that are kept, so that it need not grow again at once."""


def give_back_what_is_free() -> None:
    """From now on; for the whole process."""
    if not sys.platform.startswith("linux"):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:  # musl has none, and gives memory back by itself
        mallopt(_MMAP_THRESHOLD, _OF_ITS_OWN)
        mallopt(_TRIM_THRESHOLD, _KEPT)
