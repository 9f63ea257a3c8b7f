"""Load on servers that run already, wherever they are: ours, kube-apiserver's or any other.

    python -m benchmarks load --server URL --token T [--pid PID,PID] [--scenario get,list_*] [--json OUT]
    python -m benchmarks load --interleave --server A --token TA --pid PA --server B --token TB --pid PB

Every object whose name starts with "bench-" belongs to this tool and is deleted at the end; --keep leaves them for the
next run. The collection must hold nothing else, or lists measure that as well. With the server's processes (--pid) it
tells their CPU per request, children included.
"""

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks import population
from benchmarks.comparison import figures
from benchmarks.driver import LoadError
from benchmarks.goals import ratio_of, short
from benchmarks.markdown import text_table
from benchmarks.meter import Record, median_record
from benchmarks.progress import Say
from benchmarks.scenarios import Scenario
from benchmarks.targets import Target

Found = dict[str, list[Record]]
_HEAD = ["scenario", "req/s", "p50 ms", "p95 ms", "p99 ms", "cpu us", "rss MB", "client us", "others %", "errors"]
_FIELDS = ("rps", "p50_ms", "p95_ms", "p99_ms", "cpu_us", "rss_after_mb", "client_cpu_us", "foreign_cpu_pct")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--server", action="append", required=True, metavar="URL")
    parser.add_argument("--token", action="append", default=[])
    parser.add_argument("--ca-file", action="append", default=[])
    parser.add_argument("--pid", action="append", default=[], help="its processes, comma separated")
    parser.add_argument("--name", action="append", default=[], help="what to call it")
    parser.add_argument("--interleave", action="store_true", help="two servers: each scenario as A, B, A, B")
    parser.add_argument("--rounds", type=int, help="default 1, with --interleave 2")
    parser.add_argument("--json", type=Path, help="for several servers OUT.a.json and OUT.b.json")
    parser.add_argument("--keep", action="store_true", help="leave the objects in place")


def targets_of(options: argparse.Namespace) -> list[Target]:
    def nth(values: Sequence[str], number: int) -> str:
        return values[number] if number < len(values) else values[-1] if values else ""

    return [
        Target(
            url,
            token=nth(options.token, number),
            ca_file=nth(options.ca_file, number) or None,
            pids=[int(pid) for pid in "".join(options.pid[number : number + 1]).split(",") if pid],
            name="".join(options.name[number : number + 1]),
        )
        for number, url in enumerate(options.server)
    ]


def run(options: argparse.Namespace, chosen: Sequence[Scenario], say: Say) -> int:
    targets = targets_of(options)
    found: list[Found] = [{} for _ in targets]
    for target in targets:
        population.adopt(target)
    for scenario in chosen:
        take_turns(scenario, targets, found, rounds=options.rounds or (2 if options.interleave else 1), say=say)
        _save(options.json, targets, found)
    if not options.keep:
        for target in targets:
            population.clean(target)
    print("\n\n".join(tables(targets, found)))
    return 0


def take_turns(scenario: Scenario, targets: Sequence[Target], found: Sequence[Found], *, rounds: int, say: Say) -> None:
    """A scenario on one server after the other, as often as there are rounds: A, B, A, B."""
    for _ in range(rounds):
        for target, records in zip(targets, found, strict=True):
            _measure(scenario, target, records, say)


def _measure(scenario: Scenario, target: Target, records: Found, say: Say) -> None:
    try:
        for name, record in scenario.run(target).items():
            records.setdefault(name, []).append(record)
            say(f"{target.name}  {figures(name, record)}")
    except (LoadError, OSError) as error:
        say(f"{scenario.name} on {target.name}: {error}")


def tables(targets: Sequence[Target], found: Sequence[Found]) -> Iterator[str]:
    for target, records in zip(targets, found, strict=True):
        rows = [[name, *_cells(median_record(rounds))] for name, rounds in records.items()]
        yield f"{target.name}\n{text_table([_HEAD, *rows])}"
    if len(targets) == 2:  # noqa: PLR2004 - A and B
        yield f"A = {targets[0].name}, B = {targets[1].name}\n{_ratios(*found)}"


def _cells(record: Record) -> list[str]:
    return [*(short(record.get(field)) for field in _FIELDS), str(record["errors"])]


def _ratios(first: Found, second: Found) -> str:
    fields = {"rps": "B/A req/s", "p50_ms": "B/A p50", "p99_ms": "B/A p99", "cpu_us": "B/A cpu"}
    rows = [
        [name, *(str(ratio_of(second[name], first[name], field) or "-") for field in fields)]
        for name in first
        if name in second
    ]
    return text_table([["scenario", *fields.values()], *rows])


def _save(path: Path | None, targets: Sequence[Target], found: Sequence[Found]) -> None:
    """After each scenario, so that a run that is cut short leaves what it has."""
    if path is None:
        return
    for number, (target, records) in enumerate(zip(targets, found, strict=True)):
        results: dict[str, Any] = {name: median_record(rounds) for name, rounds in records.items()}
        document = {
            "target": target.name,
            "when": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "populated": target.populated,
            "results": results,
        }
        place = path if len(targets) == 1 else path.with_suffix(f".{'abcdefgh'[number]}.json")
        place.write_text(json.dumps(document, indent=1))
