"""The soak test: a server under steady load for a long time must not grow.

Run as ``python -m tests.system.faults.soak``; ``--help`` names the options. Every few seconds it reads the server's
memory, descriptors, tasks and threads and the size of its log and write-ahead log. After a warm-up, in which caches and
the kept history fill, each figure is fitted with a straight line. It counts as growth when the figure has risen beyond
doubt, by more in an hour than a tolerance, and by more in all than a server's memory moves by itself.

The load repeats what a leak would need: objects, labels, selectors, tokens, reviews, connections and watches that come
with names never used before, and go again. Connections and watches are cut off, not closed.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import re
import statistics
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import quote

from tests.apiserver.api.objects import CLUSTERS, MERGE_PATCH, cluster, path_of
from tests.apiserver.storage.etcd_servers import EtcdCluster
from tests.system.faults.connections import Answer, Connection, LostError, Target, UnreachableError
from tests.system.faults.report import Say, positive, run_command, seed_option
from tests.system.faults.servers import Server

JSON = "application/json"
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
ENGINES = ("sqlite", "etcd")
OBJECTS, MINUTES, RATE, CLIENTS = 1_500, 60.0, 80.0, 4
SAMPLE_SECONDS, PROGRESS_SECONDS = 2.0, 30.0
LEAST_SAMPLES = 100
HISTORY, REMEMBERED = 11_000, 4_500
"""Writes that fill the history in memory (10,000 events), and requests that fill what is remembered of paths, selectors
and field names (4,096 of each): 20 MB and 7 MB with the objects here. The warm-up makes as many."""
WARM_UP_SHARE = 0.2
"""Of the time: memory that was used at first takes a while to find its place."""


# What is measured -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """Something that must not grow: its unit, and rises in an hour and in all that are too small to matter."""

    name: str
    unit: str
    per_hour: float
    in_all: float


FIGURES = (
    Figure(name="memory", unit="KB", per_hour=2_000, in_all=2_500),
    Figure(name="descriptors", unit="", per_hour=5, in_all=3),
    Figure(name="tasks", unit="", per_hour=5, in_all=3),
    Figure(name="threads", unit="", per_hour=2, in_all=2),
    Figure(name="log", unit="KB", per_hour=200, in_all=20),
    Figure(name="write-ahead log", unit="KB", per_hour=1_000, in_all=1_000),
)


@dataclass(frozen=True, slots=True)
class Sample:
    seconds: float
    values: tuple[float, ...]
    """In the order of ``FIGURES``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slope:
    """A line through samples: growth per hour, and how much of that may be chance (95 %)."""

    figure: Figure
    per_hour: float
    doubt: float
    level: float
    hours: float

    @property
    def grows(self) -> bool:
        least = self.per_hour - self.doubt
        return least > self.figure.per_hour and least * self.hours > self.figure.in_all

    def __str__(self) -> str:
        unit = f" {self.figure.unit}" if self.figure.unit else ""
        line = f"{self.figure.name:16} {self.level:10,.0f}{unit}   {self.per_hour:+10,.1f} +-{self.doubt:,.1f}{unit}/h"
        return f"{line}   {'GROWS' if self.grows else 'steady'}"


_BLOCKS = 12
_STUDENT = 2.23
"""Student's t for 95 % and 10 degrees of freedom: two less than there are blocks."""


