"""Faults of processes: servers, or members of the store behind them.

Nothing here knows what a process does; a victim knows how it is started, and when it is up.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple, Protocol


class Victim(Protocol):
    """A process that can be lost and started again."""

    @property
    def name(self) -> str:
        """For messages."""

    @property
    def pid(self) -> int:
        """Of the process that runs now."""

    async def ended(self) -> None:
        """Returns when the process that was killed is gone, and nothing of it is left to be waited for."""

    async def start(self) -> None:
        """Starts it again on what it had, and returns when it is up."""


class Nemesis(Protocol):
    """Injects faults, one at a time."""

    async def strike(self) -> str:
        """Injects one fault, and returns its description. ``heal`` undoes what is left of it."""

    async def heal(self) -> None:
        """Brings everything back, so that the system can recover. Idempotent."""


def kill(pid: int) -> None:
    """As by ``kill -9``: the process gets to do nothing more."""
    os.kill(pid, signal.SIGKILL)


def pause(pid: int) -> None:
    """The process stands still, with its connections open, as on a machine that hangs."""
    os.kill(pid, signal.SIGSTOP)


def resume(pid: int) -> None:
    """A paused process goes on, and believes that no time has passed."""
    os.kill(pid, signal.SIGCONT)


class Killing:
    """Kills a process and leaves it dead for a while."""

    def __init__(self, victim: Victim, *, seconds: float = 0.0) -> None:
        self._victim, self._seconds = victim, seconds
        self._is_down = False

    async def strike(self) -> str:
        self._is_down = True
        kill(self._victim.pid)
        await self._victim.ended()
        await asyncio.sleep(self._seconds)
        await self.heal()
        return f"killed {self._victim.name}"

    async def heal(self) -> None:
        if self._is_down:
            await self._victim.start()
            self._is_down = False


class Disk(Protocol):
    """What a process writes to."""

    def fail(self) -> None:
        """From now on it reports errors."""

    def repair(self) -> None:
        """Ends that. Idempotent."""


class KillingOnFailingDisk:
    """Lets a process work on a disk that fails for a while, and kills it before it recovers."""

    def __init__(self, victim: Victim, disk: Disk, *, seconds: float) -> None:
        self._victim, self._disk, self._seconds = victim, disk, seconds
        self._is_down = False

    async def strike(self) -> str:
        self._disk.fail()
        await asyncio.sleep(self._seconds)
        self._is_down = True
        kill(self._victim.pid)
        await self._victim.ended()
        await self.heal()
        return f"had the disk of {self._victim.name} fail and killed it"

    async def heal(self) -> None:
        self._disk.repair()
        if self._is_down:
            await self._victim.start()
            self._is_down = False


class Pausing:
    """Stops a process for a while."""

    def __init__(self, victim: Victim, *, seconds: float) -> None:
        self._victim, self._seconds = victim, seconds
        self._paused = 0

    async def strike(self) -> str:
        self._paused = self._victim.pid
        pause(self._paused)
        await asyncio.sleep(self._seconds)
        await self.heal()
        return f"paused {self._victim.name}"

    async def heal(self) -> None:
        if self._paused:
            resume(self._paused)
            self._paused = 0


class OneOf:
    """Strikes with one of several, by chance."""

    def __init__(self, choices: Sequence[Nemesis], *, rng: random.Random) -> None:
        self._choices, self._rng = list(choices), rng

    async def strike(self) -> str:
        return await self._rng.choice(self._choices).strike()

    async def heal(self) -> None:
        for choice in self._choices:
            await choice.heal()


class Chosen(NamedTuple):
    """A victim, and what it is: "leader", "replica"."""

    kind: str
    victim: Victim


class Storm:
    """Kills or pauses one victim after the other, each for a while that chance decides, and counts."""

    def __init__(self, choose: Callable[[], Awaitable[Chosen]], *, rng: random.Random, longest: float) -> None:
        """``choose`` names the next victim; it is down for up to ``longest`` seconds."""
        self._choose, self._rng, self._longest = choose, rng, longest
        self._last: Nemesis | None = None
        self.strikes: Counter[str] = Counter()

    async def strike(self) -> str:
        kind, victim = await self._choose()
        seconds = self._rng.uniform(0.0, self._longest)
        if self._rng.random() < 0.5:
            verb, self._last = "killed", Killing(victim, seconds=seconds)
        else:
            verb, self._last = "paused", Pausing(victim, seconds=seconds)
        self.strikes[f"{verb} a {kind}"] += 1
        return f"{await self._last.strike()} (a {kind}, {seconds:.1f} s)"

    async def heal(self) -> None:
        if self._last is not None:
            await self._last.heal()
