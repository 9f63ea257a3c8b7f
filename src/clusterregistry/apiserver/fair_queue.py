"""Limits concurrent work, and lets users take turns when they have to wait for it.

Used for requests in flight and, with a smaller limit, for large requests.
"""

from __future__ import annotations

import asyncio
from collections import deque

from clusterregistry.apimachinery.meta import errors

PATIENCE = 15.0
"""Seconds to wait for a slot: a quarter of the default --request-timeout, as in kube-apiserver."""

MAX_WAITING = 2000
"""Requests that may wait, of all users."""

MAX_WAITING_PER_USER = 50

_FEW = 8
"""One slot in so many counts as few; with fewer slots than that, all are for all users."""


class FairQueue:
    """A number of slots. A slot that becomes free goes to the waiting users in turn.

    Half of the slots are reserved for users that hold few: one user with many slow requests does not lock out others.
    """

    __slots__ = (
        "_few",
        "_free",
        "_held",
        "_max_waiting",
        "_max_waiting_per_user",
        "_patience",
        "_queues",
        "_reserve",
        "waiting",
    )

    def __init__(
        self,
        limit: int,
        *,
        patience: float | None = PATIENCE,
        max_waiting: float = MAX_WAITING,
        max_waiting_per_user: float = MAX_WAITING_PER_USER,
    ) -> None:
        """``patience`` is in seconds; None waits as long as it takes."""
        self._free = limit
        self._patience = patience
        self._max_waiting, self._max_waiting_per_user = max_waiting, max_waiting_per_user
        self._few = limit // _FEW
        self._reserve = limit // 2 if self._few else 0
        self._held: dict[str, int] = {}
        """Slots by user, of those that are kept."""
        self._queues: dict[str, deque[asyncio.Future[None]]] = {}
        """By user, in the order of their turns. No queue is empty, and no user waits that may have a free slot."""
        self.waiting = 0
        """How many requests wait."""

    def try_acquire(self, user: str = "") -> bool:
        """Takes a free slot for this turn of the event loop; ``keep`` extends that. Returns False if there is none."""
        free = self._free
        if free > self._reserve or (free and self._held.get(user, 0) < self._few):
            self._free = free - 1
            return True
        return False

    def keep(self, user: str) -> None:
        """Keeps the slot of ``try_acquire`` beyond this turn of the event loop."""
        held = self._held
        held[user] = held.get(user, 0) + 1

    async def acquire(self, user: str) -> None:
        """Takes a slot, in turn, and keeps it. Raises 429 if too many wait, or for too long."""
        if self.try_acquire(user):
            self.keep(user)
            return
        turn = self._enqueue(user)
        try:
            async with asyncio.timeout(self._patience):
                await turn
        except TimeoutError:
            self._give_up(user, turn)
            raise errors.too_many_requests() from None
        except asyncio.CancelledError:
            self._give_up(user, turn)
            raise

    def release_unkept(self) -> None:
        """Frees the slot of ``try_acquire`` in the same turn of the event loop."""
        self._free += 1
        if self._queues:
            self._hand_out()

    def release(self, user: str) -> None:
        """Frees a slot that the user kept."""
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
        """Gives the free slot to the first user in turn that may have it."""
        for user in self._queues:
            if self.try_acquire(user):
                break
        else:
            return
        if not self._wake_next(user):
            self.release_unkept()

    def _wake_next(self, user: str) -> bool:
        """Gives the taken slot to the user's first waiting request; returns False if that has just given up."""
        queue = self._queues.pop(user)
        turn = queue.popleft()
        self.waiting -= 1
        if queue:
            self._queues[user] = queue  # at the end: the other users come first
        if turn.done():
            return False
        self.keep(user)
        turn.set_result(None)
        return True

    def _enqueue(self, user: str) -> asyncio.Future[None]:
        queue = self._queues.get(user)
        if self.waiting >= self._max_waiting or (queue is not None and len(queue) >= self._max_waiting_per_user):
            raise errors.too_many_requests()
        if queue is None:
            queue = self._queues[user] = deque()
        turn = asyncio.get_running_loop().create_future()
        queue.append(turn)
        self.waiting += 1
        return turn

    def _give_up(self, user: str, turn: asyncio.Future[None]) -> None:
        """Leaves the queue, or frees the slot that was given in this very moment."""
        if turn.done() and not turn.cancelled():
            self.release(user)
            return
        queue = self._queues.get(user)
        if queue is not None and turn in queue:
            queue.remove(turn)
            self.waiting -= 1
            if not queue:
                del self._queues[user]
