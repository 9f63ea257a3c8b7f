"""The tool run for real against our server. How fast that is, is for `make bench`: here it must only work."""

import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from benchmarks import objects, population, read_load, servers, start_up, watch_load, watchers, write_load, wrk
from benchmarks.__main__ import main
from benchmarks.answers import Answer
from benchmarks.driver import LoadError
from benchmarks.growth import enough_files
from benchmarks.meter import family, latencies
from benchmarks.population import ensure
from benchmarks.progress import Progress
from benchmarks.results import Results
from benchmarks.scenarios import Scenario
from benchmarks.servers import Workshop
from benchmarks.targets import Target
from tools.processes import Process


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    workshop = Workshop(tmp_path_factory.mktemp("servers"))
    with servers.running(workshop.make("sqlite")) as target:
        yield target


@pytest.fixture(autouse=True)
def patient_watchers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine may take its time to deliver."""
    monkeypatch.setattr(watchers, "_QUIET", 60.0)
    monkeypatch.setattr(watchers, "_AFTER_LAST_WRITE", 60.0)


@pytest.fixture
def without_wrk(monkeypatch: pytest.MonkeyPatch) -> None:
    """It cannot run for less than a second."""
    monkeypatch.setattr(wrk, "is_there", lambda: False)


@pytest.mark.parametrize(
    "measure",
    [
        partial(read_load.list_all, count=1000, connections=1, factor=0.01, fields=objects.AS_TABLE),
        partial(read_load.page, factor=0.01),
        partial(write_load.patch, connections=2, factor=0.01),
        partial(write_load.put_status, connections=2, factor=0.01),
        partial(write_load.apply, connections=2, factor=0.01),
        partial(watch_load.deliver, watchers=2, rate=None, writes=10),
        partial(watch_load.deliver, watchers=25, rate=1000, writes=10),
        partial(watch_load.mixed, factor=0.01),
    ],
    ids=["table", "page", "patch", "put_status", "apply", "watch", "watch at a rate", "mixed"],
)
def test_each_kind_of_load_runs_without_errors(server: Target, measure: Callable[[Target], dict[str, Any]]) -> None:
    ensure(server, 20, exactly=True)
    record = measure(server)
    assert record["n"] > 0
    assert record["errors"] == 0
    assert record["cpu_us"] >= 0
    assert record.get("delivered_pct", 100) > 95  # of some, only bytes are counted


def test_what_is_created_is_deleted_and_both_are_measured(server: Target) -> None:
    ensure(server, 5, exactly=True)
    found = write_load.create_and_delete(server, connections=2, factor=0.01)
    assert found["create/c2"]["n"] == found["delete/c2"]["n"] > 0
    assert population.names(server) == [objects.name_of(number) for number in range(5)]


def test_what_an_earlier_run_left_is_taken_over_or_deleted(server: Target) -> None:
    ensure(server, 5, exactly=True)
    population.delete(server, [objects.name_of(2)])
    population.adopt(server)
    assert server.count == 2
    assert len(population.names(server)) == 2


@pytest.mark.skipif(not wrk.is_there(), reason="wrk is not installed")
def test_wrk_tells_how_it_went(server: Target) -> None:
    ensure(server, 5, exactly=True)
    path = f"{objects.PATH}/{objects.name_of(1)}"
    record = None
    while record is None:  # on a busy machine a second may be too short for one answer
        with suppress(LoadError):
            record = wrk.get_repeatedly(server, path, connections=2, seconds=1, fields=objects.COMPRESSED)
    assert record["n"] > 0
    assert record["errors"] == 0
    assert record["bytes"] > 1000


@pytest.mark.usefixtures("without_wrk")
def test_our_server_alone_makes_a_table_and_says_when_wrk_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ours", "--time", "0.01", "--scenario", "get/c1"]) == 0
    printed = capsys.readouterr()
    assert re.search(r"^get/c1 +[\d.,]+ ", printed.out, re.MULTILINE)
    assert "Only `make bench-compare`" in printed.out
    assert "apt-get install wrk" in printed.err


@pytest.mark.usefixtures("without_wrk")
def test_a_comparison_leaves_results_a_page_and_plots(tmp_path: Path) -> None:
    arguments = ["--servers", "sqlite", "--rounds", "2", "--time", "0.01", "--into", str(tmp_path)]
    assert main(["compare", "--scenario", "get/c1", *arguments]) == 0
    results = Results.read(tmp_path)
    assert set(results.scenarios) == {"get/c1"}
    assert [record["errors"] for record in results.records("get/c1", "sqlite")] == [0, 0]
    assert results.document["versions"]["sqlite"].startswith("v")
    assert (tmp_path / "plots" / "cpu.svg").exists()


def test_the_least_server_is_measured_in_turns_with_ours(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["floor", "--time", "0.02", "--rounds", "1"]) == 0
    printed = capsys.readouterr().out
    assert len(re.findall(r"^mixed .* 0$", printed, re.MULTILINE)) == 2, "a row without errors for each"
    assert "A = bare, B = sqlite" in printed


def test_a_start_is_measured_with_nothing_with_objects_and_over_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(start_up, "SETTLING", 0.0)
    arguments = ["--servers", "sqlite", "--rounds", "1", "--objects", "5", "--into", str(tmp_path)]
    assert main(["compare", "--scenario", "startup", *arguments]) == 0
    (record,) = Results.read(tmp_path).records("startup", "sqlite")
    assert record["objects"] == 5
    assert all(record[name] > 0 for name in ("ready_s", "rss_idle_mb", "rss_loaded_mb", "ready_loaded_s"))
    assert "| ready, s |" in (tmp_path / "RESULTS.md").read_text()


@pytest.mark.usefixtures("without_wrk")
def test_growth_is_added_to_the_results_that_are_there(tmp_path: Path) -> None:
    before = Results.new(factor=1, rounds=1)
    before.add("get/c1", "peer", {"cpu_us": 1000.0})
    before.write(tmp_path)
    sizes = ["--objects", "100", "--watchers", "3"]
    assert main(["growth", "--time", "0.01", *sizes, "--into", str(tmp_path)]) == 0
    results = Results.read(tmp_path)
    assert results.records("get/c1", "peer") == [{"cpu_us": 1000.0}]
    assert set(results.growth["objects"]["100"]) == {"get", "list", "list_selector", "patch", "create"}
    assert results.growth["watchers"]["3"]["delivered_pct"] == 100
    assert {record["objects"] for record in results.growth["stall"].values()} == {100}


@pytest.mark.usefixtures("without_wrk")
def test_a_server_that_runs_already_is_measured_and_left_empty(
    server: Target, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    processes = ",".join(map(str, server.pids))
    where = ["--server", server.url, "--token", server.token, "--pid", processes, "--name", "running"]
    written = ["--json", str(tmp_path / "out.json")]
    assert main(["load", *where, *written, "--scenario", "get/c1", "--time", "0.01"]) == 0
    assert capsys.readouterr().out.startswith("running\n")
    assert json.loads((tmp_path / "out.json").read_text())["results"]["get/c1"]["cpu_us"] >= 0
    assert population.names(server) == []
    server.count = 0


def test_the_disk_is_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["disk", str(tmp_path), "--time", "0.01"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 4


def test_an_answer_that_is_not_expected_fails_the_scenario_alone(server: Target) -> None:
    status: dict[str, Any] = {"kind": "Status"}
    with pytest.raises(LoadError, match="not expected: KeyError"):
        Scenario(name="x", objects=5, measure=lambda _: {"rps": len(status["items"])}, seconds=1).run(server)


def test_a_server_that_does_not_start_says_why(tmp_path: Path) -> None:
    failing = Workshop(tmp_path).make("sqlite")
    failing.processes[0] = Process(["sh", "-c", "echo no such luck; exit 3"], log=tmp_path / "log")
    with pytest.raises(LoadError, match="no such luck"), servers.running(failing):
        pass


def test_an_interrupted_run_leaves_no_process_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    interrupted = Workshop(tmp_path).make("sqlite")
    interrupted.processes[:] = [Process(["sleep", "600"], log=tmp_path / "log") for _ in range(2)]
    begun: list[int] = []

    def interrupt(*_: object) -> None:
        begun.extend(interrupted.target.pids)
        raise KeyboardInterrupt

    monkeypatch.setattr(servers, "_wait", interrupt)
    with pytest.raises(KeyboardInterrupt), servers.running(interrupted):
        pass
    assert len(begun) == 2
    assert not any(Path(f"/proc/{pid}").exists() for pid in begun)


@pytest.mark.parametrize("piece", [1, 7, 1000])
def test_an_answer_is_read_to_its_end_in_whatever_pieces_it_comes(piece: int) -> None:
    plain = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\nA: b\r\n\r\n"
    for sent in (plain, chunked):
        answer = Answer(keep=True)
        fed = [answer.feed(sent[start : start + piece]) for start in range(0, len(sent), piece)]
        assert fed == [False] * (len(fed) - 1) + [True]
        assert answer.content == b"hello"


def test_percentiles_are_in_milliseconds() -> None:
    found = latencies([number / 1000 for number in range(1, 101)])
    assert found == pytest.approx({"p50_ms": 51, "p95_ms": 96, "p99_ms": 100, "max_ms": 100})


def test_a_family_has_the_process_itself() -> None:
    assert os.getpid() in family([os.getpid()])


def test_later_rounds_wait_for_time_and_first_ones_do_not() -> None:
    seconds = iter(range(0, 1000, 30))
    progress = Progress(10, minutes=2, clock=lambda: next(seconds))
    progress.done(1)
    assert progress.fits(1)
    assert not progress.fits(100)


def test_more_watches_than_files_are_noticed() -> None:
    assert not enough_files(10**9)
