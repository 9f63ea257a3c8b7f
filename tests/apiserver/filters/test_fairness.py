"""Seats: who gets one at once, who waits, in which order, and who is sent away."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterregistry.apimachinery.meta.errors import APIError
from clusterregistry.apiserver.filters import in_flight
from clusterregistry.apiserver.filters.in_flight import Bodies, FairQueue


class Room:
    """Notes in which order users get their seats."""

    def __init__(self, limit: int, *, patience: float = 60.0) -> None:
        self.seats = FairQueue(limit, patience=patience)
        self.seated: list[str] = []
        self.refused: list[str] = []
        self.refusals: set[tuple[int, str, int | None]] = set()

    async def enter(self, user: str) -> None:
        try:
            if not self.seats.take_at_once(user):
                await self.seats.take_in_turn(user)
        except APIError as error:
            self.refused.append(user)
            self.refusals.add((error.code, error.reason, error.retry_after))
        else:
            self.seated.append(user)

    async def arrive(self, *users: str) -> list[asyncio.Task[None]]:
        tasks = [asyncio.ensure_future(self.enter(user)) for user in users]
        await asyncio.sleep(0)
        return tasks

    async def leave(self, count: int) -> None:
        for _ in range(count):
            self.seats.leave()
            await asyncio.sleep(0)
            await asyncio.sleep(0)


async def test_those_who_find_a_seat_do_not_wait() -> None:
    room = Room(2)
    await room.arrive("ann", "ann")
    assert room.seated == ["ann", "ann"]
    assert not room.seats.take_at_once()
    room.seats.leave()
    assert room.seats.take_at_once()


async def test_free_seats_go_to_the_waiting_users_in_turn() -> None:
    room = Room(1)
    await room.arrive("noisy", *["noisy"] * 5, "ann", "bob", "ann")
    await room.leave(8)
    assert room.seated == ["noisy", "noisy", "ann", "bob", "noisy", "ann", "noisy", "noisy", "noisy"]
    assert room.seats.waiting == 0


async def test_who_has_too_many_waiting_is_sent_away_and_nobody_else() -> None:
    room = Room(1)
    await room.arrive(*["noisy"] * (1 + in_flight.PER_USER + 3), "ann")
    assert room.refused == ["noisy"] * 3
    assert room.refusals == {(429, "TooManyRequests", 1)}
    await room.leave(2)
    assert room.seated == ["noisy", "noisy", "ann"]
    await room.leave(in_flight.PER_USER)
    assert room.seats.waiting == 0


async def test_there_is_an_end_to_all_waiting_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_flight, "IN_ALL", 3)
    room = Room(1)
    await room.arrive("a", "b", "c", "d", "e")
    assert room.refused == ["e"]
    await room.leave(4)


async def test_who_waits_in_vain_is_sent_away_and_leaves_no_trace() -> None:
    room = Room(1, patience=0.01)
    tasks = await room.arrive("a", "b", "b")
    await asyncio.wait(tasks)
    assert room.refused == ["b", "b"]
    assert room.seats.waiting == 0
    room.seats.leave()
    assert room.seats.take_at_once()


async def test_who_gives_up_makes_room_for_the_next() -> None:
    room = Room(1)
    _, gone, _ = await room.arrive("a", "b", "c")
    gone.cancel()
    await asyncio.wait([gone])
    await room.leave(1)
    assert room.seated == ["a", "c"]


async def test_a_seat_given_to_somebody_who_just_gave_up_is_not_lost() -> None:
    room = Room(1)
    _, gone = await room.arrive("a", "b")
    room.seats.leave()  # b's seat now, though b has not heard of it
    gone.cancel()
    await asyncio.wait([gone])
    assert room.seated == ["a"]
    assert room.seats.take_at_once()


async def test_one_user_gets_half_of_the_seats_and_the_others_are_for_those_with_few() -> None:
    room = Room(16)
    for _ in range(8):
        assert room.seats.take_at_once("noisy")
        room.seats.keep("noisy")
    assert not room.seats.take_at_once("noisy")
    for user in ("ann", "ann", "bob", "bob"):
        assert room.seats.take_at_once(user)
        room.seats.keep(user)
    assert not room.seats.take_at_once("ann")  # who has two of sixteen has no longer few
    assert room.seats.take_at_once("cleo")


async def test_who_has_its_part_waits_for_itself_and_nobody_waits_for_it() -> None:
    room = Room(16)
    for _ in range(8):
        assert room.seats.take_at_once("noisy")
        room.seats.keep("noisy")
    await room.arrive("noisy", "noisy", "ann")
    assert room.seated == ["ann"]
    room.seats.leave_kept("noisy")
    await asyncio.sleep(0)
    assert room.seated == ["ann"]  # with hers it is half of them
    await room.leave(1)
    assert room.seated == ["ann", "noisy"]
    for _ in range(6):
        room.seats.leave_kept("noisy")
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert (room.seated, room.seats.waiting) == (["ann", "noisy", "noisy"], 0)


def test_bytes_of_bodies_are_counted_in_all_and_by_user() -> None:
    bodies = Bodies(100)
    bodies.take("noisy", 25)
    with pytest.raises(APIError) as refused:
        bodies.take("noisy", 1)
    assert (refused.value.code, refused.value.retry_after) == (429, 1)
    for user in ("ann", "bob", "cleo"):
        bodies.take(user, 25)
    with pytest.raises(APIError):
        bodies.take("dan", 1)
    bodies.give_back("noisy", 25)
    bodies.take("dan", 25)
    for user in ("ann", "bob", "cleo", "dan"):
        bodies.give_back(user, 25)
    assert (bodies.taken, bodies._held) == (0, {})


@given(
    st.integers(1, 4),
    st.lists(st.sampled_from(["ann", "bob", "cleo", "noisy", "noisy", "noisy", "leave", "leave"]), max_size=60),
)
async def test_nobody_gets_two_seats_while_another_waits_for_one(limit: int, happenings: list[str]) -> None:
    room = Room(limit)
    tasks: list[asyncio.Task[None]] = []
    taken = 0
    waiting: dict[str, int] = {}
    served_since: dict[str, Counter[str]] = {}
    for each in happenings:
        if each != "leave":
            tasks += await room.arrive(each)
            if taken < limit:
                taken += 1
            else:
                waiting[each] = waiting.get(each, 0) + 1
                served_since.setdefault(each, Counter())
        elif waiting:
            await room.leave(1)
            user = room.seated[-1]
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
            await room.leave(1)
            taken -= 1
    assert room.seats.waiting == sum(waiting.values())
    await room.leave(room.seats.waiting)
    await asyncio.gather(*tasks)
    assert not room.refused
