"""No path through the server becomes longer by accident."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.system.performance import budgets
from tests.system.performance.counting import Operations
from tests.system.performance.paths import OBJECTS, measured
from tests.system.performance.servers import fill, serving

MEASURED_WITH, BUDGETS = budgets.read()
CODE = budgets.complaint.__code__


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Operations]:
    directory = tmp_path_factory.mktemp("budgets")
    fill(directory, OBJECTS)
    with serving(directory) as server:
        return measured(server)


@pytest.mark.skipif(budgets.PYTHON != MEASURED_WITH, reason=f"the budgets are for Python {MEASURED_WITH}")
@pytest.mark.parametrize("name", BUDGETS)
def test_a_path_takes_what_it_may_take_and_no_less(name: str, found: dict[str, Operations]) -> None:
    wrong = budgets.complaint(name, found[name], BUDGETS[name])
    assert not wrong, wrong


def test_each_path_has_a_budget(found: dict[str, Operations]) -> None:
    assert list(found) == list(BUDGETS)


def test_a_longer_path_is_told_with_the_functions_that_make_it_long() -> None:
    wrong = budgets.complaint("get", Operations(Counter({CODE: 112})), 100)
    assert "get takes 112 operations, 12% more than the 100" in wrong
    assert "112  " in wrong
    assert "complaint" in wrong
    assert "make budgets" in wrong


def test_a_much_shorter_path_is_to_be_kept() -> None:
    assert "18% less than the 100" in budgets.complaint("get", Operations(Counter({CODE: 82})), 100)


@pytest.mark.parametrize("total", [86, 100, 109])
def test_small_differences_are_nobodys_concern(total: int) -> None:
    assert budgets.complaint("get", Operations(Counter({CODE: total})), 100) == ""


def test_budgets_are_read_as_they_were_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(budgets, "FILE", tmp_path / "budgets.toml")
    budgets.write({"get": 1, "list as a table": 2})
    assert budgets.read() == (budgets.PYTHON, {"get": 1, "list as a table": 2})
