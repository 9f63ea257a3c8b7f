"""Seats for so many requests at once, shared fairly between users.

A request that finds no seat waits in a queue of its user's. Seats that become free go to the waiting users in turn:
somebody with hundreds of requests waits behind themselves, and somebody with a single one hardly at all. Queues are
short and so is the waiting; who finds a full queue, or waits in vain, is asked to come again later.
"""

from __future__ import annotations

import asyncio
from collections import deque

from clusterregistry.apis.meta import errors

PER_USER = 50
"""Requests of one user that may wait."""

IN_ALL = 2000
"""Requests that may wait, whosever they are."""

PATIENCE = 15.0
"""Seconds to wait for a seat: a quarter of the default --request-timeout, as kube-apiserver has it."""


class Seats:
    """Taken and left by everybody; waited for only when there are none."""

    __slots__ = ("_free", "_patience", "_queues", "waiting")

    def __init__(self, limit: int, *, patience: float = PATIENCE) -> None:
        self._free = limit
        self._patience = patience
        self._queues: dict[str, deque[asyncio.Future[None]]] = {}
        """By user, in the order of their turns. None is empty, and there are none while a seat is free."""
        self.waiting = 0

    def take_at_once(self) -> bool:
        """Whether there was a seat."""
        if self._free:
            self._free -= 1
            return True
        return False

    async def take_in_turn(self, user: str) -> None:
        """Waits for a seat. Raises 429."""
        seat = self._stand_in_line(user)
        try:
            async with asyncio.timeout(self._patience):
                await seat
        except TimeoutError:
            self._give_up(user, seat)
            raise errors.too_many_requests() from None
        except asyncio.CancelledError:
            self._give_up(user, seat)
            raise

    def leave(self) -> None:
        """Gives the seat to whose turn it is."""
        while self._queues:
            user = next(iter(self._queues))
            queue = self._queues.pop(user)
            seat = queue.popleft()
            self.waiting -= 1
            if queue:
                self._queues[user] = queue  # at the end: the others come first
            if not seat.done():
                seat.set_result(None)
                return
        self._free += 1

    def _stand_in_line(self, user: str) -> asyncio.Future[None]:
        queue = self._queues.get(user)
        if self.waiting >= IN_ALL or (queue is not None and len(queue) >= PER_USER):
            raise errors.too_many_requests()
        if queue is None:
            queue = self._queues[user] = deque()
        seat = asyncio.get_running_loop().create_future()
        queue.append(seat)
        self.waiting += 1
        return seat

    def _give_up(self, user: str, seat: asyncio.Future[None]) -> None:
        """Leaves the line, or the seat that was given in this very moment."""
        if seat.done() and not seat.cancelled():
            self.leave()
            return
        queue = self._queues.get(user)
        if queue is not None and seat in queue:
            queue.remove(seat)
            self.waiting -= 1
            if not queue:
                del self._queues[user]
