"""Servers for tests: one in process and one behind TLS for the whole session, and others on demand."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, settings

from tests.apiserver.api.clients import Client, empty
from tests.apiserver.api.in_process import InProcess, InProcessClient
from tests.apiserver.api.objects import CLUSTERS
from tests.apiserver.server.programs import Program
from tests.apiserver.storage.etcd_servers import BINARIES, CHOSEN, WHY_NOT
from tests.schedule import (
    pytest_addoption,
    pytest_collection_finish,
    pytest_collection_modifyitems,
    pytest_xdist_make_scheduler,
)
from tests.system.e2e.real_programs import NOT_BUILT
from tests.system.faults import disks

__all__ = [  # pytest finds them here
    "pytest_addoption",
    "pytest_collection_finish",
    "pytest_collection_modifyitems",
    "pytest_xdist_make_scheduler",
]

# How long an example takes says more about what else the machine does than about us.
settings.register_profile("without a clock", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("without a clock")

C = TypeVar("C", bound=Client)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Iterator[None]:
    """An engine that was not tested is told at the very end, where nobody can miss it."""
    yield
    skipped = [str(report.longrepr) for report in terminalreporter.stats.get("skipped", [])]
    if any(disks.WHY_NOT in reason for reason in skipped):
        terminalreporter.section("FAILING DISKS WERE NOT TESTED", red=True, bold=True)
        terminalreporter.line(f"A server on a disk that fails was skipped: {disks.WHY_NOT}.", red=True)
    if any(NOT_BUILT in reason for reason in skipped):
        terminalreporter.section("REAL CLUSTERS WERE NOT TESTED", red=True, bold=True)
        terminalreporter.line(f"Tests were skipped, since a program of Kubernetes {NOT_BUILT}.", red=True)
    if any(WHY_NOT in reason for reason in skipped):
        terminalreporter.section("ETCD WAS NOT TESTED", red=True, bold=True)
        terminalreporter.line(f"Everything over etcd was skipped: {WHY_NOT}.", red=True)
    elif CHOSEN:
        terminalreporter.line(f"etcd was that of {BINARIES}={CHOSEN}")


def pytest_sessionfinish() -> None:
    """Ends the etcd that tests share: processes that run a part of the tests end without ``atexit``."""
    if engine := sys.modules.get("tests.apiserver.storage.etcd_engine"):
        engine.SERVER.end()


@pytest.fixture(autouse=True)
def _logging_as_before() -> Iterator[None]:
    """A command that runs in this process sets up logging, on a standard error that only its test has."""
    root, ours = logging.getLogger(), logging.getLogger("clusterregistry")
    handlers, levels = root.handlers[:], (root.level, ours.level)
    yield
    root.handlers[:] = handlers
    root.setLevel(levels[0])
    ours.setLevel(levels[1])


@pytest.fixture(scope="session")
def in_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcess]:
    """The server without sockets."""
    with InProcess(tmp_path_factory.mktemp("in-process")).running() as server:
        yield server


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    """The real command, with its TLS."""
    with Program(tmp_path_factory.mktemp("program")) as started:
        yield started


@pytest.fixture(params=["in process", "over TLS"])
def client(request: pytest.FixtureRequest) -> Iterator[Client]:
    """An administrator's client of an empty registry, once without and once with sockets."""
    if request.param == "in process":
        yield from _used(request.getfixturevalue("in_process").client())
    else:
        with request.getfixturevalue("program").client() as over_tls:
            yield from _used(over_tls)


@pytest.fixture
def local(in_process: InProcess) -> Iterator[InProcessClient]:
    """The client in process only: for what needs the server's insides, or does not depend on the way."""
    yield from _used(in_process.client())


def _used(client: C) -> Iterator[C]:
    yield client
    empty(client, CLUSTERS)


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., InProcessClient]]:
    """Starts a server in process with flags of its own, and gives a client of it."""
    with ExitStack() as stack:

        def start(*flags: str) -> InProcessClient:
            return stack.enter_context(InProcess(tmp_path / "own", *flags).running()).client()

        yield start
