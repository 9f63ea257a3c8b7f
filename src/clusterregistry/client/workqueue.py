"""A work queue for controllers, with client-go's semantics.

A key that is added several times before it is taken is processed once. A key that is added while it is processed is
processed again afterwards, and never by two workers at a time. Keys can be added after a pause, and with a rate limit:
a pause of their own that grows with their failures, and one for all keys together.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, Protocol, TypeVar

from clusterregistry.client.errors import ClientError

_log = logging.getLogger(__name__)

K = TypeVar("K", bound=Hashable)
K_contra = TypeVar("K_contra", bound=Hashable, contravariant=True)


class RateLimiter(Protocol[K_contra]):
    """Decides when a key may be processed again."""

    def when(self, key: K_contra) -> float:
        """Seconds until the key may be processed. Each call counts as a failure of the key."""
        ...

    def forget(self, key: K_contra) -> None:
        """The key is done: its failures count no more."""
        ...

    def failures(self, key: K_contra) -> int: ...


class ItemBackoff(Generic[K]):
    """A pause for each key that doubles with each of its failures. client-go's defaults: 5 ms up to 1000 s."""

    def __init__(self, *, first: float = 0.005, longest: float = 1000.0) -> None:
        self._first, self._longest = first, longest
        self._failures: dict[K, int] = {}

    def when(self, key: K) -> float:
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        return float(min(self._first * 2.0 ** min(failures, 64), self._longest))

    def forget(self, key: K) -> None:
        self._failures.pop(key, None)

    def failures(self, key: K) -> int:
        return self._failures.get(key, 0)


class TokenBucket(Generic[K]):
    """A rate for all keys together: ``burst`` at once, then ``rate`` a second. client-go's defaults."""

    def __init__(self, *, rate: float = 10.0, burst: int = 100, now: Callable[[], float] | None = None) -> None:
        self._rate, self._burst = rate, float(burst)
        self._tokens = float(burst)
        self._last: float | None = None
        self._now = now or (lambda: asyncio.get_running_loop().time())

    def when(self, _: K) -> float:
        now = self._now()
        if self._last is not None:
            self._tokens = min(self._burst, self._tokens + (now - self._last) * self._rate)
        self._last = now
        self._tokens -= 1.0
        return max(0.0, -self._tokens / self._rate)

    def forget(self, _: K) -> None:
        """Nothing is kept for a key."""

    def failures(self, _: K) -> int:
        return 0


class LongestOf(Generic[K]):
    """Several limiters, of which the longest pause counts."""

    def __init__(self, *limiters: RateLimiter[K]) -> None:
        self._limiters = limiters

    def when(self, key: K) -> float:
        return max(limiter.when(key) for limiter in self._limiters)

    def forget(self, key: K) -> None:
        for limiter in self._limiters:
            limiter.forget(key)

    def failures(self, key: K) -> int:
        return max(limiter.failures(key) for limiter in self._limiters)


def default_limiter() -> RateLimiter[Hashable]:
    """What client-go's controllers use: the pause of the key, and ten keys a second after a burst of a hundred."""
    return LongestOf[Hashable](ItemBackoff[Hashable](), TokenBucket[Hashable]())


class ShutDownError(Exception):
    """The queue is shut down, and there is nothing left to take."""


