"""How cost grows with objects and with watches, ours alone, and how long a large list keeps others waiting."""

import multiprocessing
import resource
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from benchmarks import objects, read_load, servers, watch_load, write_load
from benchmarks.answers import Answer
from benchmarks.driver import Load, LoadError, Sending, drive, forever, measured
from benchmarks.meter import Record, latencies, median_record, settle, usage
from benchmarks.objects import PATH, name_of
from benchmarks.population import ensure
from benchmarks.progress import Say
from benchmarks.results import Results, reduced
from benchmarks.servers import Workshop
from benchmarks.targets import NO_FIELDS, Target
from benchmarks.watchers import ignore_interrupts

OBJECTS = (100, 1_000, 10_000, 100_000)
WATCHERS = (10, 100, 1_000, 5_000)
HITS = 100
"""Objects that the selector finds, however many there are."""
_COHORT = "bench-cohort"
_WATCHED = 100
"""Objects that change while they are watched."""
_EVENTS = 50_000
"""About so many are delivered at each number of watches."""
_CONNECTIONS = 16
_ROUNDS = 3
"""In which the numbers of objects take turns."""
_FILES_TO_SPARE = 200
_SETTLING = 30.0
_VARIANTS = {"JSON": NO_FIELDS, "gzip": objects.COMPRESSED, "Table": objects.AS_TABLE}


@dataclass(kw_only=True)
class Growth:
    """One run, written after each step."""

    workshop: Workshop
    results: Results
    into: Path
    say: Say
    engine: str = servers.SQLITE
    factor: float = 1.0
    object_counts: Sequence[int] = OBJECTS
    watcher_counts: Sequence[int] = WATCHERS

    def run(self) -> None:
        self.results.document["growth"] = {"engine": self.engine, "objects": {}, "watchers": {}, "stall": {}}
        if self.watcher_counts:
            with servers.running(self.workshop.make(self.engine)) as target:
                ensure(target, _WATCHED, exactly=True)
                self._with_watchers(target)
        if self.object_counts:
            with ExitStack() as stack:
                targets = [self._filled(stack, count) for count in self.object_counts]
                self._with_objects(targets)
                self._stall(targets[-1])

    def _keep(self, *path: str, record: Record) -> None:
        place: dict[str, Any] = self.results.growth
        for name in path[:-1]:
            place = place.setdefault(name, {})
        place[path[-1]] = reduced(record)
        self.results.write(self.into)

    def _with_watchers(self, target: Target) -> None:
        counts = [count for count in self.watcher_counts if enough_files(count)]
        for count in set(self.watcher_counts).difference(counts):
            self.say(f"{count:,} watches need more open files than are allowed: raise it with `ulimit -n`")
        idle = self._memory_of_idle(target, counts)
        for count in idle:
            self.say(f"{count:,} watches")
            writes = max(10, int(min(500, _EVENTS / count) * self.factor))
            try:
                record = watch_load.deliver(target, watchers=count, rate=None, writes=writes)
            except (LoadError, OSError) as error:
                self.say(f"  {error}")
                continue
            self._keep("watchers", str(count), record=record | {"rss_per_watch_kb": idle[count]})

    def _memory_of_idle(self, target: Target, counts: Sequence[int]) -> dict[int, float]:
        """KB a watch. Before anything is written: what is kept of the past would be taken for theirs."""
        self.say("idle watches")
        watch_load.deliver(target, watchers=1, rate=None, writes=10)  # what is loaded at the first watch is none's own
        without, found = usage(target.pids).rss, dict[int, float]()
        # Counted from the beginning, since each number of watches uses the memory of the last one again.
        for count in sorted(counts):
            try:
                found[count] = (watch_load.memory_with(target, watchers=count) - without) * 1e3 / count
            except (LoadError, OSError) as error:
                self.say(f"  {count:,}: {error}")
        return found

    def _filled(self, stack: ExitStack, count: int) -> Target:
        """A server with so many objects, up to the end of the stack."""
        self.say(f"{count:,} objects")
        target = stack.enter_context(servers.running(self.workshop.make(self.engine)))
        ensure(target, count, exactly=True)
        mark_cohort(target)
        settle(target.pids, within=_SETTLING)
        return target

    def _with_objects(self, targets: Sequence[Target]) -> None:
        """In turns: figures taken minutes apart show the machine as much as the number of objects."""
        for kind, measure in _KINDS.items():
            self.say(f"{kind} with each number of objects")
            found: dict[int, list[Record]] = {target.count: [] for target in targets}
            for _ in range(_ROUNDS):
                for target in targets:
                    found[target.count].append(measure(target, self.factor))
                    settle(target.pids, within=_SETTLING)
            for count, records in found.items():
                self._keep("objects", str(count), kind, record=median_record(records))

    def _stall(self, target: Target) -> None:
        settle(target.pids, within=_SETTLING)
        quiet = latencies(undisturbed(target, seconds=2 * self.factor), "quiet_")
        for name, fields in _VARIANTS.items():
            self.say(f"others while {target.count:,} objects are listed as {name}")
            try:
                record = stall(target, fields)
            except (LoadError, OSError) as error:
                self.say(f"  {error}")
                continue
            self._keep("stall", name, record=record | quiet | {"objects": target.count})


