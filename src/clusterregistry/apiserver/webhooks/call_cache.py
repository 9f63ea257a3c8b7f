"""Keeps calls of other servers few: results are cached for a time, and equal calls at the same time are one call."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Hashable
from typing import Any, Generic, TypeVar

from clusterregistry.apiserver.webhooks.errors import CallFailed

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

MAX_UNDER_WAY = 1000
"""Calls at a time. Beyond, a call fails at once: requests without credentials must not be able to pile them up."""


class TTLCache(Generic[Key, Value]):
    """Values by key, each until its time. The oldest values are removed when there are too many.

    Values that a request without credentials can cause belong in a cache of their own: they would push out others.
    """

    def __init__(self, limit: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit, self._clock = limit, clock
        self._kept: dict[Key, tuple[float, Value]] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: Key) -> Value | None:
        """The value, or None if there is none or it has expired."""
        kept = self._kept.get(key)
        if kept is None:
            return None
        if self._clock() < kept[0]:
            return kept[1]
        del self._kept[key]
        return None

    def keep(self, key: Key, value: Value, *, until: float) -> None:
        """Keeps a value until the clock reaches ``until``."""
        self._kept.pop(key, None)  # so that it is the youngest again
        if len(self._kept) >= self._limit:
            self._make_room()
        self._kept[key] = (until, value)

    def keep_for(self, key: Key, value: Value, *, seconds: float) -> None:
        self.keep(key, value, until=self._clock() + seconds)

    def clear(self) -> None:
        self._kept.clear()

    def _make_room(self) -> None:
        """Removes the oldest eighth, so that this is rare."""
        for key in list(self._kept)[: max(1, self._limit // 8)]:
            del self._kept[key]


class SingleFlight(Generic[Key, Value]):
    """Calls by key. A call goes on when its first caller is cancelled."""

    def __init__(self) -> None:
        self._under_way: dict[Key, asyncio.Task[Value]] = {}

    @property
    def under_way(self) -> int:
        """The number of calls under way."""
        return len(self._under_way)

    def ask(self, key: Key, question: Callable[[], Coroutine[Any, Any, Value]]) -> Awaitable[Value]:
        """The result of the call under way for the key, else of a new one. Raises CallFailed if there are too many."""
        task = self._under_way.get(key)
        if task is None:
            if len(self._under_way) >= MAX_UNDER_WAY:
                raise CallFailed(f"{MAX_UNDER_WAY} questions are waiting for an answer already")
            task = asyncio.get_running_loop().create_task(question())
            self._under_way[key] = task
            task.add_done_callback(lambda done: self._forget(key, done))
        return asyncio.shield(task)

    def _forget(self, key: Key, done: asyncio.Task[Value]) -> None:
        del self._under_way[key]
        if not done.cancelled():
            done.exception()  # retrieved, also when no caller waits any more

    async def close(self) -> None:
        """Cancels all calls."""
        tasks = list(self._under_way.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
