"""Request smuggling: what a proxy takes for a body is never a request of its own."""

from __future__ import annotations

import pytest

from tests.apiserver.api.clients import ADMIN_TOKEN
from tests.apiserver.api.objects import CLUSTERS
from tests.system.attacks.raw import Raw

HIDDEN = f"GET {CLUSTERS} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {ADMIN_TOKEN}\r\n\r\n".encode()
"""A request in the place of a body, which must never be answered."""

SIZE = b"%x" % len(HIDDEN)

AMBIGUOUS = {
    "both lengths": b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "both lengths, the other way round": b"Transfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n",
    "two lengths": b"Content-Length: 0\r\nContent-Length: %d\r\n\r\n" % len(HIDDEN),
    "a list of lengths": b"Content-Length: 0, %d\r\n\r\n" % len(HIDDEN),
    "a signed length": b"Content-Length: +0\r\n\r\n",
    "a length in base 16": b"Content-Length: 0x0\r\n\r\n",
    "a length with a space": b"Content-Length : 0\r\n\r\n",
    "a length beyond all numbers": b"Content-Length: 18446744073709551616\r\n\r\n",
    "an encoding with a space": b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    "another encoding too": b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "two encodings": b"Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "two hosts": b"Host: y\r\n\r\n",
    "an unknown encoding": b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "chunked, then something else": b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    "chunked twice": b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
    "an encoding with a tab in front": b"Transfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n",
    "a folded header": b"X-A: b\r\n Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a bare carriage return": b"X-A: b\rTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a NUL in a header": b"X-A: b\x00c\r\n\r\n",
    "a negative chunk": b"Transfer-Encoding: chunked\r\n\r\n-1\r\n",
    "a chunk beyond all numbers": b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
    "a chunk in base 10 with a prefix": b"Transfer-Encoding: chunked\r\n\r\n0x0\r\n\r\n",
    "a chunk without its end": b"Transfer-Encoding: chunked\r\n\r\n1\r\nab0\r\n\r\n",
}


@pytest.mark.parametrize("rest", AMBIGUOUS.values(), ids=AMBIGUOUS)
def test_an_ambiguous_request_is_refused_and_nothing_behind_it_is_answered(raw: Raw, rest: bytes) -> None:
    reply = raw.send(b"POST /version HTTP/1.1\r\nHost: x\r\n" + rest + HIDDEN)
    assert reply.statuses
    assert set(reply.statuses) <= {400, 403, 501}, reply.received
    assert reply.statuses[-1] == 400 or b"connection: close" in reply.received.lower()
    assert not reply.shows_secret


WITHIN = {
    "a body": b"Content-Length: %d\r\n\r\n%b" % (len(HIDDEN), HIDDEN),
    "a chunk": b"Transfer-Encoding: chunked\r\n\r\n%b\r\n%b\r\n0\r\n\r\n" % (SIZE, HIDDEN),
    "a chunk's extension": b"Transfer-Encoding: chunked\r\n\r\n0;%b\r\n\r\n" % HIDDEN.split(b"\r\n")[0],
    "a trailer": b"Transfer-Encoding: chunked\r\n\r\n0\r\nX-A: %b\r\n\r\n" % HIDDEN.split(b"\r\n")[0],
    "a header": b"X-A: %b\r\n\r\n" % HIDDEN.replace(b"\r\n", b" "),
}


@pytest.mark.parametrize("rest", WITHIN.values(), ids=WITHIN)
def test_a_request_within_another_is_not_answered(raw: Raw, rest: bytes) -> None:
    for method in (b"GET", b"POST", b"DELETE", b"OPTIONS"):
        reply = raw.send(method + b" /version HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + rest)
        assert len(reply.statuses) == 1, reply.received
        assert not reply.shows_secret


def test_nothing_is_answered_after_a_change_of_protocol(raw: Raw) -> None:
    for protocol in (b"websocket", b"h2c", b"TLS/1.3"):
        upgrade = b"GET /version HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: %b\r\n\r\n" % protocol
        reply = raw.send(upgrade + HIDDEN)
        assert 101 not in reply.statuses
        assert not reply.shows_secret


def test_nothing_is_answered_behind_a_tunnel(raw: Raw) -> None:
    reply = raw.send(b"CONNECT registry:443 HTTP/1.1\r\nHost: x\r\n\r\n" + HIDDEN)
    assert not reply.shows_secret
