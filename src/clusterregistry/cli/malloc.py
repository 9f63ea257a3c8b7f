"""Tunes glibc's malloc for a process: freed memory returns to the system. On other systems it does nothing.

glibc keeps the memory of freed large buffers, more with each size that it meets: after a burst of large bodies a server
would stay four times as large as it needs to be. A client of many servers has a buffer for each connection, too.
"""

from __future__ import annotations

import ctypes
import sys

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
"""The names of these settings in glibc's mallopt."""

_MMAP_BYTES = 256 * 1024
"""Buffers of this size and more get a mapping of their own, which returns to the system when they are freed.

uvloop has a buffer of just this size for each connection over TLS, and an idle connection uses next to nothing of it:
in a mapping the unused pages do not exist, while on the heap they would be used memory, 25 KB a connection."""

_KEPT_BYTES = 16 * 1024 * 1024
"""Free bytes at the end of the heap that are kept, so that the heap need not grow again at once."""


def trim_malloc() -> None:
    """Sets the thresholds of malloc for the whole process."""
    if not sys.platform.startswith("linux"):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:  # musl has none, and returns memory by itself
        mallopt(_MMAP_THRESHOLD, _MMAP_BYTES)
        mallopt(_TRIM_THRESHOLD, _KEPT_BYTES)
        # One heap for all threads: a thread reads objects from disk, and no other thread could use the memory that they
        # leave in a heap of that thread's own. With one interpreter, two threads hardly ever allocate at once.
        mallopt(_ARENA_MAX, 1)
