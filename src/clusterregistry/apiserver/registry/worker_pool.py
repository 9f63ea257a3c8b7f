"""A thread pool for work on large objects, and a fair limit on large requests.

A body of three megabytes can take a second of Python. With that in a thread, the interpreter switches every five
milliseconds between it and all other requests. The work must be pure: it may use nothing that the loop changes.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

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


class FairLimiter:
    """Limits the large requests that are served at once, from the decoding of their bodies to their responses.

    A body of three megabytes can take eighty when it is decoded. Requests that wait have their bodies only. Users take
    turns: a user with hundreds of requests does not delay the others.
    """

    def __init__(self, places: int) -> None:
        self._free = places
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        """By user, in the order of turns. No queue is empty, and there is none while a place is free."""

    async def take(self, user: str) -> None:
        """Waits for a place, which ``leave`` returns."""
        if self._free:
            self._free -= 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(user, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():  # the place was assigned just before the request was cancelled
                self.leave()
            raise

    def leave(self) -> None:
        while self._waiting:
            user = next(iter(self._waiting))
            queue = self._waiting.pop(user)
            turn = queue.popleft()
            if queue:
                self._waiting[user] = queue  # at the end: the other users come first
            if not turn.cancelled():
                turn.set_result(None)
                return
        self._free += 1


LARGE_REQUESTS = FairLimiter(3)
"""The limit of this process: two requests in the threads, and one that waits for storage or authorizer."""
