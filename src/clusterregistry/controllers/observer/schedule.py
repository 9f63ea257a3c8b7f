"""When the round of each cluster starts, and how many run at once: a slow cluster never delays another one.

Rounds start in the order of the times at which they are due. At most ``concurrency`` run at once. One that takes longer
than ``prompt`` counts as slow from then on, and leaves its place to the next one, as long as there are not more than
``slow_concurrency`` of these: a round that only waits for a silent cluster costs next to nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import itertools
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from clusterregistry.controllers.observer.settings import ObserverSettings

_log = logging.getLogger(__name__)

Work = Callable[[str, bool], Awaitable[float]]
"""Runs the round of a cluster, at once if True, and returns the seconds from its start to the next one."""


@dataclass(slots=True, eq=False)
class _Entry:
    """One cluster. ``due`` and ``number`` are those of its newest place in the queue."""

    name: str
    due: float = 0.0
    number: int = 0
    is_forced: bool = False
    task: asyncio.Task[float] | None = None
    timer: asyncio.TimerHandle | None = None
    is_slow: bool = False
    waiters: list[asyncio.Future[None]] = field(default_factory=list)


class Schedule:
    """Runs rounds until it is closed. Used on one loop."""

    def __init__(self, work: Work, *, settings: ObserverSettings) -> None:
        self._work, self._settings = work, settings
        self._entries: dict[str, _Entry] = {}
        self._queue: list[tuple[float, int, _Entry]] = []
        self._numbers = itertools.count()
        self._prompt = 0
        self._slow = 0
        self._late: deque[tuple[_Entry, asyncio.Task[float]]] = deque()
        self._next_first = 0.0
        self._wake = asyncio.Event()
        self._tasks: set[asyncio.Task[float]] = set()

    @property
    def running(self) -> int:
        """Rounds that run now."""
        return self._prompt + self._slow

    def add(self, name: str) -> None:
        """Schedules the first round of a cluster; one that runs is cancelled, and begins again.

        Clusters that are added at once start one after the other, since each has to connect.
        """
        self.remove(name)
        entry = self._entries[name] = _Entry(name)
        start = max(self._now(), self._next_first)
        self._next_first = start + self._settings.start_pause
        self._enqueue(entry, start)

    def remove(self, name: str) -> None:
        """Forgets a cluster, and cancels its round."""
        entry = self._entries.pop(name, None)
        if entry is None:
            return
        entry.number = -1
        if entry.task is not None:
            entry.task.cancel()
        _finish(entry)

    async def run_now(self, name: str) -> None:
        """Waits for the end of a round: the one that runs, else one that starts before all others.

        Raises KeyError for a cluster that was not added, also when it is removed meanwhile.
        """
        entry = self._entries[name]
        waiter = asyncio.get_running_loop().create_future()
        entry.waiters.append(waiter)
        if entry.task is None and not entry.is_forced:
            entry.is_forced = True
            self._enqueue(entry, 0.0)
        try:
            await waiter
        finally:
            with contextlib.suppress(ValueError):
                entry.waiters.remove(waiter)
        if self._entries.get(name) is not entry:
            raise KeyError(name)

    async def run(self) -> None:
        """Starts rounds when they are due, until it is cancelled."""
        try:
            while True:
                self._wake.clear()
                pause = self._start_due()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(pause):
                        await self._wake.wait()
        finally:
            await self.stop()

    async def stop(self) -> None:
        """Cancels all rounds, and waits for their ends."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def close(self) -> None:
        """Forgets all clusters, and waits for the ends of their rounds."""
        for name in list(self._entries):
            self.remove(name)
        await self.stop()

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    def _enqueue(self, entry: _Entry, due: float) -> None:
        entry.due, entry.number = due, next(self._numbers)
        heapq.heappush(self._queue, (due, entry.number, entry))
        self._wake.set()

    def _start_due(self) -> float | None:
        """Starts what is due as far as there are places; returns the seconds until the next one, None: not known."""
        now = self._now()
        while self._queue:
            due, number, entry = self._queue[0]
            if number != entry.number:
                heapq.heappop(self._queue)
            elif due > now:
                return due - now
            elif self._prompt >= self._settings.concurrency:
                return None
            else:
                heapq.heappop(self._queue)
                self._start(entry, now)
        return None

    def _start(self, entry: _Entry, now: float) -> None:
        entry.number = -1
        self._prompt += 1
        entry.timer = asyncio.get_running_loop().call_at(now + self._settings.prompt, self._note_slow, entry)
        entry.task = asyncio.create_task(self._run_round(entry, now))
        self._tasks.add(entry.task)
        entry.task.add_done_callback(lambda task: self._end(entry, task))

    async def _run_round(self, entry: _Entry, start: float) -> float:
        """Runs a round, and returns when the next one is due."""
        is_forced, entry.is_forced = entry.is_forced, False
        pause = self._settings.interval
        try:
            pause = await self._work(entry.name, is_forced)
        except Exception:  # noqa: BLE001 - whatever it is: the next round is due
            _log.exception("the round of cluster %s failed", entry.name)
        return max(start + pause, self._now())

    def _end(self, entry: _Entry, task: asyncio.Task[float]) -> None:
        """Runs once for each round, however it ended: also for one that was cancelled before it began."""
        self._tasks.discard(task)
        if entry.timer is not None:
            entry.timer.cancel()
        if entry.is_slow:
            self._slow -= 1
            self._make_slow()
        else:
            self._prompt -= 1
        entry.task, entry.timer, entry.is_slow = None, None, False
        _finish(entry)
        if self._entries.get(entry.name) is entry:
            self._enqueue(entry, self._now() if task.cancelled() else task.result())
        self._wake.set()

    def _note_slow(self, entry: _Entry) -> None:
        if entry.task is not None:
            self._late.append((entry, entry.task))
            self._make_slow()

    def _make_slow(self) -> None:
        """Rounds that take long leave their places, as far as there is room for slow ones."""
        while self._late and self._slow < self._settings.slow_concurrency:
            entry, task = self._late.popleft()
            if entry.task is task:
                entry.is_slow = True
                self._prompt -= 1
                self._slow += 1
                self._wake.set()


def _finish(entry: _Entry) -> None:
    for waiter in entry.waiters:
        if not waiter.done():
            waiter.set_result(None)
    entry.waiters = []
