"""Servers with some clusters, and with many: they take a moment to fill."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.system.performance.servers import CountedServer, fill, serving

ServerWith = Callable[[int], CountedServer]


@pytest.fixture(scope="package")
def server_with(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerWith]:
    """Gives a server with that many clusters, for tests that only read."""
    servers: dict[int, CountedServer] = {}
    with ExitStack() as stack:

        def server_of(count: int) -> CountedServer:
            if count not in servers:
                directory = tmp_path_factory.mktemp(f"{count}-clusters")
                fill(directory, count)
                servers[count] = stack.enter_context(serving(directory))
            return servers[count]

        yield server_of
