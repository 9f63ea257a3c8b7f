"""Memory that is free again: has it given back, and found without making anybody wait.

glibc keeps what large buffers have left behind, more with each size that it meets: after a storm of large bodies the
process would stay four times as large as it needs to be. Elsewhere this part does nothing.

Python frees nearly everything the moment that nobody refers to it. What is left are objects that refer to each other:
a collector looks for them, and everything else stands still meanwhile. Left to itself it looks at all objects each time
that there are a quarter more of them: with 100,000 clusters for a quarter of a second, as often as somebody has a table
made of them. So it is let look at young objects only, some thousands at a time, where such circles are made if at all.
What there is one of for each object in memory it does not know of at all (``msgspec.Struct`` with ``gc=False``).
All others are looked at once an hour, so that a circle that has grown old is not kept for ever. None of what clients
do leaves one behind, not even broken connections and refused requests: ``test_reference_cycles`` checks it.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import sys
from collections.abc import Awaitable, Callable

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
"""The names of these settings in glibc's mallopt."""

_OF_ITS_OWN = 256 * 1024
"""Bytes from which a buffer is taken from the system alone, and given back to it when it is freed.

uvloop has a buffer of just this size for each connection over TLS, of which an idle one uses next to nothing: taken
from the system it is not even there, while on the heap it would be what others have left, 25 KB a connection."""

_KEPT = 16 * 1024 * 1024
"""Bytes at the end of the heap that are kept, so that it need not grow again at once."""

_YOUNG = 5_000
"""New objects after which the collector looks at them. With Python's 700 it looks all the time at what requests under
way are about to let go of, which is 3% of what a write costs."""

_MIDDLE = 1
"""Looks at the new ones after which the next one takes in those that stayed: some 15,000 in all, for a few ms."""

_OLD = 400
"""Looks of the latter kind after which it looks at everything, whatever the hour. So many mean that millions of new
objects have stayed: they may have been stored, or circles are made by the second."""

_HOUR = 3600.0


def trim_malloc() -> None:
    """From now on; for the whole process."""
    if not sys.platform.startswith("linux"):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:  # musl has none, and gives memory back by itself
        mallopt(_MMAP_THRESHOLD, _OF_ITS_OWN)
        mallopt(_TRIM_THRESHOLD, _KEPT)
        # One heap for all threads: objects are read from disk by a thread, and in its own heap nobody else could use
        # what they leave behind. There is but one interpreter, so hardly ever do two want it at once.
        mallopt(_ARENA_MAX, 1)


def tune_collector() -> None:
    """From now on; for the whole process. What is there already stays: it is not even looked at once an hour.

    Nor is it now, which would take as long as a tenth of the start, for the 200 KB that imports leave behind.
    """
    gc.freeze()
    gc.set_threshold(_YOUNG, _MIDDLE, _OLD)
    gc.enable()


async def run_full_collections(sleep: Callable[[float], Awaitable[object]] = asyncio.sleep) -> None:
    """Looks at everything once an hour, for some milliseconds. Runs until it is cancelled."""
    while True:
        await sleep(_HOUR)
        gc.collect()
