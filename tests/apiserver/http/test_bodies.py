"""Bodies that are too large, too slow or never complete."""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.apiserver.api.clients import ADMIN_TOKEN, Client
from tests.apiserver.api.objects import CLUSTERS, cluster, path_of
from tests.apiserver.server.programs import Program

LIMIT = 3 * 1024 * 1024
MEBIBYTE = 1024 * 1024


def head(method: str = "POST", target: str = CLUSTERS, *headers: str) -> bytes:
    lines = [
        f"{method} {target} HTTP/1.1",
        "Host: registry",
        f"Authorization: Bearer {ADMIN_TOKEN}",
        "Content-Type: application/json",
        *headers,
    ]
    return "\r\n".join([*lines, "", ""]).encode()


def status_of(connection: ssl.SSLSocket) -> int:
    """The status of the answer that comes next."""
    received = b""
    while b"\r\n" not in received:
        piece = connection.recv(4096)
        assert piece, "the connection was closed without an answer"
        received += piece
    return int(received.split(b" ", 2)[1])


def padded(size: int) -> bytes:
    """A valid object in so many bytes."""
    text = json.dumps(cluster("a")).encode()
    return text + b" " * (size - len(text))


def test_a_body_may_be_as_large_as_the_limit(client: Client) -> None:
    client.post(CLUSTERS, padded(LIMIT)).expect(201)


def test_one_byte_more_is_refused(client: Client) -> None:
    refused = client.post(CLUSTERS, padded(LIMIT + 1)).refused(413, "RequestEntityTooLarge")
    assert refused["message"] == "Request entity too large: limit is 3145728"
    client.get(path_of("a")).refused(404, "NotFound")


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE"])
def test_the_limit_holds_for_every_verb(client: Client, method: str) -> None:
    client.post(CLUSTERS, cluster("a")).expect(201)
    content_type = "application/merge-patch+json" if method == "PATCH" else "application/json"
    headers = {"Content-Type": content_type}
    client.request(method, path_of("a"), body=padded(LIMIT + 1), headers=headers).refused(413, "RequestEntityTooLarge")
    client.get(path_of("a")).expect(200)


def chunk(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def test_a_body_in_chunks(program: Program) -> None:
    with program.socket() as connection:
        connection.sendall(head("POST", CLUSTERS + "?dryRun=All", "Transfer-Encoding: chunked"))
        body = json.dumps(cluster("a")).encode()
        for start in range(0, len(body), 7):
            connection.sendall(chunk(body[start : start + 7]))
        connection.sendall(b"0\r\n\r\n")
        assert status_of(connection) == 201


def test_the_limit_holds_for_a_body_of_unknown_length_and_memory_stays_bounded(program: Program) -> None:
    before = program.resident_bytes()
    piece = chunk(b" " * MEBIBYTE)
    with program.socket() as connection:
        connection.sendall(head("POST", CLUSTERS, "Transfer-Encoding: chunked"))
        try:
            for _ in range(96):
                connection.sendall(piece)
        except OSError:  # the server may close on who does not stop
            pass
        else:
            assert status_of(connection) == 413
    assert program.resident_bytes() - before < 48 * MEBIBYTE


def test_a_body_of_announced_length_is_refused_before_it_is_sent(program: Program) -> None:
    with program.socket() as connection:
        connection.sendall(head("POST", CLUSTERS, f"Content-Length: {10**12}"))
        assert status_of(connection) == 413


def test_after_a_refusal_the_connection_is_in_order_or_closed(program: Program) -> None:
    """A client that goes on must never get the answer to something else."""
    with program.socket() as connection:
        connection.sendall(head("POST", CLUSTERS, f"Content-Length: {LIMIT + 1}") + b" " * (LIMIT + 1))
        assert status_of(connection) == 413
        try:
            connection.sendall(head("GET", "/healthz"))
            received = connection.recv(65536)
        except OSError:
            return
        assert not received or b"HTTP/1.1 200" in received + _rest(connection)


def _rest(connection: ssl.SSLSocket) -> bytes:
    connection.settimeout(1)
    try:
        return connection.recv(65536)
    except OSError:
        return b""


def test_a_client_may_ask_before_it_sends(program: Program) -> None:
    body = json.dumps(cluster("a")).encode()
    with program.socket() as connection:
        announced = ("Expect: 100-continue", f"Content-Length: {len(body)}")
        connection.sendall(head("POST", CLUSTERS + "?dryRun=All", *announced))
        assert status_of(connection) == 100
        connection.sendall(body)
        assert status_of(connection) == 201


def test_uploads_that_are_abandoned_leave_nothing_behind(program: Program) -> None:
    with program.client() as client:
        client.get("/healthz")
        files, failures = program.descriptors(), metric(client, 'code="500"')
        for _ in range(40):
            with program.socket() as connection:
                connection.sendall(head("POST", CLUSTERS, "Content-Length: 100000") + b"{" * 1000)
        wait_until(lambda: program.descriptors() <= files + 2)
        wait_until(lambda: metric(client, 'apiserver_current_inflight_requests{request_kind="mutating"}') == 0)
        assert metric(client, 'code="500"') == failures, "a client that leaves is no failure of ours"
    assert "Traceback" not in program.logged()


def metric(client: Client, part: str) -> float:
    text = client.get("/metrics").body.decode()
    lines = [line for line in text.splitlines() if part in line and not line.startswith("#")]
    return sum(float(line.rpartition(" ")[2]) for line in lines)


def wait_until(holds: Callable[[], bool], seconds: float = 60.0) -> None:
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.02)


def test_an_upload_that_never_ends_is_ended(tmp_path: Path) -> None:
    with Program(tmp_path, "--request-timeout=1s") as program:
        with program.socket() as connection:
            connection.sendall(head("POST", CLUSTERS, "Content-Length: 100000") + b"{")
            assert status_of(connection) == 504
        with program.client() as client:
            client.get(CLUSTERS).expect(200)
            wait_until(lambda: metric(client, 'apiserver_current_inflight_requests{request_kind="mutating"}') == 0)


def test_many_slow_uploads_do_not_hold_up_others(program: Program) -> None:
    slow = [program.socket() for _ in range(30)]
    try:
        for connection in slow:
            connection.sendall(head("POST", CLUSTERS, "Content-Length: 1000") + b"{")
        with program.client() as client:
            for _ in range(20):
                client.get(CLUSTERS).expect(200)
    finally:
        for connection in slow:
            connection.close()
