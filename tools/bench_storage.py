"""What storing costs, on SQLite and on a real etcd with one member, both of which wait for the disk.

    make bench-storage
    make bench-storage ARGS=--quick         # a few seconds, to see that it works; the figures mean nothing
    make bench-storage ARGS='--only sqlite'

Writes: creates of an object of some 4 KB by so many at once, straight on the engine, without HTTP and validation. CPU
is that of one create: ours, and etcd's own behind the plus. For SQLite it also shows how many writes share a commit.
Start: ``clusterregistry standalone`` with so many such objects, from the start of the process to /readyz, and the
memory that it then has. All figures are the best of three rounds, for anything else that runs only makes it slower.

Exit status 1 when the server with 100,000 objects takes longer than five seconds to be ready.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from clusterregistry.apiserver.endpoints.request_scope import field_managers
from clusterregistry.apiserver.storage import interface
from clusterregistry.apiserver.storage import location as locations
from clusterregistry.apiserver.storage.interface import Event, Storage
from clusterregistry.apiserver.storage.location import EtcdLocation, Location
from clusterregistry.apiserver.storage.object_bytes import to_stored
from clusterregistry.registry.cluster import cluster_resource
from tests.apiserver.storage.etcd_servers import EtcdCluster, Settings
from tools import live_server
from tools.bench_apply import Object, live_object

GOAL_OBJECTS, GOAL_SECONDS = 100_000, 5.0
FILLING = 64
"""Creates under way at a time while a store is filled."""

ENGINES = ("sqlite", "etcd")
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How much is measured."""

    callers: tuple[int, ...] = (1, 16, 64)
    seconds: float = 3.0
    rounds: int = 3
    objects: tuple[int, ...] = (1_000, 10_000, GOAL_OBJECTS)


QUICK = Plan(callers=(1, 8), seconds=0.2, rounds=1, objects=(50,))


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where one of the engines keeps its objects."""

    engine: str
    directory: Path
    etcd: EtcdCluster | None
    runner: asyncio.Runner
    """One loop for all."""

    def location(self, name: str) -> Location:
        """A store of its own for each name."""
        if self.etcd is None:
            return locations.parse(f"sqlite:{self._data(name) / locations.DATABASE}")
        found = locations.parse(f"etcd:{','.join(self.etcd.endpoints)}")
        assert isinstance(found, EtcdLocation)
        return EtcdLocation(replace(found.settings, prefix=f"/{name}"))

    def flags(self, name: str) -> list[str]:
        """What makes a server use the same store."""
        if self.etcd is None:
            return []
        return [f"--etcd-servers={','.join(self.etcd.endpoints)}", f"--etcd-prefix=/{name}"]

    def server_directory(self, name: str) -> Path:
        return self._data(name).parent

    def etcd_cpu(self) -> float:
        return sum(cpu_seconds(member.process.pid) for member in self.etcd.members) if self.etcd else 0.0

    def _data(self, name: str) -> Path:
        path = self.directory / name / "data"
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
        return path


@contextmanager
def place_of(engine: str) -> Iterator[Place]:
    """A new place, which is gone afterwards."""
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-storage-")))
        etcd = stack.enter_context(EtcdCluster(directory, Settings(durable=True))) if engine == "etcd" else None
        yield Place(engine=engine, directory=directory, etcd=etcd, runner=stack.enter_context(asyncio.Runner()))


class Objects:
    """Clusters as the server stores them, each with a name and a uid of its own."""

    def __init__(self) -> None:
        resource = cluster_resource("off")
        made = field_managers(resource, resource.versions[0], now=lambda: "2026-01-01T00:00:00Z")
        self._example: Object = live_object(made[""], made["status"])
        self._prefix = interface.prefix_of(resource.group, resource.plural)
        self._numbers = itertools.count()

    def next(self) -> tuple[str, bytes]:
        """A key and its value."""
        name = f"cluster-{next(self._numbers):07}"
        metadata = {**self._example["metadata"], "name": name, "uid": str(uuid.uuid4())}
        return self._prefix + name, to_stored({**self._example, "metadata": metadata})


def cpu_seconds(pid: int) -> float:
    """What a process has used so far, in user and in kernel mode."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def memory_megabytes(pid: int) -> float:
    """What a process holds in memory."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) / 1000


@dataclass(frozen=True, kw_only=True)
class Writes:
    """What a number of callers got done."""

    throughput: float
    cpu: float
    """Microseconds a create, ours."""
    etcd_cpu: float
    per_commit: float

    def cells(self, place: Place) -> list[str]:
        cpu = f"{self.cpu:.0f}" + (f" + {self.etcd_cpu:.0f}" if place.etcd else "")
        return [f"{self.throughput:,.0f}", cpu, "-" if place.etcd else f"{self.per_commit:.1f}"]


async def measure_writes(place: Place, objects: Objects, *, callers: int, seconds: float) -> Writes:
    """Has callers create one object after the other for some time."""
    storage = await locations.open_location(place.location("writes"))
    commits: list[int] = []

    def note(events: Sequence[Event]) -> None:
        commits.append(len(events))  # SQLite reports each commit once

    storage.subscribe("/", note)
    # One value for all: making each of them would be measured too.
    key, value = objects.next()
    until = time.monotonic() + seconds

    numbers = itertools.count()

    async def write_on() -> int:
        done = 0
        while time.monotonic() < until:
            await storage.create(f"{key}-{next(numbers)}", value)
            done += 1
        return done

    before, cpu, etcd_cpu = time.monotonic(), time.process_time(), place.etcd_cpu()
    done = sum(await asyncio.gather(*(write_on() for _ in range(callers))))
    elapsed = time.monotonic() - before
    cpu, etcd_cpu = time.process_time() - cpu, place.etcd_cpu() - etcd_cpu
    await storage.close()
    return Writes(
        throughput=done / elapsed,
        cpu=cpu / done * 1e6,
        etcd_cpu=etcd_cpu / done * 1e6,
        per_commit=sum(commits) / max(len(commits), 1),
    )


async def fill(storage: Storage, objects: Objects, *, count: int) -> None:
    async def create_some() -> None:
        while remaining:
            remaining.pop()
            await storage.create(*objects.next())

    remaining = [None] * count
    await asyncio.gather(*(create_some() for _ in range(FILLING)))


async def filled(location: Location, objects: Objects, *, count: int) -> None:
    """Adds objects to a store until it has so many."""
    storage = await locations.open_location(location)
    await fill(storage, objects, count=count - storage.count("/"))
    await storage.close()


@dataclass(frozen=True, kw_only=True)
class Start:
    """How a server came up."""

    seconds: float
    cpu: float
    megabytes: float

    def cells(self) -> list[str]:
        return [f"{self.seconds:.2f}", f"{self.cpu:.2f}", f"{self.megabytes:.0f}"]


def measure_start(place: Place, name: str, *, rounds: int) -> Start:
    """Starts the server so often, and once more for its certificates. The quickest counts, as with writes."""
    found: list[Start] = []
    for _ in range(1 + rounds):
        begun = time.monotonic()
        with live_server.running(place.server_directory(name), flags=place.flags(name)) as server:
            ready = time.monotonic() - begun
            found.append(Start(seconds=ready, cpu=cpu_seconds(server.pid), megabytes=memory_megabytes(server.pid)))
    return min(found[1:], key=lambda start: start.seconds)


def table(title: str, *rows: Sequence[str]) -> str:
    """Columns as wide as need be, the first one to the left."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(cell.ljust(width) if number == 0 else cell.rjust(width) for number, (cell, width) in enumerate(cells))
        for cells in (list(zip(row, widths, strict=True)) for row in rows)
    ]
    return "\n".join([title, *lines, ""])


