"""Harm is done to the process that is meant, and undone; the workload goes on through it."""

from __future__ import annotations

import asyncio
import random
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.system.faults.nemesis import Chosen, Killing, OneOf, Pausing, Storm, pause, resume
from tests.system.faults.servers import Server
from tests.system.faults.verdict import check
from tests.system.faults.workload import Size, Workload

PAUSES_FIRST = 0
"""A seed with which a storm begins with a pause."""


class Sleeper:
    """A process that does nothing but run."""

    name = "sleeper"

    def __init__(self) -> None:
        self._process: asyncio.subprocess.Process | None = None
        self.starts = 0

    @property
    def process(self) -> asyncio.subprocess.Process:
        assert self._process is not None
        return self._process

    @property
    def pid(self) -> int:
        return self.process.pid

    async def start(self) -> None:
        self._process = await asyncio.create_subprocess_exec(sys.executable, "-c", "import time; time.sleep(600)")
        self.starts += 1

    async def ended(self) -> None:
        assert await self.process.wait() == -signal.SIGKILL

    async def comes_to(self, *, stopped: bool) -> None:
        """The system takes a moment to do what a signal says, and tells nobody when it has."""
        async with asyncio.timeout(10):
            while self._is_stopped() != stopped:  # noqa: ASYNC110 - there is no event to wait for
                await asyncio.sleep(0.001)

    def _is_stopped(self) -> bool:
        state = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0]
        return state == "T"


@pytest.fixture
async def sleeper() -> AsyncIterator[Sleeper]:
    started = Sleeper()
    await started.start()
    yield started
    started.process.kill()
    await started.process.wait()


async def test_killing_ends_a_process_and_starts_it_again(sleeper: Sleeper) -> None:
    before = sleeper.pid
    assert await Killing(sleeper).strike() == "killed sleeper"
    assert sleeper.pid != before
    assert sleeper.starts == 2


async def test_a_process_that_runs_needs_no_healing(sleeper: Sleeper) -> None:
    await Killing(sleeper).heal()
    assert sleeper.starts == 1


async def test_a_paused_process_stands_still_until_it_is_resumed(sleeper: Sleeper) -> None:
    pause(sleeper.pid)
    await sleeper.comes_to(stopped=True)
    resume(sleeper.pid)
    await sleeper.comes_to(stopped=False)


async def test_healing_resumes_what_a_strike_that_was_cut_short_has_paused(sleeper: Sleeper) -> None:
    pausing = Pausing(sleeper, seconds=600)
    strike = asyncio.create_task(pausing.strike())
    await sleeper.comes_to(stopped=True)
    strike.cancel()
    await OneOf([pausing], rng=random.Random(1)).heal()
    await sleeper.comes_to(stopped=False)


async def test_one_of_several_is_chosen(sleeper: Sleeper) -> None:
    nemesis = OneOf([Killing(sleeper), Pausing(sleeper, seconds=0)], rng=random.Random(1))
    done = {await nemesis.strike() for _ in range(20)}
    assert done == {"killed sleeper", "paused sleeper"}
    await sleeper.comes_to(stopped=False)


async def test_a_storm_strikes_in_every_way_and_counts(sleeper: Sleeper) -> None:
    async def choose() -> Chosen:
        return Chosen("sleeper", sleeper)

    storm = Storm(choose, rng=random.Random(1), longest=0.0)
    for _ in range(20):
        await storm.strike()
    assert set(storm.strikes) == {"killed a sleeper", "paused a sleeper"}
    assert storm.strikes.total() == 20
    assert sleeper.starts == 1 + storm.strikes["killed a sleeper"]
    await sleeper.comes_to(stopped=False)


async def test_a_storm_heals_what_was_cut_short(sleeper: Sleeper) -> None:
    async def choose() -> Chosen:
        return Chosen("sleeper", sleeper)

    storm = Storm(choose, rng=random.Random(PAUSES_FIRST), longest=600.0)
    await storm.heal()
    strike = asyncio.create_task(storm.strike())
    await sleeper.comes_to(stopped=True)
    strike.cancel()
    await storm.heal()
    await sleeper.comes_to(stopped=False)


async def test_a_server_that_hangs_for_a_while_keeps_its_word(tmp_path: Path) -> None:
    server = Server(tmp_path)
    async with server.running():
        workload = Workload([server.target()], seed=1, size=Size(writers=4, readers=1, watchers=1), patience=0.5)
        async with workload.running():
            while workload.operations < 100:  # all are at it
                await workload.checkpoint()
            await Pausing(server, seconds=1.5).strike()
            await workload.checkpoint()
    verdict = check(workload.record(), sole_writer=True)
    assert verdict.violations == [], verdict.report()
    assert verdict.unknown > 0
    assert verdict.acknowledged > 0
