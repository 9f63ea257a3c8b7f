"""Malformed, large and pipelined requests to the whole server."""

from __future__ import annotations

import contextlib
import ssl

import pytest

from tests.apiserver.api.clients import ADMIN_TOKEN
from tests.apiserver.api.objects import CLUSTERS
from tests.apiserver.server.programs import Program

MEBIBYTE = 1024 * 1024
GET = f"GET {CLUSTERS}?limit=1 HTTP/1.1\r\nHost: registry\r\nAuthorization: Bearer {ADMIN_TOKEN}\r\n\r\n".encode()


def everything(connection: ssl.SSLSocket, *, seconds: float = 60.0) -> bytes:
    """All bytes until the server closes, or the time is up."""
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
def test_malformed_input_is_refused_and_the_connection_closed(program: Program, sent: bytes) -> None:
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


def test_pipelined_requests_are_answered_in_their_order(program: Program) -> None:
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


def test_there_is_no_server_header(program: Program) -> None:
    with program.client() as client:
        assert client.get("/healthz").header("Server") is None


def test_trailers_are_no_headers(program: Program) -> None:
    request = (
        f"GET {CLUSTERS} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        f"0\r\nAuthorization: Bearer {ADMIN_TOKEN}\r\n\r\n"
    )
    with program.socket() as connection:
        connection.sendall(request.encode())
        assert connection.recv(12) == b"HTTP/1.1 403"


@pytest.mark.parametrize(
    "beginning",
    [
        "GET /livez HTTP/1.1\r\nX-A: ",
        "GET /livez HTTP/1.1\r\nHost: x\r\n\r\nGET /livez HTTP/1.1\r\nX-A: ",
        "GET /livez HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-A: ",
    ],
    ids=["a head", "a head behind another request", "a trailer"],
)
def test_an_endless_head_or_trailer_is_cut_off(program: Program, beginning: str) -> None:
    before = program.resident_bytes()
    with program.socket(seconds=30) as connection:
        with contextlib.suppress(OSError):  # the server may have ended it already
            connection.sendall(beginning.encode())
            for _ in range(64):
                connection.sendall(b"x" * MEBIBYTE)
        assert program.resident_bytes() - before < 16 * MEBIBYTE
        assert ended(connection)


def ended(connection: ssl.SSLSocket) -> bool:
    """Reads to the end of the connection; False when none comes in time."""
    try:
        while connection.recv(65536):
            pass
    except TimeoutError:
        return False
    except OSError:
        return True
    return True


def test_nothing_of_this_is_an_error_in_the_log(program: Program) -> None:
    assert "Traceback" not in program.logged()
