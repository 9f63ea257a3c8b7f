"""Which tests run, in which order and in which process.

``make test`` runs all tests in several processes (``pytest -n 3``). A file is run by one process, as its tests share
servers; a few slow files are split into parts that share nothing. Slow files come first, so that no process is left
alone with one of them at the end.

``make test-fast`` (``pytest --no-programs``) runs what needs no other program: a test that starts a process is skipped
the moment it tries, and so is every test that shares a fixture with it.
"""

from __future__ import annotations

import gc
import os
import re
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

NO_PROGRAMS = "--no-programs"
STARTS_A_PROGRAM = "starts another program: `make test` runs it"

_SPLIT = re.compile(r"tests/conformance/(?:test_kubectl_transcripts|test_recorded_cases)\.py::.*\[([^]-]*)")
"""Split by the first parameter: a server belongs to each release of kubectl, and to all recorded cases."""

SLOW = (
    "tests/conformance/test_kubectl_transcripts.py",
    "tests/system/faults/test_crash_run.py",
    "tests/system/faults/test_fault_run.py",
    "tests/docs/test_guides.py",
    "tests/controllers/test_controller.py",
    "tests/conformance/test_recorded_cases.py",
    "tests/system/access/test_matrix.py",
    "tests/system/performance/test_growth.py",
)
"""Files that take the longest, the slowest first, according to `pytest --durations=50`."""


def unit_of(test: str) -> str:
    """The name of the unit that one process runs, one test after the other."""
    file = test.partition("::")[0]
    if os.environ.get("E2E"):  # one kube-apiserver for all tests of a directory is enough
        return file.rpartition("/")[0]
    split = _SPLIT.match(test)
    return f"{file}[{split[1]}]" if split else file


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(NO_PROGRAMS, action="store_true", help="skip tests that start another program")


def _skip(*_: object, **__: object) -> None:
    pytest.skip(STARTS_A_PROGRAM)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    config.option.loadscopereorder = False  # it takes files with many tests for slow ones
    scheduler = LoadScopeScheduling(config, log)
    scheduler._split_scope = unit_of
    return scheduler


def _once_over_tls(items: list[pytest.Item]) -> Iterator[pytest.Item]:
    """Leaves out all cases over TLS of a test but the first: its parameters do not concern the HTTP server.

    A test that does is marked with ``wire``.
    """
    seen = set()
    for item in items:
        callspec = getattr(item, "callspec", None)
        if callspec and callspec.params.get("client") == "over TLS" and not item.get_closest_marker("wire"):
            test = item.nodeid.partition("[")[0]
            if test in seen:
                continue
            seen.add(test)
        yield item


def pytest_collection_finish() -> None:
    """All modules and tests stay to the end: no collection of garbage, which tests ask for too, looks at them again."""
    gc.collect()
    gc.freeze()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Selects cases, and puts slow files first if several processes run the tests."""
    if config.getoption(NO_PROGRAMS):  # here, and not earlier: this is called only where tests run
        subprocess.Popen.__init__ = _skip  # type: ignore[method-assign]
    items[:] = _once_over_tls(items)
    if hasattr(config, "workerinput"):
        places = {file: place for place, file in enumerate(SLOW)}
        items.sort(key=lambda item: places.get(item.nodeid.partition("::")[0], len(SLOW)))
