"""One server for the tests of a file that only use it, and the clients that they start."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.system.clients import go_clients, servers
from tests.system.clients.client_process import ClientProcess
from tests.system.clients.servers import Server


@pytest.fixture(scope="session", autouse=True)
def _wanted() -> None:
    if not os.environ.get(servers.WANTED):
        pytest.skip("public clients are run only by `make clients`")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Every client is understood: at the end no request was answered as if it had been a mistake."""
    with servers.server(tmp_path_factory.mktemp("server")) as started:
        yield started
        assert started.failed_requests() == []


@pytest.fixture(params=go_clients.RELEASES)
def release(request: pytest.FixtureRequest) -> str:
    """Each release of client-go in turn."""
    chosen: str = request.param
    return chosen


StartClient = Callable[..., ClientProcess]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[StartClient]:
    """Starts a client in Go: ``start("0.36", "elect", kubeconfig, "--name=a")``. All end with the test."""
    with ExitStack() as stack:

        def start_one(release: str, command: str, kubeconfig: Path, *flags: str) -> ClientProcess:
            arguments = [str(go_clients.built(release)), command, f"--kubeconfig={kubeconfig}", *flags]
            return stack.enter_context(ClientProcess(arguments, log=tmp_path / f"{command}.log"))

        yield start_one
