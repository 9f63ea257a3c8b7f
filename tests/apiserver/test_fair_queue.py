"""Who gets a slot at once, who waits, in which order, and who is rejected."""

from __future__ import annotations

import asyncio
import math
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from clusterregistry.apimachinery.meta.errors import APIError
from clusterregistry.apiserver.fair_queue import MAX_WAITING_PER_USER, FairQueue


class Users:
    """Users that acquire slots of a queue, and the order in which they get them."""

    def __init__(self, queue: FairQueue) -> None:
        self.queue = queue
        self.served: list[str] = []
        self.rejected: list[str] = []
        self.errors: set[tuple[int, str, int | None]] = set()

    async def _acquire(self, user: str) -> None:
        try:
            await self.queue.acquire(user)
        except APIError as error:
            self.rejected.append(user)
            self.errors.add((error.code, error.reason, error.retry_after))
        else:
            self.served.append(user)

    async def acquire(self, *users: str) -> list[asyncio.Task[None]]:
        tasks = [asyncio.ensure_future(self._acquire(user)) for user in users]
        await asyncio.sleep(0)
        return tasks

    async def release(self, *users: str) -> None:
        for user in users:
            self.queue.release(user)
            await asyncio.sleep(0)
            await asyncio.sleep(0)

    async def release_served(self, count: int) -> None:
        """Releases the slots of those who were served first."""
        for _ in range(count):
            await self.release(next(iter(self.queue._held)))


def users(limit: int, *, patience: float = 60.0, max_waiting: float = 2000) -> Users:
    return Users(FairQueue(limit, patience=patience, max_waiting=max_waiting))


async def test_a_free_slot_is_taken_at_once() -> None:
    ours = users(2)
    await ours.acquire("ann", "ann")
    assert ours.served == ["ann", "ann"]
    assert not ours.queue.try_acquire()
    ours.queue.release("ann")
    assert ours.queue.try_acquire()
    ours.queue.release_unkept()
    assert ours.queue.try_acquire()


async def test_free_slots_go_to_the_waiting_users_in_turn() -> None:
    ours = users(1)
    await ours.acquire("noisy", *["noisy"] * 5, "ann", "bob", "ann")
    await ours.release_served(8)
    assert ours.served == ["noisy", "noisy", "ann", "bob", "noisy", "ann", "noisy", "noisy", "noisy"]
    assert ours.queue.waiting == 0


async def test_a_user_with_too_many_waiting_requests_is_rejected_and_no_other() -> None:
    ours = users(1)
    await ours.acquire(*["noisy"] * (1 + MAX_WAITING_PER_USER + 3), "ann")
    assert ours.rejected == ["noisy"] * 3
    assert ours.errors == {(429, "TooManyRequests", 1)}
    await ours.release_served(2)
    assert ours.served == ["noisy", "noisy", "ann"]
    await ours.release_served(MAX_WAITING_PER_USER)
    assert ours.queue.waiting == 0


async def test_waiting_requests_of_all_users_are_limited() -> None:
    ours = users(1, max_waiting=3)
    await ours.acquire("a", "b", "c", "d", "e")
    assert ours.rejected == ["e"]
    await ours.release_served(4)


async def test_without_limits_all_wait_as_long_as_it_takes() -> None:
    ours = Users(FairQueue(1, patience=None, max_waiting=math.inf, max_waiting_per_user=math.inf))
    await ours.acquire(*["noisy"] * 3000)
    assert not ours.rejected
    await ours.release_served(2999)
    assert len(ours.served) == 3000


async def test_a_request_that_waits_too_long_is_rejected_and_leaves_no_trace() -> None:
    ours = users(1, patience=0.01)
    tasks = await ours.acquire("a", "b", "b")
    await asyncio.wait(tasks)
    assert ours.rejected == ["b", "b"]
    assert (ours.queue.waiting, ours.queue._queues) == (0, {})
    ours.queue.release("a")
    assert ours.queue.try_acquire()


async def test_a_cancelled_request_leaves_its_turn_to_the_next() -> None:
    ours = users(1)
    _, cancelled, _ = await ours.acquire("a", "b", "c")
    cancelled.cancel()
    await asyncio.wait([cancelled])
    await ours.release("a")
    assert ours.served == ["a", "c"]


async def test_a_slot_given_to_a_request_just_cancelled_is_not_lost() -> None:
    ours = users(1)
    _, cancelled = await ours.acquire("a", "b")
    ours.queue.release("a")  # the slot is b's now, but the task has not run yet
    cancelled.cancel()
    await asyncio.wait([cancelled])
    assert ours.served == ["a"]
    assert ours.queue.try_acquire()


async def test_one_user_gets_half_of_the_slots_and_the_rest_is_for_users_with_few() -> None:
    ours = users(16)
    await ours.acquire(*["noisy"] * 8)
    assert not ours.queue.try_acquire("noisy")
    await ours.acquire("ann", "ann", "bob", "bob")
    assert len(ours.served) == 12
    assert not ours.queue.try_acquire("ann")  # two of sixteen are not few
    assert ours.queue.try_acquire("cleo")


async def test_a_user_with_its_share_waits_and_no_other_user_waits_for_it() -> None:
    ours = users(16)
    await ours.acquire(*["noisy"] * 10, "ann")
    assert ours.served[8:] == ["ann"]
    await ours.release("noisy")
    assert ours.served[8:] == ["ann"]  # with hers half of the slots are taken
    await ours.release("ann")
    assert ours.served[8:] == ["ann", "noisy"]
    await ours.release(*["noisy"] * 6)
    assert (ours.served[8:], ours.queue.waiting) == (["ann", "noisy", "noisy"], 0)


@given(
    st.integers(1, 4),
    st.lists(st.sampled_from(["ann", "bob", "cleo", "noisy", "noisy", "noisy", "release", "release"]), max_size=60),
)
async def test_no_user_gets_two_slots_while_another_waits_for_one(limit: int, happenings: list[str]) -> None:
    ours = users(limit)
    tasks: list[asyncio.Task[None]] = []
    taken = 0
    waiting: dict[str, int] = {}
    served_since: dict[str, Counter[str]] = {}
    for each in happenings:
        if each != "release":
            tasks += await ours.acquire(each)
            if taken < limit:
                taken += 1
            else:
                waiting[each] = waiting.get(each, 0) + 1
                served_since.setdefault(each, Counter())
        elif waiting:
            await ours.release_served(1)
            user = ours.served[-1]
            waiting[user] -= 1
            del served_since[user]
            if waiting[user]:
                served_since[user] = Counter()
            else:
                del waiting[user]
            for patient, served in served_since.items():
                served[user] += patient != user
            assert all(count <= 1 for served in served_since.values() for count in served.values())
        elif taken:
            await ours.release_served(1)
            taken -= 1
    assert ours.queue.waiting == sum(waiting.values())
    await ours.release_served(ours.queue.waiting)
    await asyncio.gather(*tasks)
    assert not ours.rejected
