"""A thread pool for work on large objects, and a fair limit on large requests.

A body of three megabytes can take a second of Python. With that in a thread, the interpreter switches every five
milliseconds between it and all other requests. The work must be pure: it may use nothing that the loop changes.
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
"""Bytes of a body or an object above which a thread works on it.

The worst of 32 KiB, sixteen thousand empty maps, takes about 50 ms; usual objects of that size take less than one.
"""

_pool = ThreadPoolExecutor(2, "worker")
"""Few threads, since a decoded body can take many times its memory, and more threads would not be faster."""


async def run_in_worker(work: Callable[[], T], *, size: int) -> T:
    """Runs work on ``size`` bytes, in a thread if that is large. Returns or raises what the work does.

    Work that has begun goes on to its end if the request is cancelled.
    """
    if size <= LARGE:
        return work()
    return await asyncio.get_running_loop().run_in_executor(_pool, work)


LARGE_REQUESTS = FairQueue(3, patience=None, max_waiting=math.inf, max_waiting_per_user=math.inf)
"""Slots for large requests of this process, from the decoding of their bodies to their responses.

Two requests are in the threads, and one waits for storage or authorizer. A body of three megabytes can take eighty when
it is decoded; requests that wait have their bodies only.
"""
