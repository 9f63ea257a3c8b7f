"""The server's end of one watch: the frames that wait for the client, and the port of what makes them.

A client that keeps up is written to directly, with bytes that all clients of its channel share. For a client that does
not, frames are collected until the task of its watch writes them. A watch for which too much waits is ended, and no
other watch ever waits for it: its client can resume from the last resource version that it has seen.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from clusterregistry.apiserver.http.response import Outlet
from clusterregistry.apiserver.storage.interface import Event, KeyValue, Page

Frame = tuple[int, bytes]
"""An encoded event and its revision."""

T = TypeVar("T")

FRAMES_LIMIT = 5000
BYTES_LIMIT = 8 * 1024 * 1024
AT_ONCE = 256 * 1024
"""Bytes up to which frames are written directly: more would be in memory for each client, and not only once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """The next frames of a watch. Once they are sent, the client has seen everything up to ``revision``.

    ``unmarked``: the last frame has an older revision, so that the client needs a bookmark to learn this one.
    """

    frames: Iterable[Frame]
    revision: int
    unmarked: bool = False


class Feed(Protocol):
    """Makes the frames of one watch. It collects events from the moment it is made.

    ``existing``, or ``resume`` and ``history``, make the beginning of the watch, ``begun`` ends it, and
    ``next_delivery`` makes everything after that.
    """

    @property
    def watcher(self) -> Watcher[Any]: ...

    async def existing(self, page: Page) -> Iterable[KeyValue]:
        """Begins with the existing objects: returns those of the page to send. Raises APIError."""
        ...

    async def resume(self, revision: int) -> None:
        """Begins after a revision, up to which the client has seen everything. Raises 410."""
        ...

    async def history(self, events: Sequence[Event]) -> Iterable[Frame]:
        """The frames of the next events after the revision that the watch resumes from. Raises APIError."""
        ...

    def begun(self, seen: int) -> None:
        """Ends the beginning: the client has seen everything up to a revision."""
        ...

    async def next_delivery(self, collected: Sequence[Any]) -> Delivery:
        """What to send for what the watcher has collected. Raises APIError."""
        ...

    def leave(self) -> None:
        """Stops collecting. Idempotent."""
        ...


class Watcher(Generic[T]):
    """Collects what waits for one client: frames, or events that are encoded later.

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
        """Whether it has ended because events are missing: the client has to list again."""
        self.seen = 0
        """The revision up to which the client was sent everything, as far as the watcher knows."""

    def collect(self, items: Sequence[T], size: int) -> None:
        """Adds items of ``size`` bytes in all; aborts the watch instead if too much waits already."""
        if self.ended:
            return
        if self._size + size > BYTES_LIMIT or len(self._pending) + len(items) > FRAMES_LIMIT:
            self.abort()
            return
        self._pending.extend(items)
        self._size += size
        self.wake()

    async def next(self, timeout: float, outlet: Outlet | None = None) -> list[T]:  # noqa: ASYNC109 - a bookmark is due
        """Waits and returns what was collected: nothing after the timeout, the end of the watch or ``wake``.

        While it waits, frames may be written directly to the outlet instead.
        """
        if not self._pending and not self.ended:
            loop = asyncio.get_running_loop()
            self._waiter, self._outlet = loop.create_future(), outlet
            timer = loop.call_later(timeout, self.wake)
            try:
                await self._waiter
            finally:
                timer.cancel()
                self._waiter = self._outlet = None
        return self.take()

    def take(self) -> list[T]:
        """Returns what was collected, without waiting."""
        taken, self._pending, self._size = self._pending, [], 0
        return taken

    def wake(self) -> None:
        """Makes ``next`` return, even if nothing was collected."""
        self._outlet = None  # from now on only the task of the watch writes
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def end(self) -> None:
        """Ends the watch and drops what waits. Idempotent."""
        self.ended = True
        self._pending.clear()
        self.wake()

    def interrupt(self) -> None:
        """Ends the watch because events are missing."""
        self.interrupted = True
        self.end()

    def abort(self) -> None:
        """Ends the watch and its connection, since its task may wait for ever for the client to read."""
        self.end()
        self._on_overflow()


class FrameWatcher(Watcher[Frame]):
    """A watcher whose frames are shared with the other watchers of its channel."""

    __slots__ = ()

    def deliver(self, batch: Batch) -> None:
        """Writes the frames to the client, or collects them if the client does not keep up."""
        outlet = self._outlet
        if outlet is not None and batch.first > self.seen and batch.is_small and outlet.offer(batch):
            self.seen = batch.last
        else:
            self.collect(batch.frames, len(batch.data))


class Batch:
    """Frames that all watchers of a channel are sent together."""

    __slots__ = ("as_messages", "data", "first", "frames", "is_small", "last", "on_the_wire")

    def __init__(self, frames: Sequence[Frame]) -> None:
        """``frames`` is not empty, and in the order of revisions."""
        self.frames = frames
        self.first, self.last = frames[0][0], frames[-1][0]
        self.data = frames[0][1] if len(frames) == 1 else b"".join([data for _, data in frames])
        self.is_small = len(self.data) <= AT_ONCE
        """Whether it may be written directly. Computed here, and not for each client."""
        self.on_the_wire: bytes | None = None
        """The same as an outlet sends it: the first outlet that needs it makes it for all."""
        self.as_messages: bytes | None = None
        """The same for the outlets of WebSockets."""
