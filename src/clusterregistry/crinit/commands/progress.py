"""Tells a person what happens, and remembers what was made and changed in case that something fails."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from clusterregistry.crinit.errors import HostError


@dataclass(slots=True)
class Outcome:
    """What a step says of itself when it is done."""

    text: str = "done"


def _silence(_: str) -> None:
    """Where no person looks on, only what is done is said."""


@dataclass(slots=True)
class Progress:
    """``announce`` is told of a step when it begins: some take minutes."""

    say: Callable[[str], None]
    announce: Callable[[str], None] = _silence
    clock: Callable[[], float] = time.monotonic
    made: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)

    @contextlib.contextmanager
    def step(self, title: str) -> Iterator[Outcome]:
        """One line when the step is done; also when it fails, so that the last line names where it stopped."""
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
    """How long to wait for one thing, and how."""

    seconds: float
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    pause: float = 1.0

    def until(self, done: Callable[[], bool]) -> bool:
        """Asks again and again. Answers whether it came true in time.

        A host that is away for a moment, as when its control plane is upgraded, is asked again too.
        """
        ends = self.clock() + self.seconds
        while not _asked(done):
            if self.clock() >= ends:
                return False
            self.sleep(self.pause)
        return True

    def text(self) -> str:
        return f"{self.seconds:.0f}s"


def _asked(done: Callable[[], bool]) -> bool:
    try:
        return done()
    except HostError as error:
        if error.is_transient:
            return False
        raise
