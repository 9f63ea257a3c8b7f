"""Goals are those of goals.toml, and figures are judged by them."""

import pytest

from benchmarks import goals
from benchmarks.scenarios import matches, scenarios
from tests.system.benchmarks.made_up import record


def verdicts(
    scenario: str, engine: str, *, peer: list[dict[str, float]], ours: list[dict[str, float]]
) -> dict[str, str]:
    return {judged.wanted: judged.verdict for judged in goals.judge(scenario, engine, peer=peer, ours=ours)}


def test_cost_and_throughput_are_goals_of_their_own() -> None:
    found = verdicts("create/c16", "sqlite", peer=[record(2400, rps=500)], ours=[record(200, rps=1900)])
    assert found == {"12x CPU": "met", "4x throughput": "not met"}


def test_writes_on_etcd_have_a_goal_of_their_own() -> None:
    assert verdicts("create/c16", "etcd", peer=[record(2400)], ours=[record(600)]) == {"4x CPU": "met"}
    assert verdicts("create/c16", "etcd", peer=[record(2399)], ours=[record(600)]) == {"4x CPU": "not met"}


def test_delivery_must_be_quicker_than_the_peers() -> None:
    found = verdicts("watch/1000/full", "sqlite", peer=[record(18, p99_ms=700)], ours=[record(8, p99_ms=701)])
    assert found == {"2x CPU": "met", "p99 below the peer's": "not met"}


def test_the_mix_is_judged_by_the_share_of_a_core() -> None:
    for used, verdict in ((11.9, "met"), (12.1, "not met")):
        found = verdicts("mixed", "sqlite", peer=[record(8000)], ours=[record(1, cpu_pct=used)])
        assert found == {"under 12% of a core": verdict}


def test_what_was_not_measured_is_neither_met_nor_missed() -> None:
    assert verdicts("get/c16", "sqlite", peer=[], ours=[record(50)]) == {"15x CPU": "not measured"}
    assert verdicts("get/c16", "sqlite", peer=[record(50)], ours=[record(0)]) == {"15x CPU": "not measured"}


def test_a_ratio_is_that_of_the_medians_with_the_rounds_as_its_noise() -> None:
    ratio = goals.ratio_of([record(1000), record(3000)], [record(100), record(100)], "cpu_us")
    assert ratio is not None
    assert (ratio.median, ratio.low, ratio.high) == (20.0, 10.0, 30.0)
    assert (str(ratio), ratio.noise) == ("20.0x", "10.0 to 30.0")


@pytest.mark.parametrize("engine", ["sqlite", "etcd"])
def test_a_list_of_1000_is_not_taken_for_one_of_10000_or_for_a_table(engine: str) -> None:
    wanted = {name: goals.wanted_of(name, engine)["cpu"] for name in ("list_1000/c8/gzip", "list_10000/c1")}
    assert wanted == {"list_1000/c8/gzip": 20, "list_10000/c1": 30}
    assert goals.wanted_of("list_table_1000/c1", engine)["cpu"] == 30


def test_each_goal_is_for_something_that_is_measured() -> None:
    measured = {scenario.name for scenario in scenarios()} | {"startup", "delete/c16"}
    with_goal = {name for name in measured if goals.wanted_of(name, "sqlite")}
    patterns = [pattern for goal in goals._document()["goals"] for pattern in goal["scenarios"]]
    assert all(any(matches(name, pattern) for name in with_goal) for pattern in patterns)
