"""Tunes glibc's malloc and the garbage collector: freed memory returns to the system, and collections stay short.

glibc keeps the memory of freed large buffers, more with each size that it meets: after a burst of large bodies the
process would stay four times as large as it needs to be. On other systems ``trim_malloc`` does nothing.

Python frees nearly every object with its last reference. A collection searches for the rest, objects that refer to each
other, and stops everything else meanwhile. By default Python collects all objects whenever their number has grown by a
quarter: with 100,000 stored objects for a quarter of a second, with every table of them. So collections are limited to
young objects, some thousands at a time, where cycles arise if anywhere. What exists once for each stored object is not
tracked at all (``msgspec.Struct`` with ``gc=False``). A full collection runs once an hour, so that an old cycle is not
kept for ever. No request leaves a cycle behind, not even a broken connection or a refused one:
``test_reference_cycles`` of the performance tests checks it.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import sys
from collections.abc import Awaitable, Callable

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
"""The names of these settings in glibc's mallopt."""

_MMAP_BYTES = 256 * 1024
"""Buffers of this size and more get a mapping of their own, which returns to the system when they are freed.

uvloop has a buffer of just this size for each connection over TLS, and an idle connection uses next to nothing of it:
in a mapping the unused pages do not exist, while on the heap they would be used memory, 25 KB a connection."""

_KEPT_BYTES = 16 * 1024 * 1024
"""Free bytes at the end of the heap that are kept, so that the heap need not grow again at once."""

_YOUNG = 5_000
"""New objects between two collections of young objects. With Python's 700 the collector keeps visiting objects that
requests under way are about to free, which is 3% of the cost of a write."""

_MIDDLE = 1
"""Young collections until one includes the survivors: some 15,000 objects in all, for a few ms."""

_OLD = 400
"""Collections of survivors until a full one, whatever the hour. So many mean that millions of new objects have stayed:
they may have been stored, or cycles are made every second."""

_HOUR = 3600.0


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


def tune_collector() -> None:
    """Enables the collector with these thresholds; the objects that exist already are never collected.

    Nor does it collect them now: that would take a tenth of the start, for the 200 KB that imports leave behind.
    """
    gc.freeze()
    gc.set_threshold(_YOUNG, _MIDDLE, _OLD)
    gc.enable()


async def run_full_collections(sleep: Callable[[float], Awaitable[object]] = asyncio.sleep) -> None:
    """Collects all objects once an hour, for some milliseconds. Runs until it is cancelled."""
    while True:
        await sleep(_HOUR)
        gc.collect()
