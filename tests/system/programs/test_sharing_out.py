"""How tests are shared out among processes."""

from pathlib import Path

import pytest

from tests import sharing_out

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def not_e2e(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("E2E", raising=False)


def test_the_tests_of_a_file_stay_together_as_they_share_servers() -> None:
    units = {sharing_out.unit_of(f"tests/apiserver/api/test_watching.py::test_{name}") for name in ("one", "two[x-y]")}
    assert units == {"tests/apiserver/api/test_watching.py"}


def test_each_release_of_kubectl_is_a_unit() -> None:
    file = "tests/conformance/test_kubectl_transcripts.py"
    tests = [f"{file}::test_it[{release}-{area}]" for release in ("1.27", "1.36") for area in ("get", "apply")]
    assert {sharing_out.unit_of(test) for test in tests} == {f"{file}[1.27]", f"{file}[1.36]"}


def test_what_shares_a_real_kube_apiserver_is_a_unit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("E2E", "1")
    assert sharing_out.unit_of("tests/crinit/test_chart.py::test_it") == "tests/crinit"


def test_slow_files_exist() -> None:
    assert [name for name in sharing_out.SLOW if not (ROOT / name).exists()] == []
