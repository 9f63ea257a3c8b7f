"""How tests are shared out when several processes run them: `make test`, or `pytest -n 3`.

A file is run by one process, as its tests share servers. Some take minutes and can be split: those in parts that
share nothing. Slow ones come first, so that no process is left alone with one of them at the end.
"""

from __future__ import annotations

import os
import re
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

_SPLIT = re.compile(r"tests/conformance/(?:test_kubectl_transcripts|test_recorded_cases)\.py::.*\[([^]-]*)")
"""Split by the first parameter: a server belongs to each release of kubectl, and to all recorded cases."""

SLOW = (
    "tests/conformance/test_kubectl_transcripts.py",
    "tests/system/faults/test_crashes.py",
    "tests/system/faults/test_strikes.py",
    "tests/docs/test_tutorial.py",
    "tests/conformance/test_recorded_cases.py",
    "tests/system/access/test_matrix.py",
    "tests/system/performance/test_growth.py",
)
"""Files that take the longest, the slowest first: `pytest --durations=50` tells."""


def unit_of(test: str) -> str:
    """What is run by one process, one test after the other."""
    file = test.partition("::")[0]
    if os.environ.get("E2E"):  # one kube-apiserver for all tests of a directory is enough
        return file.rpartition("/")[0]
    split = _SPLIT.match(test)
    return f"{file}[{split[1]}]" if split else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    config.option.loadscopereorder = False  # it takes files with many tests for slow ones
    scheduler = LoadScopeScheduling(config, log)
    scheduler._split_scope = unit_of
    return scheduler


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Slow files come first, if tests are shared out; else in the order in which a reader finds them."""
    if hasattr(config, "workerinput"):
        places = {file: place for place, file in enumerate(SLOW)}
        items.sort(key=lambda item: places.get(item.nodeid.partition("::")[0], len(SLOW)))
