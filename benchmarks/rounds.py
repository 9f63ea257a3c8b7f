"""The rounds of a comparison, and which of them are to be made again since others disturbed them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks.meter import NOISY, Record
from benchmarks.scenarios import Scenario

_MOST_AGAIN = 2
"""How often one is made again: who disturbs all the time is not waited for."""


@dataclass(eq=False)
class Round:
    """What one scenario has found on each server, one after the other."""

    scenario: Scenario
    number: int
    found: dict[str, dict[str, Record]]
    """By server, and by the name of the record."""
    made_again: int = 0

    def records(self) -> Iterator[tuple[str, str, Record]]:
        """Server, name and record."""
        for server, by_name in self.found.items():
            for name, record in by_name.items():
                yield server, name, record

    @property
    def disturbance(self) -> float:
        """The most that others took during one of its measurements, in percent of a core."""
        return max((record.get("foreign_cpu_pct", 0.0) for _, _, record in self.records()), default=0.0)

    @property
    def failed(self) -> bool:
        return any("failed" in record for _, _, record in self.records())

    def is_better(self, other: "Round") -> bool:
        """Whether it is the one to keep. What it has found plays no part in that."""
        return not self.failed and self.disturbance < other.disturbance


def most_disturbed(rounds: Sequence[Round]) -> Round | None:
    """The one that needs it most to be made again; None when none does, or all that do have been.

    One that failed is left alone: it shows the server, not a disturbance.
    """
    disturbed = [
        each for each in rounds if each.disturbance > NOISY and not each.failed and each.made_again < _MOST_AGAIN
    ]
    return max(disturbed, key=lambda each: each.disturbance, default=None)
