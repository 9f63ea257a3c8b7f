"""Long work on large objects, beside the loop.

A body of three megabytes can take a second of Python. In a thread the interpreter changes every five milliseconds
between that and all other requests. What runs there must be pure: it may use nothing that the loop changes.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from clusterregistry.apiserver.fair_queue import FairQueue

T = TypeVar("T")

LARGE = 32 * 1024
"""Bytes of a body or an object above which it is worked on beside the loop. The worst of 32 KiB, sixteen thousand empty
maps, takes about 50 ms; what people send of that size takes less than one."""

_pool = ThreadPoolExecutor(2, "worker")
"""Few, since what is decoded can take many times the memory of the body, and more of them would not be faster."""


async def run_in_worker(work: Callable[[], T], *, size: int) -> T:
    """What the work returns or raises. ``size`` is that of what is worked on: small work is done at once.

    Work whose request was given up is done to its end once it has begun.
    """
    if size <= LARGE:
        return work()
    return await asyncio.get_running_loop().run_in_executor(_pool, work)


LARGE_REQUESTS = FairQueue(3, patience=None, max_waiting=math.inf, max_waiting_per_user=math.inf)
"""Slots for large requests of this process, from when their bodies are decoded to when they are answered.

Two are worked on, and one waits for its storage or its authorizer. What a body of three megabytes is decoded to can
take eighty; requests that wait have their bodies only.
"""
