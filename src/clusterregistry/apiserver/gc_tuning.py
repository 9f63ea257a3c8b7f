"""Tunes the garbage collector: collections stay short.

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
import gc
from collections.abc import Awaitable, Callable

_YOUNG = 5_000
"""New objects between two collections of young objects. With Python's 700 the collector keeps visiting objects that
requests under way are about to free, which is 3% of the cost of a write."""

_MIDDLE = 1
"""Young collections until one includes the survivors: some 15,000 objects in all, for a few ms."""

_OLD = 400
"""Collections of survivors until a full one, whatever the hour. So many mean that millions of new objects have stayed:
they may have been stored, or cycles are made every second."""

_HOUR = 3600.0


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
