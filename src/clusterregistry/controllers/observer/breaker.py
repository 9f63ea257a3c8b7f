"""A circuit breaker: a cluster that fails again and again is asked less and less often."""

from __future__ import annotations

import random
from collections.abc import Callable

from clusterregistry.controllers.observer.settings import ObserverSettings

_MAX_DOUBLINGS = 32


class Breaker:
    """Opens after some failures, one after the other, for a pause that doubles up to a longest one.

    After the pause one round is let through: if it fails, the breaker opens again, if it succeeds, it closes. Times
    are those of the caller's clock, in seconds.
    """

    __slots__ = ("_random", "_settings", "failures", "open_until")

    def __init__(self, settings: ObserverSettings, *, random: Callable[[], float] = random.random) -> None:
        self._settings, self._random = settings, random
        self.failures = 0
        self.open_until = 0.0
        """0: the breaker is closed."""

    def is_open(self, now: float) -> bool:
        return now < self.open_until

    def succeed(self) -> None:
        self.failures, self.open_until = 0, 0.0

    def fail(self, now: float) -> None:
        self.failures += 1
        doublings = self.failures - self._settings.breaker_failures
        if doublings < 0:
            return
        pause = self._settings.breaker_pause * 2.0 ** min(doublings, _MAX_DOUBLINGS)
        # Early rather than late, so that the longest pause is one. Clusters that failed together come back apart.
        part = 1.0 - self._settings.jitter * self._random()
        self.open_until = now + min(pause, self._settings.breaker_longest_pause) * part
