from __future__ import annotations

import asyncio

import pytest

from clusterregistry.client.errors import ClientError
from clusterregistry.client.workqueue import (
    ItemBackoff,
    LongestOf,
    ShutDownError,
    TokenBucket,
    WorkQueue,
    run_workers,
)
from tests.client.fake_clock import now, run


def test_a_key_that_is_added_twice_is_taken_once() -> None:
    async def work() -> None:
        queue = WorkQueue[str]()
        for key in ("a", "b", "a"):
            queue.add(key)
        assert [await queue.get(), await queue.get(), len(queue)] == ["a", "b", 0]

    run(work())


def test_a_key_that_is_added_while_it_is_processed_is_processed_again_afterwards() -> None:
    async def work() -> None:
        queue = WorkQueue[str]()
        queue.add("a")
        await queue.get()
        queue.add("a")
        queue.add("a")
        assert len(queue) == 0  # no other worker may take it
        queue.done("a")
        assert (len(queue), await queue.get()) == (1, "a")
        queue.done("a")
        assert len(queue) == 0

    run(work())


def test_a_worker_waits_for_the_next_key() -> None:
    async def work() -> None:
        queue = WorkQueue[str]()
        taking = [asyncio.create_task(queue.get()) for _ in range(2)]
        await asyncio.sleep(1)
        queue.add("a")
        queue.add("b")
        assert sorted(await asyncio.gather(*taking)) == ["a", "b"]

    run(work())


def test_a_worker_that_is_cancelled_when_its_key_comes_loses_no_key() -> None:
    async def work() -> None:
        queue = WorkQueue[str]()
        first, second = asyncio.create_task(queue.get()), asyncio.create_task(queue.get())
        await asyncio.sleep(0)
        queue.add("a")
        first.cancel()
        assert await second == "a"
        assert first.cancelled()

    run(work())


def test_a_key_is_added_after_its_pause_and_the_shortest_counts() -> None:
    async def work() -> None:
        queue, begun = WorkQueue[str](), now()
        queue.add_after("a", 10)
        queue.add_after("a", 3)
        queue.add_after("a", 7)
        assert (await queue.get(), now() - begun) == ("a", 3)
        queue.done("a")
        await asyncio.sleep(20)
        assert len(queue) == 0
        queue.add_after("b", 0)
        assert len(queue) == 1

    run(work())


def test_the_pause_of_a_key_doubles_with_its_failures_until_it_is_forgotten() -> None:
    limiter = ItemBackoff[str](first=0.005, longest=1000)
    assert [limiter.when("a") for _ in range(4)] == [0.005, 0.01, 0.02, 0.04]
    assert limiter.when("b") == 0.005
    assert limiter.failures("a") == 4
    limiter.forget("a")
    assert (limiter.when("a"), limiter.failures("a")) == (0.005, 1)
    for _ in range(2000):
        limiter.when("b")
    assert limiter.when("b") == 1000


def test_all_keys_together_have_a_rate() -> None:
    time = 50.0
    bucket = TokenBucket[str](rate=10, burst=2, now=lambda: time)
    assert [bucket.when("x") for _ in range(4)] == [0, 0, pytest.approx(0.1), pytest.approx(0.2)]
    time += 60.0
    assert [bucket.when("x") for _ in range(3)] == [0, 0, pytest.approx(0.1)]


def test_of_several_limiters_the_longest_pause_counts() -> None:
    limiter = LongestOf[str](ItemBackoff(first=1), TokenBucket(rate=0.1, burst=1, now=lambda: 1.0))
    assert [limiter.when("a"), limiter.when("a")] == [1, pytest.approx(10)]
    limiter.forget("a")
    assert limiter.failures("a") == 0


def test_a_failing_key_is_processed_again_ever_later() -> None:
    async def work() -> list[float]:
        queue, begun = WorkQueue[str](ItemBackoff(first=1)), now()
        times: list[float] = []

        async def reconcile(_: str) -> float | None:
            times.append(now() - begun)
            if len(times) == 2:
                raise ClientError("no")
            if len(times) < 4:
                raise RuntimeError
            queue.shut_down()
            return None

        queue.add("a")
        await run_workers(queue, reconcile)
        assert queue.failures("a") == 0
        return times

    assert run(work()) == [0, 1, 3, 7]


def test_a_key_can_ask_to_be_processed_again_later() -> None:
    async def work() -> None:
        queue, times = WorkQueue[str](), list[float]()
        begun = now()

        async def reconcile(_: str) -> float | None:
            times.append(now() - begun)
            if len(times) == 3:
                queue.shut_down()
            return 30.0

        queue.add("a")
        await run_workers(queue, reconcile, workers=3)
        assert times == [0, 30, 60]

    run(work())


def test_one_key_is_never_processed_by_two_workers() -> None:
    async def work() -> None:
        queue, active, most = WorkQueue[int](), dict[int, int](), 0
        processed = 0

        async def reconcile(key: int) -> None:
            nonlocal most, processed
            active[key] = active.get(key, 0) + 1
            most = max(most, active[key])
            await asyncio.sleep(1)
            active[key] -= 1
            processed += 1

        async def feed() -> None:
            for _ in range(50):
                queue.add(1)
                queue.add(2)
                await asyncio.sleep(0.3)
            await queue.drain()

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(feed())
            tasks.create_task(run_workers(queue, reconcile, workers=4))
        assert most == 1
        assert 20 <= processed <= 40  # two keys, a second each, fifteen seconds

    run(work())


def test_a_queue_that_is_shut_down_gives_what_waits_and_then_ends() -> None:
    async def work() -> None:
        queue = WorkQueue[str]()
        queue.add("a")
        queue.add_after("late", 5)
        queue.shut_down()
        queue.add("b")
        queue.add_after("c", 1)
        assert await queue.get() == "a"
        with pytest.raises(ShutDownError):
            await queue.get()
        assert queue.is_shut_down

    run(work())


def test_workers_that_wait_end_with_the_queue() -> None:
    async def work() -> None:
        queue = WorkQueue[str]()

        async def reconcile(_: str) -> None: ...

        workers = asyncio.create_task(run_workers(queue, reconcile, workers=3))
        await asyncio.sleep(1)
        queue.shut_down()
        await workers

    run(work())


def test_draining_waits_for_keys_that_are_processed() -> None:
    async def work() -> None:
        queue, begun = WorkQueue[str](), now()
        queue.add("a")
        await queue.get()
        asyncio.get_running_loop().call_later(4, queue.done, "a")
        await queue.drain()
        assert now() - begun == 4
        await WorkQueue[str]().drain()

    run(work())
