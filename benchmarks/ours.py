"""``make bench``: our server alone, beside what was once recorded of the peer."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import goals, servers
from benchmarks.comparison import figures
from benchmarks.driver import LoadError
from benchmarks.goals import ratio_of, short
from benchmarks.markdown import text_table
from benchmarks.meter import Record
from benchmarks.progress import Progress, Say
from benchmarks.scenarios import Scenario
from benchmarks.servers import Workshop

_PEER = Path(__file__).with_name("peer.json")
_HEAD = ["scenario", "req/s", "p50 ms", "p99 ms", "CPU us", "RSS MB", "client us", "others %", "errors"]
_HEAD += ["peer CPU us", "ratio", "goal", ""]
ONLY_A_HINT = (
    "The peer's figures are those that benchmarks/peer.json recorded on another day: a hint. Runs at different times "
    "differ by 2x and more. Only `make bench-compare`, which measures both in one run, counts."
)


def recorded_peer() -> dict[str, Record]:
    found: dict[str, Any] = json.loads(_PEER.read_text())["scenarios"]
    return found


@dataclass(kw_only=True)
class OwnRun:
    """The scenarios on one of our engines, once each."""

    workshop: Workshop
    engine: str
    say: Say
    records: dict[str, Record] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)

    def run(self, chosen: Sequence[Scenario]) -> None:
        progress = Progress(sum(scenario.seconds for scenario in chosen), minutes=60)
        with servers.running(self.workshop.make(self.engine)) as target:
            for scenario in chosen:
                try:
                    found = scenario.run(target)
                except (LoadError, OSError) as error:
                    self.failed[scenario.name] = str(error)
                    self.say(f"{scenario.name}: {error}")
                    continue
                finally:
                    progress.done(scenario.seconds)
                self.records |= found
                for name, record in found.items():
                    self.say(progress.line(figures(name, record)))

    def table(self) -> str:
        peer = recorded_peer()
        rows = [_row(name, record, peer.get(name), self.engine) for name, record in self.records.items()]
        lines = [text_table([_HEAD, *rows])]
        lines += [f"FAILED  {name}: {why}" for name, why in self.failed.items()]
        return "\n".join([*lines, "", ONLY_A_HINT])


def _row(name: str, record: Record, peer: Record | None, engine: str) -> list[str]:
    fields = ("rps", "p50_ms", "p99_ms", "cpu_us", "rss_after_mb", "client_cpu_us", "foreign_cpu_pct")
    theirs = [peer] if peer else []
    judged = goals.judge(name, engine, peer=theirs, ours=[record])
    return [
        name,
        *(short(record.get(field)) for field in fields),
        str(record.get("errors", 0)),
        short(peer.get("cpu_us") if peer else None),
        str(ratio_of(theirs, [record], "cpu_us") or "-"),
        ", ".join(each.wanted for each in judged),
        ", ".join(each.verdict for each in judged),
    ]
