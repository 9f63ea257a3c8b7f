"""docs/reference/version-skew.md has the results of `make skew` for the versions that are pinned now."""

from __future__ import annotations

import importlib
import inspect
import json
import os
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import tests.crinit
from tests.system import e2e
from tests.system.e2e import skew_outcomes
from tests.system.e2e.real_programs import KUBECTLS
from tools import programs, skew, skew_page
from tools.skew_page import Outcomes, Skew, Tried, cell

RUN = "run `make skew`"


def named_by_tests() -> dict[str, set[str]]:
    """The capabilities of each column, as the marks of the tests have them."""
    named: dict[str, set[str]] = {}
    for mark in marks():
        columns = [mark.kwargs["of"]] if mark.kwargs else [f"kubectl-{release}" for release in KUBECTLS]
        for column in columns:
            named.setdefault(column, set()).add(mark.args[0])
    return named


def marks() -> Iterator[pytest.Mark]:
    for package in (e2e, tests.crinit):
        for found in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            for _, function in inspect.getmembers(importlib.import_module(found.name), inspect.isfunction):
                yield from (mark for mark in getattr(function, "pytestmark", []) if mark.name == skew_outcomes.MARK)


def test_the_page_is_made_from_what_was_found_out() -> None:
    made = skew_page.markdown(Skew.read())
    assert skew_page.PAGE.read_text(encoding="utf-8") == made, "run `make docs-reference`"


def test_the_versions_are_those_that_are_pinned() -> None:
    found = {name: each.pinned for name, each in Skew.read().programs.items()}
    assert found == {name: skew.pin(name) for name in skew.program_names()}, RUN


def test_everything_that_the_tests_name_was_tried_on_every_host() -> None:
    tried = {
        host: {column: set(capabilities) for column, capabilities in columns.items()}
        for host, columns in Skew.read().outcomes.items()
    }
    assert tried == dict.fromkeys(skew.hosts(), named_by_tests()), RUN


def test_there_are_the_newest_host_and_two_older_ones() -> None:
    newest, *older = skew.hosts()
    assert newest == "1.36"
    assert len(older) >= 2


def test_make_e2e_fetches_the_kubectl_that_its_tests_run() -> None:
    makefile = (programs.VERSIONS_FILE.parent.parent / "Makefile").read_text()
    (line,) = re.findall(r"^E2E_KUBECTL := (.+)$", makefile, re.MULTILINE)
    assert line.split() == [f"kubectl-{release}" for release in KUBECTLS]


def test_a_cell_names_what_does_not_work() -> None:
    assert cell({"get": "passed", "explain": "passed"}) == "passed"
    assert cell({"get": "failed", "apply": "passed", "explain": "failed"}) == "does not work: get, explain"
    assert cell({"get": "failed", "explain": "skipped"}) == "does not work: get; not tried: explain"
    assert cell({}) == "not tried: anything"


def test_what_does_not_work_is_in_the_table_and_in_the_exit_status() -> None:
    def found(explain: str) -> Outcomes:
        return {"aggregated": {"tokens": "passed"}, "kubectl-1.36": {"get": "passed", "explain": explain}}

    versions = {"kube-apiserver-1.36": "1.36.4", "kube-apiserver-1.32": "1.32.2", "kubectl-1.36": "1.36.3"}
    tried = {name: Tried(pinned="p", version=version) for name, version in versions.items()}
    found_out = Skew(tried, {"1.36": found("passed"), "1.32": found("failed")})
    assert skew_page.table(found_out) == [
        "| kube-apiserver | kubectl 1.36.3 | aggregated server |",
        "| --- | --- | --- |",
        "| **1.36.4** | passed | passed |",
        "| **1.32.2** | does not work: explain | passed |",
    ]
    assert not found_out.everything_works()
    assert Skew(tried, {"1.36": found("passed")}).everything_works()


TESTS = """
import pytest

@pytest.fixture(params=["1.27", "1.36"])
def kubectl(request):
    return request.param

@pytest.fixture
def not_tidied():
    yield
    raise OSError

@pytest.mark.skew("explain")
def test_explain(kubectl):
    assert kubectl == "1.36"

@pytest.mark.skew("init", of="crinit")
def test_init(not_tidied):
    pass

@pytest.mark.skew("delete", of="crinit")
def test_delete():
    pytest.skip("no")

def test_another():
    pass
"""


def test_a_run_records_the_outcome_of_each_capability(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = skew\n")
    (tmp_path / "test_some.py").write_text(TESTS)
    root = programs.VERSIONS_FILE.parent.parent
    environ = {**os.environ, skew_outcomes.OUTCOMES: str(tmp_path / "outcomes.json"), "PYTHONPATH": str(root)}
    environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # others take seconds to load
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.system.e2e.skew_outcomes", "."]
    done = subprocess.run(command, check=False, cwd=tmp_path, env=environ, capture_output=True, text=True)
    assert done.returncode == 1, done
    assert json.loads((tmp_path / "outcomes.json").read_text()) == {
        "kubectl-1.27": {"explain": "failed"},
        "kubectl-1.36": {"explain": "passed"},
        "crinit": {"init": "failed", "delete": "skipped"},
    }
