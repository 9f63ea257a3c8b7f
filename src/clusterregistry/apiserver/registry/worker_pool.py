"""Long work on large objects, beside the loop.

A body of three megabytes can take a second of Python. In a thread the interpreter changes every five milliseconds
between that and all other requests. What runs there must be pure: it may use nothing that the loop changes.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

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


class FairLimiter:
    """Places for large requests, from when their bodies are decoded to when they are answered.

    What a body of three megabytes is decoded to can take eighty. Those that wait have their bodies only. Users have
    their turns one after the other: one with hundreds of requests does not hold up the others.
    """

    def __init__(self, places: int) -> None:
        self._free = places
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        """By user, in the order of their turns. None is empty, and there are none while a place is free."""

    async def take(self, user: str) -> None:
        """Waits for a place. ``leave`` gives it back."""
        if self._free:
            self._free -= 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(user, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():  # the place came just when the request was given up
                self.leave()
            raise

    def leave(self) -> None:
        while self._waiting:
            user = next(iter(self._waiting))
            queue = self._waiting.pop(user)
            turn = queue.popleft()
            if queue:
                self._waiting[user] = queue  # at the end: the others come first
            if not turn.cancelled():
                turn.set_result(None)
                return
        self._free += 1


LARGE_REQUESTS = FairLimiter(3)
"""For all of this process: two that are worked on, and one that waits for its storage or its authorizer."""