class WorkQueue(Generic[K]):
    """Keys to be processed. Used on one loop; its clock is that of the loop.

    Every key that ``get`` returns must be given to ``done``.
    """

    def __init__(self, limiter: RateLimiter[K] | None = None) -> None:
        self._limiter: RateLimiter[K] = limiter or default_limiter()
        self._ready: deque[K] = deque()
        self._dirty: set[K] = set()
        """Keys that need processing: those that wait, and those that were added while they are processed."""
        self._processing: set[K] = set()
        self._timers: dict[K, asyncio.TimerHandle] = {}
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._idle = asyncio.Event()
        self._idle.set()
        self._is_shut_down = False

    def __len__(self) -> int:
        """How many keys wait to be taken now."""
        return len(self._ready)

    @property
    def is_shut_down(self) -> bool:
        return self._is_shut_down

    def add(self, key: K) -> None:
        """Marks a key as in need of processing. Nothing happens after a shutdown."""
        if self._is_shut_down or key in self._dirty:
            return
        self._dirty.add(key)
        if key not in self._processing:
            self._append(key)

    def add_after(self, key: K, seconds: float) -> None:
        """Adds a key after a pause; of several pauses for one key the first to end counts."""
        if self._is_shut_down:
            return
        if seconds <= 0:
            self.add(key)
            return
        loop = asyncio.get_running_loop()
        when, timer = loop.time() + seconds, self._timers.get(key)
        if timer is not None:
            if timer.when() <= when:
                return
            timer.cancel()
        self._timers[key] = loop.call_at(when, self._add_due, key)

    def add_rate_limited(self, key: K) -> None:
        """Adds a key after the pause of the limiter; counts as a failure of the key."""
        self.add_after(key, self._limiter.when(key))

    def forget(self, key: K) -> None:
        """Ends the count of a key's failures. ``done`` is needed nevertheless."""
        self._limiter.forget(key)

    def failures(self, key: K) -> int:
        return self._limiter.failures(key)

    async def get(self) -> K:
        """The next key, once there is one. Raises ShutDownError when the queue is shut down and empty."""
        while not self._ready:
            if self._is_shut_down:
                raise ShutDownError
            await self._wait()
        key = self._ready.popleft()
        self._processing.add(key)
        self._dirty.discard(key)
        return key

    async def _wait(self) -> None:
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled() and self._ready:
                self._wake()  # this one was woken and cannot come: the next one shall
            raise
        finally:
            if waiter in self._waiters:
                self._waiters.remove(waiter)

    def done(self, key: K) -> None:
        """A key is processed; if it was added meanwhile it waits again."""
        self._processing.discard(key)
        if key in self._dirty:
            self._append(key)
        elif not self._processing and not self._ready:
            self._idle.set()

    def shut_down(self) -> None:
        """Takes no more keys. ``get`` still returns those that wait; those with a pause are dropped."""
        self._is_shut_down = True
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        while self._waiters:
            self._wake()

    async def drain(self) -> None:
        """Shuts down and waits until all keys that were taken, or wait, are done."""
        self.shut_down()
        await self._idle.wait()

    def _append(self, key: K) -> None:
        self._ready.append(key)
        self._idle.clear()
        self._wake()

    def _add_due(self, key: K) -> None:
        self._timers.pop(key, None)
        self.add(key)

    def _wake(self) -> None:
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return


async def run_workers(
    queue: WorkQueue[K], reconcile: Callable[[K], Awaitable[float | None]], *, workers: int = 1
) -> None:
    """Processes keys until the queue is shut down and empty, or until it is cancelled.

    ``reconcile`` makes the world fit the object of a key. It returns None, or seconds after which to process the key
    again. After an exception the key is processed again at the pace of the queue's limiter.
    """
    async with asyncio.TaskGroup() as tasks:
        for _ in range(workers):
            tasks.create_task(_work(queue, reconcile))


async def _work(queue: WorkQueue[K], reconcile: Callable[[K], Awaitable[float | None]]) -> None:
    while True:
        try:
            key = await queue.get()
        except ShutDownError:
            return
        try:
            again = await reconcile(key)
        except ClientError as error:
            _log.warning("%s failed, and is processed again: %s", key, error)
            queue.add_rate_limited(key)
        except Exception:  # noqa: BLE001 - whatever it is: other keys must be processed
            _log.exception("%s failed, and is processed again", key)
            queue.add_rate_limited(key)
        else:
            queue.forget(key)
            if again is not None:
                queue.add_after(key, again)
        finally:
            queue.done(key)
