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
CODE = budgets.check.__code__


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Operations]:
    directory = tmp_path_factory.mktemp("budgets")
    fill(directory, OBJECTS)
    with serving(directory) as server:
        return measured(server)


@pytest.mark.skipif(budgets.PYTHON != MEASURED_WITH, reason=f"the budgets are for Python {MEASURED_WITH}")
@pytest.mark.filterwarnings("default::tests.system.performance.budgets.CheaperWarning")
@pytest.mark.parametrize("name", BUDGETS)
def test_a_path_stays_within_its_budget(name: str, found: dict[str, Operations]) -> None:
    budgets.check(name, found[name], BUDGETS[name])


def test_each_path_has_a_budget(found: dict[str, Operations]) -> None:
    assert list(found) == list(BUDGETS)


def test_a_path_above_its_budget_fails_with_the_functions_that_do_most_of_it() -> None:
    with pytest.raises(AssertionError, match="get takes 112 operations, 12% more than its budget of 100") as failed:
        budgets.check("get", Operations(Counter({CODE: 112})), 100)
    assert "112  " in str(failed.value)
    assert "budgets.py" in str(failed.value)


def test_a_path_far_below_its_budget_only_warns() -> None:
    with pytest.warns(budgets.CheaperWarning, match="get takes 82 operations, 18% less than its budget of 100"):
        budgets.check("get", Operations(Counter({CODE: 82})), 100)


@pytest.mark.parametrize("total", [86, 100, 109])
def test_a_small_difference_neither_fails_nor_warns(total: int) -> None:
    budgets.check("get", Operations(Counter({CODE: total})), 100)


def test_budgets_are_read_as_they_were_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(budgets, "FILE", tmp_path / "budgets.toml")
    budgets.write({"get": 1, "list as a table": 2})
    assert budgets.read() == (budgets.PYTHON, {"get": 1, "list as a table": 2})
