"""A registry over TLS, and members behind it, as agents find them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from clusterregistry.client.sync import LoopThread
from tests.agent.sites import Site
from tests.apiserver.server.programs import Program
from tools.simulator import Simulator


@pytest.fixture(scope="session")
def simulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Simulator]:
    """Members in a thread of their own."""
    made = Simulator(12, directory=tmp_path_factory.mktemp("members"))
    loop = LoopThread("simulator")

    async def listen() -> None:
        await made.__aenter__()

    loop.run(listen)
    try:
        yield made
    finally:
        loop.run(made.close)
        loop.close()


@pytest.fixture
def site(program: Program, simulator: Simulator, tmp_path: Path) -> Iterator[Site]:
    """A directory for the files of one test, with the registry and a way to each member."""
    with Site(program, simulator, tmp_path) as made:
        yield made
