"""One client's end of a watch: what it has been told, and what waits to be written to it.

A client that keeps up is written to at once, with bytes that it shares with all who want the same. For one that does
not, frames are collected until its own task writes them, and one for which too much waits is ended and never waited
for: it can start again from the last resource version that it has seen.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from clusterregistry.apiserver.http.response import Outlet

Frame = tuple[int, bytes]
"""An encoded event and its revision."""

T = TypeVar("T")

FRAMES_LIMIT = 5000
BYTES_LIMIT = 8 * 1024 * 1024
AT_ONCE = 256 * 1024
"""Bytes up to which frames are written at once: more would be in memory for each client, and not only once."""


class Batch:
    """Frames that many clients are told together."""

    __slots__ = ("data", "first", "frames", "is_small", "last", "on_the_wire")

    def __init__(self, frames: Sequence[Frame]) -> None:
        """There is at least one, and they are in the order of their revisions."""
        self.frames = frames
        self.first, self.last = frames[0][0], frames[-1][0]
        self.data = frames[0][1] if len(frames) == 1 else b"".join([data for _, data in frames])
        self.is_small = len(self.data) <= AT_ONCE
        """Whether it may be written at once. Found out here, and not for each client."""
        self.on_the_wire: bytes | None = None
        """The same as an outlet sends it: the first one that needs it makes it for all."""


class Watcher(Generic[T]):
    """What waits to be written: frames, or events of which frames are made only then.

    ``on_overflow`` is called once, when the client turns out to be too slow.
    """

    __slots__ = ("_on_overflow", "_outlet", "_pending", "_size", "_waiter", "ended", "interrupted", "seen")

    def __init__(self, on_overflow: Callable[[], None]) -> None:
        self._on_overflow = on_overflow
        self._outlet: Outlet | None = None
        self._pending: list[T] = []
        self._size = 0
        self._waiter: asyncio.Future[None] | None = None
        self.ended = False
        self.interrupted = False
        """Whether it has ended because events are missing: the client has to list anew."""
        self.seen = 0
        """The revision up to which the client has been told everything that concerns it, as far as is known here."""

    def collect(self, items: Sequence[T], size: int) -> None:
        """Takes items of ``size`` bytes in all; ends the watch instead when too much waits already."""
        if self.ended:
            return
        if self._size + size > BYTES_LIMIT or len(self._pending) + len(items) > FRAMES_LIMIT:
            self.abort()
            return
        self._pending.extend(items)
        self._size += size
        self.wake()

    def abort(self) -> None:
        """Ends the watch and its connection: its task may be waiting for the client to read, for ever."""
        self.end()
        self._on_overflow()

    def end(self) -> None:
        """Nothing more; what waits is dropped. Idempotent."""
        self.ended = True
        self._pending.clear()
        self.wake()

    def interrupt(self) -> None:
        """Ends the watch, for events are missing."""
        self.interrupted = True
        self.end()

    async def next(self, timeout: float, outlet: Outlet | None = None) -> list[T]:  # noqa: ASYNC109 - a bookmark is due
        """What waits, or nothing when the time is up, the watch has ended or somebody wakes it.

        Until then what comes may be written to the outlet instead.
        """
        if not self._pending and not self.ended:
            loop = asyncio.get_running_loop()
            self._waiter, self._outlet = loop.create_future(), outlet
            alarm = loop.call_later(timeout, self.wake)
            try:
                await self._waiter
            finally:
                alarm.cancel()
                self._waiter = self._outlet = None
        return self.take()

    def take(self) -> list[T]:
        """What waits by now."""
        taken, self._pending, self._size = self._pending, [], 0
        return taken

    def wake(self) -> None:
        """Has ``next`` return, though nothing may wait."""
        self._outlet = None  # what is written from now on is up to the task
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class FrameWatcher(Watcher[Frame]):
    """A watcher whose frames are those of many others."""

    __slots__ = ()

    def tell(self, batch: Batch) -> None:
        """Writes the frames to the client, or collects them while it has to catch up."""
        outlet = self._outlet
        if outlet is not None and batch.first > self.seen and batch.is_small and outlet.offer(batch):
            self.seen = batch.last
        else:
            self.collect(batch.frames, len(batch.data))
