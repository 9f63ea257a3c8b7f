"""What the server's processes, the client and everybody else use of the machine while something is measured.

CPU time comes from /proc, so that it is that of all threads and children of the server. Of all figures CPU per request
is the one that other load on the machine disturbs least.
"""

import os
import resource
import statistics
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from benchmarks.targets import Target

Record = dict[str, Any]
"""One measurement, as it stands in the results."""

NOISY = 20.0
"""Percent of a core that others may take before a measurement counts as disturbed."""

_TICK = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_QUIET_SECONDS, _QUIET_SHARE = 0.15, 0.15
"""A server is quiet that uses less than this share of a core for so long; an idle kube-apiserver uses some percent."""


@dataclass
class Usage:
    """What some processes have used so far, and the memory that they hold."""

    cpu: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    """Seconds by the name of the program."""
    rss: float = 0.0
    """Megabytes."""
    pss: float = 0.0
    """Megabytes; what several share counts once."""

    @property
    def cpu_seconds(self) -> float:
        return sum(self.cpu.values())


def family(pids: Iterable[int]) -> list[int]:
    """The processes and all their descendants."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                children.setdefault(int(_stat(int(entry.name))[1][1]), []).append(int(entry.name))
    seen: list[int] = []
    waiting = list(pids)
    while waiting:
        pid = waiting.pop()
        if pid not in seen:
            seen.append(pid)
            waiting += children.get(pid, [])
    return seen


def _stat(pid: int) -> tuple[str, list[str]]:
    """The program's name, and the fields of its stat after that."""
    name, _, rest = Path(f"/proc/{pid}/stat").read_text().partition("(")[2].rpartition(")")
    return name, rest.split()


def usage(pids: Iterable[int]) -> Usage:
    total = Usage()
    for pid in family(pids):
        with suppress(OSError):  # it has ended
            name, fields = _stat(pid)
            total.cpu[name] += (int(fields[11]) + int(fields[12])) / _TICK
            total.rss += int(fields[21]) * _PAGE / 1e6
            total.pss += _proportional(pid)
    return total


def _proportional(pid: int) -> float:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next((int(line.split()[1]) / 1e3 for line in lines if line.startswith("Pss:")), 0.0)


def settle(pids: Sequence[int], *, within: float = 3.0) -> bool:
    """Waits until the processes have little to do, such as requests of a client that has gone. False if they go on."""
    until = time.monotonic() + within
    while time.monotonic() < until:
        before = usage(pids).cpu_seconds
        time.sleep(_QUIET_SECONDS)
        if usage(pids).cpu_seconds - before < _QUIET_SECONDS * _QUIET_SHARE:
            return True
    return not pids


def median_record(records: Sequence[Record]) -> Record:
    """Several rounds as one: the median of each number."""
    last = records[-1]
    return {
        name: statistics.median(record[name] for record in records if record.get(name) is not None)
        if isinstance(value, int | float) and not isinstance(value, bool)
        else value
        for name, value in last.items()
    } | {"rounds": len(records), "errors": sum(record.get("errors", 0) for record in records)}


def machine_busy() -> tuple[float, float]:
    """CPU seconds of all processes, and that the hypervisor gave to others."""
    with Path("/proc/stat").open() as stat:
        user, nice, system, _, _, irq, softirq, steal, *_ = map(int, stat.readline().split()[1:])
    return (user + nice + system + irq + softirq) / _TICK, steal / _TICK


def own_cpu() -> float:
    """CPU seconds of this process, and of its children that have ended."""
    both = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in both)


class Meter:
    """The server's CPU and memory, the client's own CPU and what others used, over a with block."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self.client = self.cpu = self.wall = self._foreign = 0.0
        self._by: dict[str, float] = {}

    def __enter__(self) -> Self:
        self.before, self._busy = usage(self._target.pids), machine_busy()
        self._client, self._begun = own_cpu(), time.monotonic()
        return self

    def __exit__(self, *_: object) -> None:
        self.wall = time.monotonic() - self._begun
        self.after, (busy, steal) = usage(self._target.pids), machine_busy()
        self.client = own_cpu() - self._client
        self._by = {name: used - self.before.cpu[name] for name, used in self.after.cpu.items()}
        self.cpu = sum(self._by.values())
        self._foreign = busy - self._busy[0] - self.cpu
        self._steal = steal - self._busy[1]

    def record(self, count: int) -> Record:
        """The figures for so many requests, or events."""
        count = max(count, 1)
        foreign = max(0.0, self._foreign - self.client) + self._steal
        found: Record = {
            "n": count,
            "seconds": self.wall,
            "client_cpu_us": self.client / count * 1e6,
            "foreign_cpu_pct": 100 * foreign / self.wall,
        }
        return found | (self._of_the_server(count) if self._target.pids else {})

    def _of_the_server(self, count: int) -> Record:
        return {
            "cpu_us": self.cpu / count * 1e6,
            "cpu_pct": 100 * self.cpu / self.wall,
            "cpu_us_by": {name: used / count * 1e6 for name, used in self._by.items()},
            "rss_before_mb": self.before.rss,
            "rss_after_mb": self.after.rss,
            "pss_after_mb": self.after.pss,
        }


def percentile(ordered: Sequence[float], percent: float) -> float | None:
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))] if ordered else None


def latencies(seconds: Iterable[float], prefix: str = "") -> Record:
    """Percentiles in milliseconds."""
    ordered = sorted(each * 1e3 for each in seconds)
    found = {f"{prefix}p{percent}_ms": percentile(ordered, percent) for percent in (50, 95, 99)}
    return found | {f"{prefix}max_ms": ordered[-1] if ordered else None}
