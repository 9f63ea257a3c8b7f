"""A pytest plugin that writes down how the tests marked ``skew`` ended, by column and capability.

``python -m tools.skew`` runs pytest with it, once for each host cluster.
"""

from __future__ import annotations

import json
import os
from collections.abc import Generator
from pathlib import Path

import pytest

MARK = "skew"
OUTCOMES = "E2E_OUTCOMES"
"""The environment's name for the file to write."""

_FROM_GOOD_TO_BAD = ("passed", "skipped", "failed")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Recorder(Path(os.environ[OUTCOMES])))


class Recorder:
    def __init__(self, file: Path) -> None:
        self._file = file
        self._outcomes: dict[str, dict[str, str]] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        mark = item.get_closest_marker(MARK)
        if mark is not None:
            self._note(mark.kwargs.get("of") or _kubectl(item), mark.args[0], report.outcome)
        return report

    def _note(self, column: str, capability: str, outcome: str) -> None:
        """A test has three phases, and a capability may have several tests: the worst of them counts."""
        noted = self._outcomes.setdefault(column, {})
        noted[capability] = max(noted.get(capability, "passed"), outcome, key=_FROM_GOOD_TO_BAD.index)

    def pytest_sessionfinish(self) -> None:
        self._file.write_text(json.dumps(self._outcomes))


def _kubectl(item: pytest.Item) -> str:
    """The column of a test that has kubectl as its parameter."""
    assert isinstance(item, pytest.Function)
    return f"kubectl-{item.callspec.params['kubectl']}"
