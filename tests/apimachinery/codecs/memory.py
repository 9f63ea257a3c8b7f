"""How much memory decoding takes."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager

AFFORDABLE = 40_000_000


@contextmanager
def little_memory(most: int = AFFORDABLE) -> Iterator[None]:
    """What is done meanwhile takes no more than that at a time."""
    tracemalloc.start()
    try:
        yield
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < most
