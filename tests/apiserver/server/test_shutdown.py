"""A server that stops drops no request."""

from __future__ import annotations

import json
import signal
import socket
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.apiserver.api.objects import CLUSTERS, cluster, path_of
from tests.apiserver.http.test_bodies import head, status_of, wait_until
from tests.apiserver.server.programs import Program


def wait_until_stopping(program: Program) -> None:
    """Returns once the server has got the signal: of two that come too close, a process gets one."""
    wait_until(lambda: "stopping: " in program.logged())


def test_it_goes_on_while_load_balancers_look_elsewhere(tmp_path: Path) -> None:
    with Program(tmp_path, "--shutdown-delay-duration=5s") as program, program.client() as client:
        client.post(CLUSTERS, cluster("a")).expect(201)
        body = json.dumps(cluster("b")).encode()
        with program.socket() as under_way, client.watch(CLUSTERS) as watch:
            assert watch.next()["type"] == "ADDED"
            under_way.sendall(head("POST", CLUSTERS, f"Content-Length: {len(body)}") + body[:10])
            program.signal(signal.SIGTERM)
            wait_until(lambda: client.get("/readyz").status == 500)
            assert client.get("/livez").status == 200
            client.get(path_of("a")).expect(200)
            under_way.sendall(body[10:])
            assert status_of(under_way) == 201
            assert watch.next()["object"]["metadata"]["name"] == "b"
            assert watch.rest() == []
        assert program.wait() == 0
    assert "Traceback" not in program.logged()


def test_a_request_under_way_at_the_very_end_is_finished(tmp_path: Path) -> None:
    with Program(tmp_path) as program:
        body = json.dumps(cluster("b")).encode()
        with program.socket() as under_way:
            under_way.sendall(head("POST", CLUSTERS, f"Content-Length: {len(body)}") + body[:10])
            with program.client() as client:
                client.get(CLUSTERS).expect(200)
            program.signal()
            wait_until_stopping(program)
            under_way.sendall(body[10:])
            assert status_of(under_way) == 201
        assert program.wait() == 0
        with program.start().client() as client:
            client.get(path_of("b")).expect(200)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_both_signals_end_it_well(tmp_path: Path, number: signal.Signals) -> None:
    with Program(tmp_path) as program, program.client() as client, client.watch(CLUSTERS) as watch:
        program.signal(number)
        assert watch.rest() == []
        assert program.wait() == 0


def test_a_second_signal_does_not_wait_for_the_delay(tmp_path: Path) -> None:
    with Program(tmp_path, "--shutdown-delay-duration=10m") as program:
        program.signal()
        wait_until_stopping(program)
        program.signal()
        assert program.wait() == 0


def test_idle_connections_do_not_hold_it_up(tmp_path: Path) -> None:
    with Program(tmp_path) as program, ExitStack() as idle:
        for _ in range(5):
            idle.enter_context(program.socket())
        kept = idle.enter_context(program.client())
        assert kept.get("/healthz").status == 200
        program.signal()
        assert program.wait() == 0


def test_who_has_not_even_begun_to_talk_tls_does_not_hold_it_up(tmp_path: Path) -> None:
    with Program(tmp_path) as program, socket.create_connection(("127.0.0.1", program.port)) as silent:
        program.signal()
        assert program.wait() == 0
        assert silent.fileno() >= 0


def test_an_answered_client_that_says_no_goodbye_does_not_hold_it_up(tmp_path: Path) -> None:
    with Program(tmp_path) as program, program.socket() as under_way:
        body = json.dumps(cluster("b")).encode()
        under_way.sendall(head("POST", CLUSTERS, f"Content-Length: {len(body)}") + body[:10])
        with program.client() as client:
            client.get(CLUSTERS).expect(200)
        program.signal()
        wait_until_stopping(program)
        under_way.sendall(body[10:])
        assert status_of(under_way) == 201
        assert program.wait() == 0


def test_a_second_signal_does_not_wait_for_those_under_way(tmp_path: Path) -> None:
    with Program(tmp_path) as program, program.socket() as under_way:
        under_way.sendall(head("POST", CLUSTERS, "Content-Length: 100") + b"{")
        with program.client() as client:
            client.get(CLUSTERS).expect(200)
        program.signal()
        wait_until_stopping(program)
        assert program.process.poll() is None
        program.signal()
        assert program.wait() == 0
    assert "Traceback" not in program.logged()
