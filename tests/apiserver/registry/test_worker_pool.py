"""Large requests: beside the loop, few at a time, and user by user."""

from __future__ import annotations

import asyncio
import threading

import pytest

from clusterregistry.apiserver.registry.worker_pool import LARGE, FairLimiter, run_in_worker


async def test_small_work_is_done_at_once_and_large_work_in_another_thread() -> None:
    here = threading.get_ident()
    assert await run_in_worker(threading.get_ident, size=LARGE) == here
    assert await run_in_worker(threading.get_ident, size=LARGE + 1) != here


async def test_the_loop_turns_while_large_work_is_done() -> None:
    ended = threading.Event()
    work = asyncio.ensure_future(run_in_worker(lambda: ended.wait(30), size=LARGE + 1))
    for _ in range(100):
        await asyncio.sleep(0)
    assert not work.done()
    ended.set()
    assert await work


async def test_what_large_work_raises_is_raised() -> None:
    def fail() -> None:
        raise KeyError("a")

    with pytest.raises(KeyError, match="a"):
        await run_in_worker(fail, size=LARGE + 1)


async def entered(room: FairLimiter, user: str, order: list[str]) -> None:
    await room.take(user)
    order.append(user)


async def turns(number: int = 5) -> None:
    for _ in range(number):
        await asyncio.sleep(0)


async def test_no_more_requests_than_there_are_places_go_on() -> None:
    room = FairLimiter(2)
    order: list[str] = []
    waiting = [asyncio.ensure_future(entered(room, "joe", order)) for _ in range(5)]
    await turns()
    assert len(order) == 2
    for _ in range(5):
        room.leave()
    await asyncio.gather(*waiting)
    assert len(order) == 5


async def test_users_have_their_turns_one_after_the_other() -> None:
    room = FairLimiter(1)
    order: list[str] = []
    users = ["joe", "joe", "joe", "joe", "jane"]
    waiting = [asyncio.ensure_future(entered(room, user, order)) for user in users]
    for _ in users:
        await turns()
        room.leave()
    await asyncio.gather(*waiting)
    assert order == ["joe", "joe", "jane", "joe", "joe"]


async def test_a_request_that_is_given_up_leaves_its_place_to_others() -> None:
    room = FairLimiter(1)
    order: list[str] = []
    await room.take("joe")
    gone = asyncio.ensure_future(entered(room, "joe", order))
    late = asyncio.ensure_future(entered(room, "joe", order))
    await turns()
    gone.cancel()
    await turns()
    room.leave()
    await late
    assert order == ["joe"]


async def test_a_place_that_comes_to_a_request_just_given_up_is_not_lost() -> None:
    room = FairLimiter(1)
    order: list[str] = []
    await room.take("joe")
    gone = asyncio.ensure_future(entered(room, "joe", order))
    late = asyncio.ensure_future(entered(room, "jane", order))
    await turns()
    room.leave()
    gone.cancel()
    await late
    assert order == ["jane"]
