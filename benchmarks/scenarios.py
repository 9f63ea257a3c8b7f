"""What is measured, in the order of a run: the number of objects only ever grows."""

import fnmatch
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from benchmarks import read_load, watch_load, write_load
from benchmarks.driver import LoadError
from benchmarks.meter import Record, settle
from benchmarks.objects import AS_TABLE, COMPRESSED
from benchmarks.population import ensure
from benchmarks.targets import Target

Measure = Callable[[Target], Record]

_MAIN_FIGURE = "rps"


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """Something to do to a server that has so many objects."""

    name: str
    objects: int
    exactly: bool = False
    """Whether more objects would change the figures."""
    measure: Measure
    seconds: float
    """About how long it takes, for the estimate of a run."""

    def run(self, target: Target) -> dict[str, Record]:
        """The records by name: most scenarios have one, that of their own name.

        What populating and measuring leave to do counts neither for this scenario nor for what comes next.
        """
        ensure(target, self.objects, exactly=self.exactly)
        settle(target.pids)
        try:
            found = self.measure(target)
        except (LookupError, ValueError) as error:  # an answer without what must be in it, such as a Status
            raise LoadError(f"an answer that was not expected: {error!r}") from error
        settle(target.pids)
        return {self.name: found} if _MAIN_FIGURE in found else found


def scenarios(factor: float = 1.0) -> list[Scenario]:
    """All of them; the factor is on all durations."""
    return [*_with_100(factor), *_with_1000(factor), *_with_10000(factor)]


def _lists(count: int, factor: float) -> Iterator[Scenario]:
    for connections in (1, 8):
        for suffix, fields in (("", {}), ("/gzip", COMPRESSED)):
            yield Scenario(
                name=f"list_{count}/c{connections}{suffix}",
                objects=count,
                exactly=True,
                measure=partial(read_load.list_all, count=count, connections=connections, factor=factor, fields=fields),
                seconds=max(1.0, 3 * factor),
            )


def _with_100(factor: float) -> Iterator[Scenario]:
    yield from _lists(100, factor)
    for connections in (1, 16, 64):
        measure = partial(read_load.get, connections=connections, factor=factor)
        yield Scenario(name=f"get/c{connections}", objects=100, measure=measure, seconds=max(1.0, 3 * factor))


def _with_1000(factor: float) -> Iterator[Scenario]:
    yield from _lists(1000, factor)
    table = partial(read_load.list_all, count=1000, connections=1, factor=factor, fields=AS_TABLE)
    yield Scenario(name="list_table_1000/c1", objects=1000, exactly=True, measure=table, seconds=3 * factor)
    for verb, measure in (
        ("create", write_load.create_and_delete),
        ("patch", write_load.patch),
        ("put_status", write_load.put_status),
    ):
        for connections in (1, 16, 64):
            yield Scenario(
                name=f"{verb}/c{connections}",
                objects=1000,
                measure=partial(measure, connections=connections, factor=factor),
                seconds=3 * factor,
            )
    apply = partial(write_load.apply, connections=16, factor=factor)
    yield Scenario(name="apply/c16", objects=1000, measure=apply, seconds=2 * factor)
    yield from _watches(factor)
    mixed = partial(watch_load.mixed, factor=factor)
    yield Scenario(name="mixed", objects=1000, measure=mixed, seconds=8 * factor)


def _watches(factor: float) -> Iterator[Scenario]:
    def watch(watchers: int, rate: int | None, writes: float) -> Scenario:
        wanted = max(1, int(writes * factor))
        return Scenario(
            name=f"watch/{watchers}/" + (f"{rate}ps" if rate else "full"),
            objects=1000,
            measure=partial(watch_load.deliver, watchers=watchers, rate=rate, writes=wanted),
            seconds=4 * factor + watchers / 200,
        )

    for watchers, writes in ((1, 1500), (100, 500), (1000, 100)):
        yield watch(watchers, None, writes)
        yield watch(watchers, 100, 300)
    yield watch(1000, 10, 40)


def _with_10000(factor: float) -> Iterator[Scenario]:
    count = 10_000
    yield from _lists(count, factor)
    for connections in (1, 8):
        select = partial(read_load.select, connections=connections, factor=factor)
        yield Scenario(
            name=f"list_selector/c{connections}",
            objects=count,
            exactly=True,
            measure=select,
            seconds=max(1.0, 3 * factor),
        )
    table = partial(read_load.list_all, count=count, connections=1, factor=factor, fields=AS_TABLE)
    yield Scenario(name="list_table_10000/c1", objects=count, exactly=True, measure=table, seconds=4 * factor)
    page = partial(read_load.page, factor=factor)
    yield Scenario(name="page/c1", objects=count, exactly=True, measure=page, seconds=3 * factor)


class UnknownScenarioError(Exception):
    """A pattern that no scenario has; the message names those that there are."""


def choose(every: Sequence[Scenario], patterns: str) -> list[Scenario]:
    """Those that a comma separated list names: get is get/c1 and so on, globs are allowed, delete comes with create."""
    wanted = [pattern for pattern in patterns.split(",") if pattern]
    chosen = {scenario.name for pattern in wanted for scenario in _matching(every, pattern)}
    return [scenario for scenario in every if scenario.name in chosen]


def _matching(every: Sequence[Scenario], pattern: str) -> list[Scenario]:
    asked = pattern.replace("delete", "create", 1) if pattern.startswith("delete") else pattern
    found = [scenario for scenario in every if matches(scenario.name, asked)]
    if not found:
        known = ", ".join(dict.fromkeys(scenario.name.partition("/")[0] for scenario in every))
        raise UnknownScenarioError(f"no scenario is named {pattern}; there are: {known} (--list names each of them)")
    return found


def matches(name: str, pattern: str) -> bool:
    """Whether a scenario is meant: by its name, the beginning of it up to a slash, or a glob."""
    return name == pattern or name.startswith(pattern + "/") or fnmatch.fnmatch(name, pattern)
