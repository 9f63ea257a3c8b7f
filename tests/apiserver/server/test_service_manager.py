"""A server that systemd has started tells it what it does: over a real socket, from the real program."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from clusterregistry.apiserver import service_manager
from tests.apiserver.api.objects import CLUSTERS
from tests.apiserver.server.programs import Program

SECONDS = 60.0


@contextmanager
def manager(address: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    """The socket of a manager, which the programs of this test are told to write to."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(address.replace("@", "\0", 1))
        listening.settimeout(SECONDS)
        monkeypatch.setenv("NOTIFY_SOCKET", address)
        yield listening


def next_message(listening: socket.socket) -> dict[str, str]:
    lines = listening.recv(4096).decode().splitlines()
    return dict(line.split("=", 1) for line in lines)


def message_with(listening: socket.socket, name: str) -> dict[str, str]:
    while True:
        message = next_message(listening)
        if name in message:
            return message


@pytest.mark.parametrize("address", ["{directory}/notify", "@clusterregistry-test-{pid}"])
def test_a_server_says_when_it_starts_serves_and_stops(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    address = address.format(directory=tmp_path, pid=os.getpid())
    with manager(address, monkeypatch) as listening, Program(tmp_path) as program:
        assert next_message(listening) == {
            "EXTEND_TIMEOUT_USEC": "60000000",
            "STATUS": "Starting: opening the storage",
        }
        assert next_message(listening) == {"READY": "1", "STATUS": f"Serving https://127.0.0.1:{program.port}"}
        assert program.stop() == 0
        assert next_message(listening) == {
            "STOPPING": "1",
            "EXTEND_TIMEOUT_USEC": "75000000",
            "STATUS": "Stopping: requests under way finish",
        }


def test_it_is_ready_when_it_says_so_and_stops_within_the_time_it_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Seconds in which a loaded machine makes a request: the server is asked while it waits.
    flags = ("--shutdown-delay-duration=5s", "--request-timeout=2s")
    with manager(f"{tmp_path}/notify", monkeypatch) as listening, Program(tmp_path, *flags) as program:
        message_with(listening, "READY")
        with program.client() as client:
            client.get(CLUSTERS).expect(200)
        program.signal(signal.SIGTERM)
        assert message_with(listening, "STOPPING")["EXTEND_TIMEOUT_USEC"] == "22000000"
        with program.client() as client:
            assert client.get("/readyz").status == 500
        assert program.wait() == 0


def test_signs_of_life_come_while_it_serves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WATCHDOG_USEC", "100000")
    with manager(f"{tmp_path}/notify", monkeypatch) as listening, Program(tmp_path):
        message_with(listening, "READY")
        assert [next_message(listening) for _ in range(3)] == [{"WATCHDOG": "1"}] * 3


def test_nothing_is_said_for_the_watchdog_of_another_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WATCHDOG_USEC", "100000")
    monkeypatch.setenv("WATCHDOG_PID", "1")
    with manager(f"{tmp_path}/notify", monkeypatch) as listening, Program(tmp_path) as program:
        message_with(listening, "READY")
        assert program.stop() == 0
        assert "STOPPING" in next_message(listening)


@pytest.mark.parametrize("address", ["{directory}/nothing-there", "vsock:2:1234", "/" + "long" * 50])
def test_a_manager_that_cannot_be_told_keeps_no_server_from_starting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", address.format(directory=tmp_path))
    with Program(tmp_path) as program:
        assert program.stop() == 0
    logged = [line for line in program.logged().splitlines() if "systemd" in line]
    assert len(logged) == 1
    assert "Traceback" not in program.logged()


@pytest.mark.parametrize(("usec", "seconds"), [("", 0), ("3000000", 3), ("-1", 0), ("soon", 0), ("9" * 5000, 0)])
def test_the_interval_of_the_watchdog_is_read_if_it_is_one(usec: str, seconds: float) -> None:
    environ = {"NOTIFY_SOCKET": "/run/notify", "WATCHDOG_USEC": usec, "PATH": "/bin"}
    assert service_manager.from_environment(environ).watchdog == seconds
    assert environ == {"PATH": "/bin"}  # children of the server are no business of systemd's
