"""Prints the steps of a run, and records which objects it made and changed."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from clusterregistry.crinit.errors import HostError


@dataclass(slots=True)
class Outcome:
    """The result of a step, printed at its end."""

    text: str = "done"


def _silence(_: str) -> None:
    """Prints nothing: without a terminal only the end of a step is printed."""


@dataclass(slots=True)
class Progress:
    """Prints with ``say``; ``announce`` gets a step when it begins, since some take minutes."""

    say: Callable[[str], None]
    announce: Callable[[str], None] = _silence
    clock: Callable[[], float] = time.monotonic
    made: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)

    @contextlib.contextmanager
    def step(self, title: str) -> Iterator[Outcome]:
        """Prints one line at the end of a step; also when it fails, so that the last line names the step."""
        started, outcome = self.clock(), Outcome()
        self.announce(f"{title} ...")
        try:
            yield outcome
        except BaseException:
            self.say(f"{title}: failed ({self._since(started)})")
            raise
        self.say(f"{title}: {outcome.text} ({self._since(started)})")

    def _since(self, started: float) -> str:
        return f"{self.clock() - started:.1f}s"


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to wait for a condition, and how."""

    seconds: float
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    pause: float = 1.0

    def until(self, done: Callable[[], bool]) -> bool:
        """Polls a condition, and returns whether it became true in time.

        Transient errors of the host cluster, such as during an upgrade of its control plane, do not end the polling.
        """
        ends = self.clock() + self.seconds
        while not _holds(done):
            if self.clock() >= ends:
                return False
            self.sleep(self.pause)
        return True

    def text(self) -> str:
        return f"{self.seconds:.0f}s"


def _holds(done: Callable[[], bool]) -> bool:
    try:
        return done()
    except HostError as error:
        if error.is_transient:
            return False
        raise
