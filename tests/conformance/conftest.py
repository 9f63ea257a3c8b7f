"""Real servers for the recordings: one for each key, kept for the whole session."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tools import conformance
from tools.live_server import LiveServer, running

ServerFor = Callable[[str], LiveServer]


@pytest.fixture(scope="session")
def server_for(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerFor]:
    """Gives the server that belongs to a key, and starts it on first use."""
    servers: dict[str, LiveServer] = {}
    with ExitStack() as stack:

        def server_of(key: str) -> LiveServer:
            if key not in servers:
                directory = tmp_path_factory.mktemp(f"server-{key}")
                servers[key] = stack.enter_context(running(directory, flags=conformance.SERVED))
            return servers[key]

        yield server_of
