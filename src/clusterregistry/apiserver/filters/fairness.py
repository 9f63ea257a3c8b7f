"""Seats for so many requests at once, and room for the bodies that are on their way, shared fairly between users.

A request that finds no seat waits in a queue of its user's. Seats that become free go to the waiting users in turn:
somebody with hundreds of requests waits behind themselves, and somebody with a single one hardly at all. Queues are
short and so is the waiting; who finds a full queue, or waits in vain, is asked to come again later.

One user gets at most half of the seats: the other half is for users who hold few. Nobody has a seat while its body is
still to come, since that takes as long as a client likes.
"""

from __future__ import annotations

import asyncio
from collections import deque

from clusterregistry.apimachinery.meta import errors

PER_USER = 50
"""Requests of one user that may wait."""

IN_ALL = 2000
"""Requests that may wait, whosever they are."""

PATIENCE = 15.0
"""Seconds to wait for a seat: a quarter of the default --request-timeout, as kube-apiserver has it."""


BODY_BYTES = 96 << 20
"""Of all bodies that came after their heads, until their requests are answered: 32 of the largest."""

_SHARE = 4
"""One user may hold one part of them in so many."""

_FEW = 8
"""Part of the seats that counts as few; with fewer than so many seats all are for everybody."""


class Bodies:
    """How many bytes of bodies are in memory, in all and by user."""

    __slots__ = ("_held", "_limit", "_share", "taken")

    def __init__(self, limit: int = BODY_BYTES) -> None:
        self._limit, self._share = limit, limit // _SHARE
        self._held: dict[str, int] = {}
        self.taken = 0

    def take(self, user: str, count: int) -> None:
        """So many bytes of a user's have come. Raises 429 when they are too many, and then counts none of them."""
        held = self._held.get(user, 0) + count
        if self.taken + count > self._limit or held > self._share:
            raise errors.too_many_requests()
        self._held[user] = held
        self.taken += count

    def give_back(self, user: str, count: int) -> None:
        self.taken -= count
        held = self._held.get(user, 0) - count
        if held:
            self._held[user] = held
        else:
            self._held.pop(user, None)


class Seats:
    """Taken and left by everybody; waited for only when there are none."""

    __slots__ = ("_few", "_free", "_held", "_patience", "_queues", "_reserve", "waiting")

    def __init__(self, limit: int, *, patience: float = PATIENCE) -> None:
        self._free = limit
        self._patience = patience
        self._few = limit // _FEW
        self._reserve = limit // 2 if self._few else 0
        """Seats that are only for users who hold few."""
        self._held: dict[str, int] = {}
        """By user: those that are kept for longer than a turn of the loop."""
        self._queues: dict[str, deque[asyncio.Future[None]]] = {}
        """By user, in the order of their turns. None is empty, and nobody is here who may have a seat that is free."""
        self.waiting = 0

    def take_at_once(self, user: str = "") -> bool:
        """Whether there was a seat for the user. To have it for longer than this turn of the loop takes ``keep``."""
        free = self._free
        if free > self._reserve or (free and self._held.get(user, 0) < self._few):
            self._free = free - 1
            return True
        return False

    def keep(self, user: str) -> None:
        """The seat that the user took at once is kept for a while."""
        held = self._held
        held[user] = held.get(user, 0) + 1

    async def take_in_turn(self, user: str) -> None:
        """Waits for a seat, to be kept. Raises 429."""
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
        """Gives a seat that was not kept to whose turn it is."""
        self._free += 1
        if self._queues:
            self._hand_out()

    def leave_kept(self, user: str) -> None:
        """Gives a seat that the user kept to whose turn it is."""
        held = self._held
        left = held[user] - 1
        if left:
            held[user] = left
        else:
            del held[user]
        self._free += 1
        if self._queues:
            self._hand_out()

    def _hand_out(self) -> None:
        """Gives the seat that became free to the first in turn who may have it: those who may not are few."""
        for user in self._queues:
            if self.take_at_once(user):
                break
        else:
            return
        if not self._seat_next(user):
            self.leave()

    def _seat_next(self, user: str) -> bool:
        """Gives a seat that is taken to the user's first request in line; False when that has just given up."""
        queue = self._queues.pop(user)
        seat = queue.popleft()
        self.waiting -= 1
        if queue:
            self._queues[user] = queue  # at the end: the others come first
        if seat.done():
            return False
        self.keep(user)
        seat.set_result(None)
        return True

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
            self.leave_kept(user)
            return
        queue = self._queues.get(user)
        if queue is not None and seat in queue:
            queue.remove(seat)
            self.waiting -= 1
            if not queue:
                del self._queues[user]