def writes_of(place: Place, plan: Plan, say: Callable[[str], None]) -> Iterator[list[str]]:
    objects = Objects()
    for callers in plan.callers:
        say(f"{place.engine}: creates by {callers} at once")
        measure = [
            place.runner.run(measure_writes(place, objects, callers=callers, seconds=plan.seconds))
            for _ in range(plan.rounds)
        ]
        # Whatever else runs on the machine only makes it slower.
        yield [place.engine, str(callers), *max(measure, key=lambda one: one.throughput).cells(place)]


def starts_of(place: Place, plan: Plan, say: Callable[[str], None]) -> Iterator[tuple[int, list[str], Start]]:
    objects = Objects()
    for count in plan.objects:
        say(f"{place.engine}: filling up to {count:,} objects")
        place.runner.run(filled(place.location("start"), objects, count=count))
        say(f"{place.engine}: starting with {count:,} objects")
        started = measure_start(place, "start", rounds=plan.rounds)
        yield count, [place.engine, f"{count:,}", *started.cells()], started


def run(plan: Plan, engines: Sequence[str], say: Callable[[str], None]) -> tuple[str, list[str]]:
    """The tables, and what misses the goal."""
    writes = [["engine", "callers", "creates/s", "CPU us", "writes/commit"]]
    starts = [["engine", "objects", "ready s", "CPU s", "memory MB"]]
    missed: list[str] = []
    for engine in engines:
        with place_of(engine) as place:
            writes += writes_of(place, plan, say)
            for count, cells, started in starts_of(place, plan, say):
                starts.append(cells)
                if count >= GOAL_OBJECTS and started.seconds > GOAL_SECONDS:
                    missed.append(f"{engine}: ready after {started.seconds:.1f} s with {count:,} objects")
    return table("Writes", *writes) + "\n" + table("Start", *starts), missed


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="little of everything, to see that it works")
    parser.add_argument("--only", choices=ENGINES, help="one of the engines")
    options = parser.parse_args(arguments)
    engines = (options.only,) if options.only else ENGINES
    tables, missed = run(QUICK if options.quick else Plan(), engines, lambda line: print(line, file=sys.stderr))
    print(tables, end="")
    for each in missed:
        print(f"MISSED  {each}; the goal is {GOAL_SECONDS:g} s")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
