"""How far a run is, and how long the rest will take."""

import sys
import time
from collections.abc import Callable

Say = Callable[[str], None]


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


class Progress:
    """Learns from the parts that are done how long the others will take."""

    def __init__(self, total: float, *, minutes: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._begun = clock, clock()
        self._total, self._done, self._limit = total, 0.0, minutes * 60

    def done(self, part: float) -> None:
        self._done += part

    def added(self, part: float) -> None:
        """Is to be done as well."""
        self._total += part

    def dropped(self, part: float) -> None:
        """Is not going to be done."""
        self._total -= part

    @property
    def elapsed(self) -> float:
        return self._clock() - self._begun

    def _lasts(self, part: float) -> float:
        """The seconds of a part that was said to take so many."""
        return part * (self.elapsed / self._done if self._done else 1.0)

    def line(self, what: str) -> str:
        left = self._lasts(max(0.0, self._total - self._done))
        return f"[{clock_time(self.elapsed)} gone, about {clock_time(left)} left] {what}"

    def fits(self, part: float) -> bool:
        """Whether there is time for it."""
        return self.elapsed + self._lasts(part) <= self._limit


def clock_time(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"
