"""What goals.toml wants of us, and whether figures meet it."""

import statistics
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.meter import Record
from benchmarks.scenarios import matches

_FILE = Path(__file__).with_name("goals.toml")

_FIELDS = {
    "cpu": "cpu_us",
    "ready": "ready_s",
    "idle_memory": "rss_idle_mb",
    "loaded_memory": "rss_loaded_mb",
}
"""Where less is better, and the ratio is the peer's to ours."""
_WORDS = {
    "cpu": "CPU",
    "throughput": "throughput",
    "ready": "start-up",
    "idle_memory": "idle memory",
    "loaded_memory": "memory with objects",
}


@dataclass(frozen=True)
class Ratio:
    """Of the medians, with the lowest and the highest of the rounds: the difference between these is the noise."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{short(self.median)}x"

    @property
    def noise(self) -> str:
        return f"{short(self.low)} to {short(self.high)}"


@dataclass(frozen=True)
class Judged:
    """One goal and what became of it."""

    wanted: str
    figure: str
    met: bool | None
    """None when there is no figure."""

    @property
    def verdict(self) -> str:
        return {True: "met", False: "not met", None: "not measured"}[self.met]


@cache
def _document() -> dict[str, Any]:
    return tomllib.loads(_FILE.read_text())


def wanted_of(scenario: str, engine: str) -> dict[str, float]:
    """Goals by kind, none for most scenarios."""
    found: dict[str, float] = {}
    for goal in _document()["goals"]:
        if any(matches(scenario, pattern) for pattern in goal["scenarios"]):
            found |= goal.get(engine, {})
    return found


def growth_limit(name: str) -> float:
    return float(_document()["growth"][name])


def fleet_limits() -> dict[str, float]:
    """The most that each figure of a fleet may be."""
    return {name: float(limit) for name, limit in _document()["fleet"].items()}


def median_of(records: Sequence[Record], name: str) -> float | None:
    values = [record[name] for record in records if record.get(name) is not None]
    return statistics.median(values) if values else None


def ratio_of(above: Sequence[Record], below: Sequence[Record], name: str) -> Ratio | None:
    """One side's figure in terms of the other's, round by round and as a whole."""
    over, under = median_of(above, name), median_of(below, name)
    if over is None or not under:
        return None
    pairs = zip(above, below, strict=False)
    each = [one[name] / other[name] for one, other in pairs if one.get(name) is not None and other.get(name)]
    return Ratio(over / under, min(each, default=over / under), max(each, default=over / under))


def judge(scenario: str, engine: str, *, peer: Sequence[Record], ours: Sequence[Record]) -> list[Judged]:
    """Each goal of a scenario."""
    return [_judge(kind, wanted, peer, ours) for kind, wanted in wanted_of(scenario, engine).items()]


def _judge(kind: str, wanted: float, peer: Sequence[Record], ours: Sequence[Record]) -> Judged:
    if kind == "core_percent":
        used = median_of(ours, "cpu_pct")
        figure = "-" if used is None else f"{short(used)}%"
        return Judged(f"under {wanted:g}% of a core", figure, None if used is None else used < wanted)
    if kind == "p99_below_peer":
        ratio = ratio_of(peer, ours, "p99_ms")
        return Judged("p99 below the peer's", str(ratio or "-"), ratio.median > 1 if ratio else None)
    ratio = ratio_of(ours, peer, "rps") if kind == "throughput" else ratio_of(peer, ours, _FIELDS[kind])
    return Judged(f"{wanted:g}x {_WORDS[kind]}", str(ratio or "-"), ratio.median >= wanted if ratio else None)


def short(number: float | None) -> str:
    """Three digits or so."""
    if number is None or number != number:  # noqa: PLR0124 - not a number
        return "-"
    return f"{number:,.0f}" if abs(number) >= 100 else f"{number:.1f}" if abs(number) >= 10 else f"{number:.2f}"  # noqa: PLR2004
