"""Which process runs which tests."""

import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests import schedule

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def not_e2e(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("E2E", raising=False)


def test_the_tests_of_a_file_stay_together_as_they_share_servers() -> None:
    units = {schedule.unit_of(f"tests/apiserver/api/test_watch.py::test_{name}") for name in ("one", "two[x-y]")}
    assert units == {"tests/apiserver/api/test_watch.py"}


def test_each_release_of_kubectl_is_a_unit() -> None:
    file = "tests/conformance/test_kubectl_transcripts.py"
    tests = [f"{file}::test_it[{release}-{area}]" for release in ("1.27", "1.36") for area in ("get", "apply")]
    assert {schedule.unit_of(test) for test in tests} == {f"{file}[1.27]", f"{file}[1.36]"}


def test_what_shares_a_real_kube_apiserver_is_a_unit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("E2E", "1")
    assert schedule.unit_of("tests/crinit/test_chart.py::test_it") == "tests/crinit"


def test_without_programs_a_test_is_skipped_when_it_starts_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess.Popen, "__init__", subprocess.Popen.__init__)  # put back afterwards
    config: Any = SimpleNamespace(getoption=lambda name: name == schedule.NO_PROGRAMS)
    schedule.pytest_collection_modifyitems(config, [])
    with pytest.raises(pytest.skip.Exception, match="starts another program"):
        subprocess.run(["true"], check=True)


def test_only_the_first_case_of_a_test_runs_over_tls_unless_it_is_marked() -> None:
    def case(test: str, way: str, value: str, *marks: str) -> Any:
        name = f"tests/test_x.py::{test}[{way}-{value}]"
        return SimpleNamespace(
            nodeid=name, callspec=SimpleNamespace(params={"client": way}), get_closest_marker=marks.__contains__
        )

    ways = ("in process", "over TLS")
    plain = [case("test_plain", way, value) for way in ways for value in "ab"]
    marked = [case("test_marked", way, value, "wire") for way in ways for value in "ab"]
    assert list(schedule._once_over_tls([*plain, *marked])) == [*plain[:3], *marked]


def test_slow_files_exist() -> None:
    assert [name for name in schedule.SLOW if not (ROOT / name).exists()] == []