def enough_files(watchers: int) -> bool:
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0] >= watchers + _FILES_TO_SPARE


def mark_cohort(target: Target) -> None:
    """Labels the objects that the selector finds."""
    body = {"metadata": {"labels": {_COHORT: "first"}}}
    source = (
        Sending(target.request("PATCH", f"{PATH}/{name_of(number)}", body, content_type=objects.MERGE_PATCH))
        for number in range(HITS)
    )
    driven = drive(target, Load(source=source, connections=8))
    if driven.errors:
        raise LoadError(f"label: {driven.error_sample}")


def _get(target: Target, factor: float) -> Record:
    return read_load.get(target, connections=_CONNECTIONS, factor=factor / 2)


def _list_all(target: Target, factor: float) -> Record:
    return _list(target, PATH, factor=factor)


def _list_cohort(target: Target, factor: float) -> Record:
    return _list(target, f"{PATH}?labelSelector={_COHORT}%3Dfirst", factor=factor)


def _patch(target: Target, factor: float) -> Record:
    return write_load.patch(target, connections=_CONNECTIONS, factor=factor / 2, among=target.count)


def _create(target: Target, factor: float) -> Record:
    made = write_load.create_and_delete(target, connections=_CONNECTIONS, factor=factor / 2)
    return made[f"create/c{_CONNECTIONS}"]


def _list(target: Target, path: str, *, factor: float) -> Record:
    """Not with wrk, which leaves requests unfinished: with large answers they would make up much of the cost."""
    request = target.request("GET", path)
    return measured(target, Load(source=forever(lambda _: Sending(request)), seconds=factor, at_least=3))


_KINDS: dict[str, Callable[[Target, float], Record]] = {
    "get": _get,
    "list": _list_all,
    "list_selector": _list_cohort,
    "patch": _patch,
    "create": _create,
}


def stall(target: Target, fields: Mapping[str, str]) -> Record:
    """How long others waited while the whole was listed three times, each time after a write."""
    seconds = []
    with _probing(target) as finish:
        for number in range(3):
            body = b'{"metadata":{"labels":{"touched":"t%d"}}}' % next(objects.fresh_numbers)
            change = target.request("PATCH", f"{PATH}/{name_of(number)}", body, content_type=objects.MERGE_PATCH)
            drive(target, Load(source=iter([Sending(change)])))
            seconds.append(drive(target, Load(source=iter([Sending(target.request("GET", PATH, **fields))]))).seconds)
        waited = finish()
    return latencies(waited) | {"n": len(waited), "list_seconds": max(seconds)}


def undisturbed(target: Target, *, seconds: float) -> list[float]:
    """How long other requests wait without a list: what the machine itself does to them."""
    with _probing(target) as finish:
        time.sleep(seconds)
        return finish()


@contextmanager
def _probing(target: Target) -> Iterator[Callable[[], list[float]]]:
    """Another client that gets an object again and again. What is yielded ends it, and gives its latencies."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(target=_probe, args=(target, theirs), daemon=True)
    process.start()
    theirs.close()
    ours.recv()

    def finish() -> list[float]:
        ours.send("end")
        try:
            found: list[float] = ours.recv()
        except EOFError:
            raise LoadError("the server closed the connection of the one who waits") from None
        return found

    try:
        yield finish
    finally:
        process.terminate()
        process.join()


def _probe(target: Target, pipe: Connection) -> None:
    ignore_interrupts()
    connected = target.connect()
    request = target.request("GET", f"{PATH}/{name_of(50)}")
    waited: list[float] = []
    pipe.send("ready")
    while not pipe.poll(0.001):
        begun = time.monotonic()
        connected.sendall(request)
        answer = Answer(keep=False)
        while (data := connected.recv(65536)) and not answer.feed(data):
            pass
        if not data:
            return
        waited.append(time.monotonic() - begun)
    pipe.send(waited)
