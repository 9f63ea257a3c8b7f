"""Rounds that others disturbed are made again, and what was found plays no part in that."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks import servers
from benchmarks.comparison import Comparison, Round, most_disturbed
from benchmarks.driver import LoadError
from benchmarks.meter import NOISY, Record
from benchmarks.results import Results
from benchmarks.scenarios import Scenario
from benchmarks.servers import Workshop
from benchmarks.targets import Target
from tests.system.benchmarks.made_up import record


class Measurements:
    """Of a scenario, one after the other; then of nothing more."""

    def __init__(self, *records: Record) -> None:
        self._left: Iterator[Record] = iter(records)

    def __call__(self, _: Target) -> Record:
        for found in self._left:
            return found
        raise LoadError("there is nothing more to be found")

    def left(self) -> int:
        return len(list(self._left))


def scenario(measure: Measurements, name: str = "get/c1", *, objects: int = 0) -> Scenario:
    return Scenario(name=name, objects=objects, measure=measure, seconds=0.1)


def compare(
    directory: Path, *chosen: Scenario, rounds: int = 2, minutes: float = 10.0, said: list[str] | None = None
) -> Results:
    results = Results.new(factor=1, rounds=rounds)
    said = [] if said is None else said
    comparison = Comparison(
        workshop=Workshop(directory / "servers"),
        results=results,
        into=directory,
        say=said.append,
        names=[servers.SQLITE],
        rounds=rounds,
        minutes=minutes,
    )
    comparison.run(chosen, objects_at_start=0)
    assert Results.read(directory).document == results.document
    return results


def costs(results: Results, name: str = "get/c1") -> list[float]:
    return [found["cpu_us"] for found in results.records(name, servers.SQLITE)]


def test_a_disturbed_round_is_made_again_and_takes_the_place_of_the_first(tmp_path: Path) -> None:
    measure = Measurements(record(1, others=50), record(2, others=5), record(3, others=5))
    said: list[str] = []
    assert costs(compare(tmp_path, scenario(measure), said=said)) == [3, 2]
    assert any("get/c1, round 1 again: others took 50%" in line for line in said)


def test_of_a_round_that_stays_disturbed_the_least_disturbed_counts(tmp_path: Path) -> None:
    measure = Measurements(*(record(number, others=others) for number, others in enumerate((60, 40, 50, 5))))
    assert costs(compare(tmp_path, scenario(measure), rounds=1)) == [1]
    assert measure.left() == 1  # it was not tried for ever


def test_nothing_is_made_again_that_nobody_disturbed(tmp_path: Path) -> None:
    measure = Measurements(record(1, others=NOISY), record(2))
    assert costs(compare(tmp_path, scenario(measure), rounds=1)) == [1]
    assert measure.left() == 1


def test_what_fails_when_it_is_made_again_leaves_what_there_was(tmp_path: Path) -> None:
    measure = Measurements(record(1, others=50))
    assert costs(compare(tmp_path, scenario(measure), rounds=1)) == [1]


def test_a_round_that_failed_is_told_and_not_made_again(tmp_path: Path) -> None:
    results = compare(tmp_path, scenario(Measurements()), rounds=1)
    assert results.scenarios["get/c1"][servers.SQLITE] == [{"failed": "there is nothing more to be found"}]


def test_the_worst_comes_first_and_before_there_are_more_objects(tmp_path: Path) -> None:
    said: list[str] = []
    chosen = [
        scenario(Measurements(record(1, others=30), record(2)), "get/c1"),
        scenario(Measurements(record(3, others=40), record(4)), "get/c16"),
        scenario(Measurements(record(5)), "list_1/c1", objects=1),
    ]
    results = compare(tmp_path, *chosen, rounds=1, said=said)
    assert [costs(results, each.name) for each in chosen] == [[2], [4], [5]]
    lines = [line.partition("] ")[2] for line in said if " round " in line]
    assert [line.partition(":")[0] for line in lines] == [
        "get/c1, round 1 of 1",
        "get/c16, round 1 of 1",
        "get/c16, round 1 again",
        "get/c1, round 1 again",
        "list_1/c1, round 1 of 1",
    ]


def test_without_time_rounds_stay_as_they_are(tmp_path: Path) -> None:
    said: list[str] = []
    measure = Measurements(record(1, others=50), record(2), record(3))
    assert costs(compare(tmp_path, scenario(measure), minutes=0.0001, said=said)) == [1]
    assert "get/c1: no time for more than 1 of 2 rounds" in said
    assert "no time to make the other disturbed rounds again" in said


@pytest.mark.parametrize(
    ("other", "better"), [(record(1, others=40), True), (record(9, others=60), False), ({"failed": "?"}, False)]
)
def test_the_less_disturbed_round_counts_whatever_it_found(other: Record, better: bool) -> None:  # noqa: FBT001
    first = Round(scenario(Measurements()), 0, {"peer": {"get/c1": record(5, others=50)}})
    again = Round(first.scenario, 0, {"peer": {"get/c1": other}})
    assert again.is_better(first) is better


def test_one_disturbed_server_is_enough() -> None:
    quiet, loud = {"get/c1": record(1)}, {"get/c1": record(1, others=21)}
    rounds = [Round(scenario(Measurements()), 0, {"peer": quiet, "sqlite": found}) for found in (quiet, loud)]
    assert most_disturbed(rounds) is rounds[1]
    assert most_disturbed(rounds[:1]) is None
