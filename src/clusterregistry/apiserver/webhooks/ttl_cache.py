"""A bounded cache whose values expire."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


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
