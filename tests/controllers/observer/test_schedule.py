"""When rounds start, in virtual time: what a round is here is a pause, and a note of when it ran."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter, defaultdict
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from clusterregistry.controllers.observer.schedule import Schedule
from clusterregistry.controllers.observer.settings import ObserverSettings
from tests.client.fake_clock import now, run

SETTINGS = ObserverSettings()


class Rounds:
    """The work of a schedule: notes starts, and takes as long as the test says."""

    def __init__(self) -> None:
        self.lengths: defaultdict[str, float] = defaultdict(float)
        self.pauses: defaultdict[str, float] = defaultdict(lambda: 30.0)
        self.starts: list[tuple[str, float]] = []
        self.forced: list[str] = []
        self.ended: list[str] = []
        self.cancelled: list[str] = []
        self.running: Counter[str] = Counter()
        self.most = 0

    async def work(self, name: str, is_forced: bool) -> float:  # noqa: FBT001 - the port of Schedule
        self.starts.append((name, now()))
        if is_forced:
            self.forced.append(name)
        self.running[name] += 1
        self.most = max(self.most, self.running.total())
        try:
            await asyncio.sleep(self.lengths[name])
        except asyncio.CancelledError:
            self.cancelled.append(name)
            raise
        finally:
            self.running[name] -= 1
        self.ended.append(name)
        return self.pauses[name]

    def times(self, name: str) -> list[float]:
        return [at for each, at in self.starts if each == name]


@contextlib.asynccontextmanager
async def running(rounds: Rounds, settings: ObserverSettings = SETTINGS) -> AsyncIterator[Schedule]:
    schedule = Schedule(rounds.work, settings=settings)
    task = asyncio.create_task(schedule.run())
    try:
        yield schedule
    finally:
        task.cancel()
        await asyncio.wait([task])
        await schedule.close()
        assert schedule.running == 0
        assert len(asyncio.all_tasks()) == 1


def test_rounds_begin_at_intervals_from_start_to_start() -> None:
    async def check() -> None:
        rounds = Rounds()
        rounds.lengths["a"] = 4.0
        async with running(rounds) as schedule:
            begin = now()
            schedule.add("a")
            await asyncio.sleep(95)
        assert [at - begin for at in rounds.times("a")] == [0.0, 30.0, 60.0, 90.0]

    run(check())


def test_a_round_that_takes_longer_than_its_interval_is_followed_at_once() -> None:
    async def check() -> None:
        rounds = Rounds()
        rounds.lengths["a"] = 40.0
        async with running(rounds) as schedule:
            begin = now()
            schedule.add("a")
            await asyncio.sleep(90)
        assert [at - begin for at in rounds.times("a")] == [0.0, 40.0, 80.0]

    run(check())


def test_thousands_that_are_added_at_once_start_one_after_the_other() -> None:
    async def check() -> None:
        rounds = Rounds()
        async with running(rounds) as schedule:
            begin = now()
            for number in range(3000):
                schedule.add(f"c{number}")
            await asyncio.sleep(16)
        starts = [at - begin for _, at in rounds.starts]
        assert len(starts) == 3000
        assert starts == pytest.approx([number * SETTINGS.start_pause for number in range(3000)], abs=1e-6)

    run(check())


def test_no_more_than_concurrency_rounds_run_at_once() -> None:
    async def check() -> None:
        rounds, settings = Rounds(), replace(SETTINGS, concurrency=7, prompt=1000.0, start_pause=0.0)
        for number in range(50):
            rounds.lengths[f"c{number}"] = 3.0
        async with running(rounds, settings) as schedule:
            for number in range(50):
                schedule.add(f"c{number}")
            await asyncio.sleep(29)
        assert rounds.most == 7
        assert len(rounds.ended) == 50

    run(check())


def test_slow_rounds_leave_their_places() -> None:
    """Seven silent clusters have all places for the first second; then the others go on as if there were none."""

    async def check() -> None:
        rounds, settings = Rounds(), replace(SETTINGS, concurrency=7, slow_concurrency=7, start_pause=0.0)
        for number in range(7):
            rounds.lengths[f"slow{number}"] = 20.0
        async with running(rounds, settings) as schedule:
            begin = now()
            for number in range(7):
                schedule.add(f"slow{number}")
            for number in range(30):
                schedule.add(f"quick{number}")
            await asyncio.sleep(19)
            assert schedule.running == 7
        others = [at - begin for name, at in rounds.starts if name.startswith("quick")]
        assert others == [settings.prompt] * 30

    run(check())


def test_there_are_no_more_slow_rounds_than_their_bound() -> None:
    """Beyond it slow rounds keep their places, until one of the others ends."""

    async def check() -> None:
        rounds, settings = Rounds(), replace(SETTINGS, concurrency=4, slow_concurrency=6, start_pause=0.0)
        rounds.pauses.default_factory = lambda: 1000.0
        for number in range(40):
            rounds.lengths[f"c{number}"] = 9.0
        async with running(rounds, settings) as schedule:
            for number in range(40):
                schedule.add(f"c{number}")
            await asyncio.sleep(500)
        assert rounds.most == 10
        assert sorted(rounds.ended) == sorted(f"c{number}" for number in range(40))

    run(check())


def test_a_slow_round_that_ends_while_it_waits_for_a_slow_place_is_not_counted_twice() -> None:
    async def check() -> None:
        rounds, settings = Rounds(), replace(SETTINGS, concurrency=2, slow_concurrency=1, start_pause=0.0)
        rounds.lengths.update(long=50.0, short=3.0)
        rounds.pauses.default_factory = lambda: 1000.0
        async with running(rounds, settings) as schedule:
            schedule.add("long")
            schedule.add("short")
            await asyncio.sleep(10)
            assert schedule.running == 1
            for number in range(4):
                rounds.lengths[f"c{number}"] = 5.0
                schedule.add(f"c{number}")
            await asyncio.sleep(0.5)
            assert schedule.running == 3

    run(check())


def test_what_is_removed_is_cancelled_and_never_starts_again() -> None:
    async def check() -> None:
        rounds = Rounds()
        rounds.lengths["a"] = 10.0
        async with running(rounds) as schedule:
            schedule.add("a")
            schedule.add("b")
            await asyncio.sleep(5)
            schedule.remove("a")
            schedule.remove("b")
            schedule.remove("unknown")
            await asyncio.sleep(200)
        assert rounds.cancelled == ["a"]
        assert len(rounds.times("a")) == len(rounds.times("b")) == 1

    run(check())


def test_what_is_removed_before_its_round_began_never_runs() -> None:
    async def check() -> None:
        rounds = Rounds()
        async with running(rounds) as schedule:
            schedule.add("a")
            schedule.remove("a")
            await asyncio.sleep(100)
        assert not rounds.starts

    run(check())


def test_what_is_added_again_begins_again() -> None:
    async def check() -> None:
        rounds = Rounds()
        rounds.lengths["a"] = 10.0
        async with running(rounds) as schedule:
            begin = now()
            schedule.add("a")
            await asyncio.sleep(5)
            schedule.add("a")
            await asyncio.sleep(26)
        assert [at - begin for at in rounds.times("a")] == [0.0, 5.0]
        assert rounds.cancelled == ["a"]

    run(check())


def test_run_now_comes_before_all_that_is_due() -> None:
    async def check() -> None:
        rounds, settings = Rounds(), replace(SETTINGS, concurrency=1, prompt=1000.0, start_pause=0.0)
        rounds.lengths.update(a=1.0, b=1.0, c=1.0)
        async with running(rounds, settings) as schedule:
            for name in ("a", "b", "c"):
                schedule.add(name)
            await asyncio.sleep(0.5)
            await schedule.run_now("c")
        assert [name for name, _ in rounds.starts][:2] == ["a", "c"]
        assert rounds.forced == ["c"]

    run(check())


def test_run_now_waits_for_the_round_that_runs() -> None:
    async def check() -> None:
        rounds = Rounds()
        rounds.lengths["a"] = 2.0
        async with running(rounds) as schedule:
            begin = now()
            schedule.add("a")
            await asyncio.sleep(1)
            await asyncio.gather(*(schedule.run_now("a") for _ in range(5)))
            assert now() - begin == 2.0
        assert len(rounds.starts) == 1
        assert not rounds.forced

    run(check())


def test_many_callers_of_run_now_share_one_round() -> None:
    async def check() -> None:
        rounds = Rounds()
        rounds.lengths["a"] = 2.0
        async with running(rounds) as schedule:
            schedule.add("a")
            await asyncio.sleep(10)
            await asyncio.gather(*(schedule.run_now("a") for _ in range(5)))
        assert len(rounds.starts) == 2
        assert rounds.forced == ["a"]

    run(check())


def test_run_now_of_an_unknown_or_removed_cluster_raises_key_error() -> None:
    async def check() -> None:
        rounds = Rounds()
        rounds.lengths["a"] = 10.0
        async with running(rounds) as schedule:
            with pytest.raises(KeyError):
                await schedule.run_now("unknown")
            schedule.add("a")
            await asyncio.sleep(1)
            waiting = asyncio.create_task(schedule.run_now("a"))
            await asyncio.sleep(1)
            schedule.remove("a")
            with pytest.raises(KeyError):
                await waiting

    run(check())


def test_a_caller_of_run_now_may_give_up() -> None:
    async def check() -> None:
        rounds = Rounds()
        rounds.lengths["a"] = 10.0
        async with running(rounds) as schedule:
            schedule.add("a")
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(3):
                    await schedule.run_now("a")
            await asyncio.sleep(20)
        assert rounds.ended == ["a"]

    run(check())


def test_a_round_that_raises_is_told_and_the_next_one_comes(caplog: pytest.LogCaptureFixture) -> None:
    async def check() -> None:
        starts: list[float] = []

        async def work(name: str, is_forced: bool) -> float:  # noqa: FBT001 - as above
            starts.append(now())
            raise RuntimeError(f"a bug {name} {is_forced}")

        schedule = Schedule(work, settings=SETTINGS)
        task = asyncio.create_task(schedule.run())
        schedule.add("a")
        await asyncio.sleep(65)
        task.cancel()
        await asyncio.wait([task])
        assert [at - starts[0] for at in starts] == [0.0, 30.0, 60.0]

    with caplog.at_level(logging.ERROR):
        run(check())
    assert caplog.text.count("the round of cluster a failed") == 3


def test_a_cancelled_run_ends_its_rounds() -> None:
    async def check() -> None:
        rounds = Rounds()
        rounds.lengths["a"] = 10.0
        schedule = Schedule(rounds.work, settings=SETTINGS)
        task = asyncio.create_task(schedule.run())
        schedule.add("a")
        await asyncio.sleep(1)
        task.cancel()
        await asyncio.wait([task])
        assert rounds.cancelled == ["a"]
        assert schedule.running == 0
        assert len(asyncio.all_tasks()) == 1

    run(check())
