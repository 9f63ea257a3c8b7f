"""What comes on one connection: nothing counts as a header that is none, and nothing grows without bound."""

from __future__ import annotations

import contextlib
import ssl

import pytest

from tests.apiserver.api.clients import ADMIN_TOKEN
from tests.apiserver.api.objects import CLUSTERS
from tests.apiserver.server.programs import Program

_MEBIBYTE = 1024 * 1024


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
        "GET /livez HTTP/1.1\r\nHost: x\r\n\r\nGET /livez HTTP/1.1\r\nX-A: ",
        "GET /livez HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-A: ",
    ],
    ids=["a head behind another request", "a trailer"],
)
def test_what_never_ends_is_cut_off(program: Program, beginning: str) -> None:
    before = program.resident_bytes()
    with program.socket(seconds=30) as connection:
        with contextlib.suppress(OSError):  # the server may have ended it already
            connection.sendall(beginning.encode())
            for _ in range(64):
                connection.sendall(b"x" * _MEBIBYTE)
        assert program.resident_bytes() - before < 16 * _MEBIBYTE
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