def slope(figure: Figure, points: Sequence[tuple[float, float]]) -> Slope:
    """The line of least squares through the medians of blocks: samples that follow each other closely are alike."""
    blocks = [points[len(points) * n // _BLOCKS : len(points) * (n + 1) // _BLOCKS] for n in range(_BLOCKS)]
    if not all(blocks):
        raise ValueError(f"{len(points)} samples are too few for a slope")
    xs = [statistics.fmean(x for x, _ in block) for block in blocks]
    ys = [statistics.median(y for _, y in block) for block in blocks]
    fitted = statistics.linear_regression(xs, ys)
    rest = sum((y - fitted.slope * x - fitted.intercept) ** 2 for x, y in zip(xs, ys, strict=True))
    spread = sum((x - statistics.fmean(xs)) ** 2 for x in xs)
    error = (rest / (_BLOCKS - 2) / spread) ** 0.5
    return Slope(
        figure=figure,
        per_hour=fitted.slope * 3600,
        doubt=_STUDENT * error * 3600,
        level=statistics.fmean(ys[-3:]),
        hours=(points[-1][0] - points[0][0]) / 3600,
    )


class Probe:
    """Reads the figures of one server."""

    def __init__(self, server: Server, directory: Path, target: Target) -> None:
        self._server, self._directory, self._target = server, directory, target
        self._read_to = self._logged = 0

    async def read(self) -> tuple[float, ...]:
        process = Path(f"/proc/{self._server.pid}")
        memory = re.search(r"^(?:Private_Dirty|Anonymous): +(\d+)", _text(process / "smaps_rollup"), re.MULTILINE)
        threads = re.search(r"^Threads:\s+(\d+)", _text(process / "status"), re.MULTILINE)
        assert memory
        assert threads
        return (
            float(memory.group(1)),
            float(len(os.listdir(process / "fd"))),  # noqa: PTH208 - a directory that changes while it is read
            await self._tasks(),
            float(threads.group(1)),
            self._log_size() / 1024,
            _size(self._directory / "data" / "registry.db-wal") / 1024,
        )

    def _log_size(self) -> int:
        """Bytes, without the lines about refused credentials: these come as fast as the load has them refused."""
        with (self._directory / "server.log").open("rb") as log:
            log.seek(self._read_to)
            self._logged += sum(len(line) for line in log if b"filters.authentication" not in line)
            self._read_to = log.tell()
        return self._logged

    async def _tasks(self) -> float:
        connection = await Connection.open(self._target)
        try:
            answer = await connection.exchange("GET", "/metrics")
        finally:
            connection.close()
        found = re.search(rb"^python_asyncio_tasks (\S+)$", answer.body, re.MULTILINE)
        assert found, answer.body[:500]
        return float(found.group(1))


def _text(path: Path) -> str:
    return path.read_text()


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


# The load -------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Load:
    """What clients do, at a bounded rate. Every action uses names that were never used before."""

    target: Target
    rng: random.Random
    objects: int
    writes: int = 0
    operations: int = 0
    surprises: list[str] = field(default_factory=list)
    _number: int = 0
    _connections: list[Connection] = field(default_factory=list)

    async def fill(self) -> None:
        """Objects as large as they will be: what grows later is not what is stored."""
        for number in range(self.objects):
            name = f"kept-{number}"
            await self._expect(201, "POST", CLUSTERS, _document(cluster(name, labels={"kept": "yes"})))
            await self._relabel(name)
            await self._heartbeat(name)

    async def warm_up(self) -> None:
        """Fills what the server keeps up to a bound, as fast as it can."""
        left = [self._heartbeat] * HISTORY + [self._list, self._come_and_go] * REMEMBERED  # from the end on

        async def act() -> None:
            while left:
                await left.pop()()

        async with asyncio.TaskGroup() as group:
            for _ in range(CLIENTS):
                group.create_task(act())

    async def run(self, until: float, rate: float) -> None:
        """Actions until then, some at a time, no more than ``rate`` a second."""
        async with asyncio.TaskGroup() as group:
            for _ in range(CLIENTS):
                group.create_task(self._act(until, rate / CLIENTS))

    async def _act(self, until: float, rate: float) -> None:
        actions = self._actions()
        due = time.monotonic()
        while time.monotonic() < until:
            try:
                await self.rng.choice(actions)()
            except (LostError, UnreachableError) as error:
                self.surprises.append(str(error))
            self.operations += 1
            due += 1 / rate
            await asyncio.sleep(max(0.0, due - time.monotonic()))

    def _actions(self) -> list[Callable[[], Awaitable[None]]]:
        often = [self._heartbeat] * 8 + [self._relabel] * 3 + [self._come_and_go] * 2
        return [*often, self._list, self._pages, self._watch, self._watch, self._refused, self._review, self._bad_body]

    def _new(self) -> str:
        self._number += 1
        return f"n{self._number:09}"

    def _kept(self) -> str:
        return f"kept-{self.rng.randrange(self.objects)}"

    async def _heartbeat(self, name: str = "") -> None:
        status = {"status": {"version": {"kubernetes": self._new()}, "nodes": {"total": 9, "ready": self._number % 9}}}
        await self._expect(200, "PATCH", f"{path_of(name or self._kept())}/status", _document(status), MERGE_PATCH)
        self.writes += 1

    async def _relabel(self, name: str = "") -> None:
        patch = {"metadata": {"labels": {"round": self._new()}, "annotations": {"example.com/text": self._new() * 50}}}
        await self._expect(200, "PATCH", path_of(name or self._kept()), _document(patch), MERGE_PATCH)
        self.writes += 1

    async def _come_and_go(self) -> None:
        name = self._new()
        await self._expect(201, "POST", CLUSTERS, _document(cluster(name, name, labels={name: name})))
        await self._expect(200, "DELETE", path_of(name))
        self.writes += 2

    async def _list(self) -> None:
        await self._expect(200, "GET", f"{CLUSTERS}?labelSelector={quote(f'kept=yes,round!={self._new()}')}&limit=5")

    async def _pages(self) -> None:
        answer = await self._expect(200, "GET", f"{CLUSTERS}?limit=7")
        more = json.loads(answer.body)["metadata"]["continue"]
        await self._expect(200, "GET", f"{CLUSTERS}?limit=7&continue={quote(more)}")

    async def _watch(self) -> None:
        """Opens a watch, reads a little of it, and cuts it off."""
        async with self._connected(self.target) as connection:
            selector = quote(f"round!={self._new()}")
            lines = connection.lines(f"{CLUSTERS}?watch=true&labelSelector={selector}&allowWatchBookmarks=true", idle=5)
            async with contextlib.aclosing(lines):
                for _ in range(3):
                    await anext(lines)

    async def _refused(self) -> None:
        async with self._connected(replace(self.target, token=self._new())) as connection:
            self._look(401, await connection.exchange("GET", CLUSTERS), "a token that is not known")

    async def _review(self) -> None:
        name = self._new()
        spec = {"resourceAttributes": {"group": name, "resource": name, "verb": "get", "name": name}}
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": spec}
        await self._expect(201, "POST", REVIEWS, _document(review))

    async def _bad_body(self) -> None:
        name = self._new()
        await self._expect(400, "POST", f"{CLUSTERS}?fieldManager={name}", f'{{"{name}": '.encode())

    async def _expect(self, status: int, method: str, path: str, body: bytes = b"", content_type: str = JSON) -> Answer:
        """On a connection that is kept for a while, then cut off."""
        connection = self._connections.pop() if self._connections else await Connection.open(self.target)
        try:
            answer = await connection.exchange(method, path, body=body, content_type=content_type)
        except LostError:
            connection.close()
            raise
        if self.rng.random() < 0.02:
            connection.close()
        else:
            self._connections.append(connection)
        self._look(status, answer, f"{method} {path}")
        return answer

    def _look(self, status: int, answer: Answer, what: str) -> None:
        if answer.status != status:
            self.surprises.append(f"{what}: {answer.status} {answer.body[:200]!r}, expected {status}")

    @contextlib.asynccontextmanager
    async def _connected(self, target: Target) -> AsyncIterator[Connection]:
        connection = await Connection.open(target)
        try:
            yield connection
        finally:
            connection.close()


def _document(obj: object) -> bytes:
    return json.dumps(obj).encode()


# The run --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How long, how much, and on what."""

    engine: str = "sqlite"
    seconds: float = MINUTES * 60
    objects: int = OBJECTS
    rate: float = RATE
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Soaked:
    """What became of it."""

    slopes: list[Slope]
    writes: int
    operations: int
    surprises: list[str]
    tracebacks: list[str]
    samples: list[Sample]

    @property
    def passed(self) -> bool:
        return not (self.surprises or self.tracebacks or any(each.grows for each in self.slopes))


async def soak(directory: Path, plan: Plan, say: Say) -> Soaked:
    """Puts a server under load for so long and fits what it used. Raises AssertionError when it does not start."""
    with contextlib.ExitStack() as stack:
        flags = _flags(directory, plan, stack)
        server = Server(directory / "server", *flags)
        async with server.running():
            target = server.target()
            load = Load(target, random.Random(plan.seed), plan.objects)
            await load.fill()
            await load.warm_up()
            say(f"{plan.engine}: {plan.objects} objects; caches and history are full")
            say(f"{plan.rate:g} requests a second for {plan.seconds:g} s")
            samples = await _measured(load, Probe(server, directory / "server", target), plan, say)
            tracebacks = server.tracebacks()
    kept = [each for each in samples if each.seconds >= plan.seconds * WARM_UP_SHARE]
    return Soaked(
        slopes=[
            slope(figure, [(each.seconds, each.values[number]) for each in kept])
            for number, figure in enumerate(FIGURES)
        ],
        writes=load.writes,
        operations=load.operations,
        surprises=load.surprises,
        tracebacks=tracebacks,
        samples=samples,
    )


def _flags(directory: Path, plan: Plan, stack: contextlib.ExitStack) -> list[str]:
    if plan.engine == "sqlite":
        return []
    place = directory / "etcd"
    place.mkdir(parents=True)
    etcd = stack.enter_context(EtcdCluster(place))
    return [f"--etcd-servers={etcd.endpoints[0]}"]


async def _measured(load: Load, probe: Probe, plan: Plan, say: Say) -> list[Sample]:
    began = time.monotonic()
    until = began + plan.seconds
    samples: list[Sample] = []

    async def look() -> None:
        due = began
        while True:
            samples.append(Sample(time.monotonic() - began, await probe.read()))
            if time.monotonic() >= due:
                due += PROGRESS_SECONDS
                shown = ", ".join(
                    f"{figure.name} {value:,.0f}{figure.unit and ' ' + figure.unit}"
                    for figure, value in zip(FIGURES, samples[-1].values, strict=True)
                )
                say(f"{load.writes} writes; {shown}")
            await asyncio.sleep(min(SAMPLE_SECONDS, plan.seconds / LEAST_SAMPLES))

    looking = asyncio.create_task(look())
    try:
        await load.run(until, plan.rate)
    finally:
        looking.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await looking
    return samples


def report(engine: str, soaked: Soaked) -> str:
    lines = [
        f"{engine}: {soaked.operations} requests, {soaked.writes} writes",
        f"{'':16} {'at the end':>10}   {'growth per hour':>14}",
        *map(str, soaked.slopes),
        *(f"unexpected: {each}" for each in soaked.surprises[:10]),
        *soaked.tracebacks[:3],
    ]
    return "\n".join(lines)


def main() -> int:
    options = _options()
    whole = Plan(seconds=options.minutes * 60, objects=options.objects, rate=options.rate, seed=options.seed)

    async def run(directory: Path, say: Say) -> bool:
        passed = True
        for engine in options.engine:
            soaked = await soak(directory / engine, replace(whole, engine=engine), say)
            say(report(engine, soaked))
            passed = passed and soaked.passed
        return passed

    return run_command("soak", run, seed=options.seed)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make soak ARGS=...", description=__doc__)
    parser.add_argument("--minutes", type=float, default=MINUTES, help="for each engine; default: %(default)g")
    parser.add_argument("--engine", choices=ENGINES, action="append", help="one of them alone; default: both")
    parser.add_argument("--objects", type=positive, default=OBJECTS, help="default: %(default)s")
    parser.add_argument("--rate", type=float, default=RATE, help="requests a second; default: %(default)g")
    seed_option(parser)
    options = parser.parse_args()
    options.engine = options.engine or list(ENGINES)
    return options


if __name__ == "__main__":
    sys.exit(main())
