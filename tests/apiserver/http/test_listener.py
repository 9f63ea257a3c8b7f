"""More clients than connections or descriptors are allowed: others are served all the same."""

from __future__ import annotations

import contextlib
import resource
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Self

import pytest

from tests.apiserver.api.objects import CLUSTERS, cluster, names, path_of
from tests.apiserver.server.programs import Program

LIMIT = 20
RESERVED = 2
"""Of these for addresses with few connections."""

PATIENCE = 30.0


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    """A server with few connections."""
    with Program(tmp_path_factory.mktemp("small"), f"--max-connections={LIMIT}", "--v=4") as program:
        yield program


def connected(program: Program, source: str) -> socket.socket | None:
    """A connection that was used once and is idle now; None if the client is rejected."""
    plain = socket.create_connection(("127.0.0.1", program.port), timeout=PATIENCE, source_address=(source, 0))
    try:
        connection = program.trust().wrap_socket(plain, server_hostname="127.0.0.1")
        connection.sendall(b"GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert connection.recv(4096).startswith(b"HTTP/1.1 200 ")
    except OSError:
        plain.close()
        return None
    return connection


class Connections:
    """Connections from some addresses, all closed at the end."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._stack = contextlib.ExitStack()

    def add(self, source: str) -> bool:
        connection = connected(self._program, source)
        return connection is not None and bool(self._stack.enter_context(connection))

    def fill(self, source: str, count: int) -> None:
        """Opens so many connections; closed ones may take a moment to be released."""
        for _ in range(count):
            wait_until(lambda: self.add(source))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()


def wait_until(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.05)


def test_one_address_cannot_take_all_connections(small: Program) -> None:
    with Connections(small) as connections:
        connections.fill("127.0.0.1", LIMIT - RESERVED)
        assert not connections.add("127.0.0.1")
        assert connections.add("127.0.0.2")
    assert "see --max-connections" in small.logged()
    assert "Traceback" not in small.logged()


def test_a_client_above_the_limit_is_closed_at_once(small: Program) -> None:
    with Connections(small) as connections:
        connections.fill("127.0.0.1", LIMIT - RESERVED)
        connections.fill("127.0.0.2", RESERVED)
        before = small.descriptors()
        assert not any(connections.add("127.0.0.3") for _ in range(50))
        assert small.descriptors() <= before
    with Connections(small) as connections:  # all of them have left
        connections.fill("127.0.0.3", 1)


def test_without_descriptors_new_clients_are_closed(tmp_path: Path) -> None:
    """As with ``ulimit -n 24``: the server itself needs nearly all of them."""
    with Program(tmp_path) as program:
        pid = program.process.pid
        _, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (program.descriptors() + 3, hard))
        with Connections(program) as connections:
            accepted = [connections.add("127.0.0.1") for _ in range(30)]
            # Three are free, and a fourth if the probe for readiness still held one when they were counted.
            assert 0 < accepted.count(True) <= 4
            assert not any(accepted[4:])
        wait_until(lambda: "Too many open files, ulimit -n): rejected" in program.logged())
        with Connections(program) as connections:  # those that were served have left
            connections.fill("127.0.0.1", 1)
        assert "Traceback" not in program.logged()


def test_a_server_with_few_descriptors_keeps_some_for_itself(tmp_path: Path) -> None:
    Program(tmp_path).start().stop()
    # Room for a few connections: with room for one alone, the probe for readiness may still hold it.
    limited = ["sh", "-c", 'ulimit -n 28; exec "$@"', "sh"]
    with Program(tmp_path, command=limited) as program:
        assert "the process may have only 28 open files" in program.logged()
        with program.client() as client:
            client.post(CLUSTERS, cluster("small")).expect(201)
            # What is not in memory is read from the file.
            revision = client.get(CLUSTERS).expect(200)["metadata"]["resourceVersion"]
            client.delete(path_of("small")).expect(200)
            past = client.get(CLUSTERS, resourceVersion=revision, resourceVersionMatch="Exact").expect(200)
            assert names(past) == ["small"]


def test_without_a_spare_descriptor_the_listener_retries(tmp_path: Path) -> None:
    """Something else in the process may use them up, or an operator lower the limit while it runs."""
    with Program(tmp_path, f"--max-connections={10**10}") as program:
        assert f"connections are taken, not {10**10}" in program.logged()
        pid = program.process.pid
        soft, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        assert soft == hard
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (program.descriptors() + 5, hard))
        with contextlib.ExitStack() as stack:
            for _ in range(50):
                stack.enter_context(socket.create_connection(("127.0.0.1", program.port), timeout=PATIENCE))
            wait_until(lambda: "cannot accept connections" in program.logged())
            assert program.logged().count("cannot accept connections") < 20
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (soft, hard))
        with Connections(program) as connections:
            connections.fill("127.0.0.1", 1)
        assert "Traceback" not in program.logged()
