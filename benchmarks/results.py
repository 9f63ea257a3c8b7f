"""What a comparison has found, kept as JSON so that it can be rendered again without measuring."""

import json
import os
import platform
import time
from pathlib import Path
from typing import Any

from benchmarks.meter import Record

FILE = "results.json"
ETCD_ITSELF = "etcd itself"
"""Among the versions: the program, not ours that stores in it."""
_DIGITS = 5
_LEFT_OUT = {"error_sample", "cpu_us_by", "ack_p50_ms", "ack_p95_ms", "ack_p99_ms", "ack_max_ms", "write"}


class ResultsError(Exception):
    """There are no results; the message says how to get them."""


class Results:
    """Records by scenario and server, a list of one a round; the growth; when, where and of what."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document

    @classmethod
    def new(cls, *, factor: float, rounds: int) -> "Results":
        return cls({"settings": {"time": factor, "rounds": rounds}, **_here_and_now(), "versions": {}, "scenarios": {}})

    @classmethod
    def read(cls, directory: Path) -> "Results":
        path = directory / FILE
        try:
            return cls(json.loads(path.read_text()))
        except FileNotFoundError:
            raise ResultsError(f"there is no {path}: run `make bench-compare` first, it writes it") from None
        except ValueError as error:
            raise ResultsError(f"{path} is not JSON ({error}): run `make bench-compare` to write it again") from None

    def write(self, directory: Path) -> None:
        """At once or not at all: a run that is cut short leaves what it has."""
        directory.mkdir(parents=True, exist_ok=True)
        unfinished = directory / f"{FILE}.new"
        unfinished.write_text(json.dumps(self.document, indent=1) + "\n")
        unfinished.replace(directory / FILE)

    @property
    def scenarios(self) -> dict[str, dict[str, list[Record]]]:
        found: dict[str, dict[str, list[Record]]] = self.document["scenarios"]
        return found

    @property
    def growth(self) -> dict[str, Any]:
        found: dict[str, Any] = self.document.setdefault("growth", {})
        return found

    @property
    def fleet(self) -> Record:
        """What was measured with a status controller; empty without that."""
        found: Record = self.document.get("fleet", {})
        return found

    def records(self, scenario: str, server: str) -> list[Record]:
        """Those of the rounds that went well."""
        return [record for record in self.scenarios.get(scenario, {}).get(server, []) if "failed" not in record]

    def add(self, scenario: str, server: str, record: Record) -> None:
        self.scenarios.setdefault(scenario, {}).setdefault(server, []).append(reduced(record))

    def replace(self, scenario: str, server: str, number: int, record: Record) -> None:
        """In place of what was added at the so many-th time, counted from 0."""
        self.scenarios[scenario][server][number] = reduced(record)


def failure(why: str) -> Record:
    """With the first line of why: what follows is a log, and names places on a machine."""
    return {"failed": (why.splitlines() or ["?"])[0][:300]}


def reduced(record: Record) -> Record:
    """What is worth keeping, in as many digits as mean something."""
    return {name: _rounded(value) for name, value in record.items() if name not in _LEFT_OUT}


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return reduced(value)
    return float(f"{value:.{_DIGITS}g}") if isinstance(value, float) else value


def _here_and_now() -> dict[str, Any]:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "when": time.strftime("%Y-%m-%d", time.gmtime()),
        "machine": {"cores": os.cpu_count(), "memory_gb": round(memory), "architecture": platform.machine()},
        "python": platform.python_version(),
    }
