"""What is no HTTP, and what is more of it than usual."""

from __future__ import annotations

import contextlib
import ssl

import pytest

from tests.apiserver.api.clients import ADMIN_TOKEN
from tests.apiserver.api.objects import CLUSTERS
from tests.apiserver.server.programs import Program

GET = f"GET {CLUSTERS}?limit=1 HTTP/1.1\r\nHost: registry\r\nAuthorization: Bearer {ADMIN_TOKEN}\r\n\r\n".encode()


def everything(connection: ssl.SSLSocket, *, seconds: float = 5.0) -> bytes:
    """All that comes until the server closes, or the time is up."""
    connection.settimeout(seconds)
    received = b""
    try:
        while piece := connection.recv(65536):
            received += piece
    except (TimeoutError, ConnectionResetError, ssl.SSLError):
        return received
    return received


def answered(program: Program, sent: bytes) -> bytes:
    with program.socket() as connection:
        connection.sendall(sent)
        return everything(connection, seconds=2)


@pytest.mark.parametrize(
    "sent",
    [
        b"nonsense\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /\r\n\r\n",
        b"GET  / HTTP/1.1\r\n\r\n",
        b"\x00\x01\x02\x03\r\n\r\n",
        b"\r\n\r\n\r\nGET nothing\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost registry\r\n\r\n",
        b"GET / HTTP/1.1\r\n: empty\r\n\r\n",
        b"GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: nonsense\r\nContent-Length: 1\r\n\r\nx",
        b"GET /\x01 HTTP/1.1\r\n\r\n",
        b"G\xffT / HTTP/1.1\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\x16\x03\x01\x00\xa5\x01\x00",
    ],
    ids=repr,
)
def test_what_is_no_request_is_refused_and_the_connection_closed(program: Program, sent: bytes) -> None:
    received = answered(program, sent)
    assert received[:12] in (b"", *(b"HTTP/1.1 %d" % status for status in (400, 403, 404, 405, 413, 505)))
    assert b" 500 " not in received[:20]
    with program.client() as client:
        assert client.get("/healthz").status == 200


@pytest.mark.parametrize(
    "head",
    [
        b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Large: " + b"x" * (1024 * 1024 + 4096) + b"\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: x\r\n" + b"X-Many: 0123456789abcdef\r\n" * 60_000 + b"\r\n",
    ],
    ids=["one large header", "many headers"],
)
def test_headers_above_a_mebibyte_are_too_large(program: Program, head: bytes) -> None:
    with program.socket() as connection:
        with contextlib.suppress(OSError):  # the server need not take all of it
            connection.sendall(head)
        received = everything(connection)
    assert received[:12] in (b"HTTP/1.1 431", b"")


def test_headers_that_never_end_do_not_pile_up(program: Program) -> None:
    before = program.resident_bytes()
    with program.socket() as connection:
        with contextlib.suppress(OSError):  # the server need not take all of it
            connection.sendall(b"GET /healthz HTTP/1.1\r\nX-Endless: ")
            for _ in range(64):
                connection.sendall(b"x" * 1024 * 1024)
        everything(connection, seconds=1)
    assert program.resident_bytes() - before < 32 * 1024 * 1024


def test_large_headers_below_the_limit_are_fine(program: Program) -> None:
    with program.client() as client:
        assert client.get("/healthz", headers={"X-Large": "x" * 500_000}).status == 200


@pytest.mark.parametrize("cut", [1, 4, 10, 40, len(GET) - 2])
def test_a_request_may_come_in_pieces(program: Program, cut: int) -> None:
    with program.socket() as connection:
        connection.sendall(GET[:cut])
        connection.sendall(GET[cut:])
        assert connection.recv(12) == b"HTTP/1.1 200"


def test_an_unknown_method_may_come_in_pieces(program: Program) -> None:
    sent = GET.replace(b"GET", b"BREW", 1)
    for cut in (1, 3, 4, 5, 6):
        with program.socket() as connection:
            connection.sendall(sent[:cut])
            connection.sendall(sent[cut:])
            assert connection.recv(12) in (b"HTTP/1.1 405", b"HTTP/1.1 400")


def test_a_connection_serves_one_request_after_the_other(program: Program) -> None:
    with program.socket() as connection:
        for _ in range(5):
            connection.sendall(GET)
            received = b""
            while b'"kind":"ClusterList"' not in received:
                received += connection.recv(65536)
            assert received.startswith(b"HTTP/1.1 200")


def test_requests_sent_ahead_are_answered_in_their_order(program: Program) -> None:
    paths = ["/healthz", "/version", "/nothing", "/livez", CLUSTERS, "/readyz"]
    with program.socket() as connection:
        connection.sendall(
            b"".join(
                f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {ADMIN_TOKEN}\r\n"
                f"{'Connection: close' if path == '/readyz' else 'X: y'}\r\n\r\n".encode()
                for path in paths
            )
        )
        received = everything(connection)
    statuses = [piece[:3] for piece in received.split(b"HTTP/1.1 ")[1:]]
    assert statuses == [b"200", b"200", b"404", b"200", b"200", b"200"]
    assert received.index(b"gitVersion") < received.index(b"page not found") < received.index(b"ClusterList")


def test_a_request_with_a_body_may_be_followed_at_once(program: Program) -> None:
    body = b"not json"
    first = (
        f"POST {CLUSTERS} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {ADMIN_TOKEN}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    ).encode() + body
    with program.socket() as connection:
        connection.sendall(first + GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        received = everything(connection)
    assert [piece[:3] for piece in received.split(b"HTTP/1.1 ")[1:]] == [b"400", b"200"]


def test_who_asks_to_close_is_closed(program: Program) -> None:
    received = answered(program, GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
    assert received.startswith(b"HTTP/1.1 200")
    assert b"connection: close" in received.lower()


def test_an_older_version_of_http(program: Program) -> None:
    received = answered(program, GET.replace(b"HTTP/1.1", b"HTTP/1.0"))
    assert received.split(b" ", 2)[1] == b"200"
    assert received.endswith(b"}\n")


def test_the_server_does_not_boast(program: Program) -> None:
    with program.client() as client:
        assert client.get("/healthz").header("Server") is None


def test_the_log_shows_no_fault_of_ours(program: Program) -> None:
    assert "Traceback" not in program.logged()
