"""A cached head is read as httptools parses it, whatever is before and behind it."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterregistry.apiserver.http.parser import HeadCache, RequestParser
from clusterregistry.apiserver.http.request import HeaderNames
from clusterregistry.apiserver.http.request_body import IncomingRequest
from clusterregistry.apiserver.http.transport import ClientTransport

HOST = "Host: registry\r\n"
HEADERS = [
    HOST,
    f"{HOST}Accept: 100%d %b %\r\nContent-Length: 3\r\nX-Percent: %%s\r\n",
    f"{HOST}Accept: application/json\r\nX-Group: a\r\nX-Group: b\r\n",
    f"{HOST}Content-Length: 3\r\n",
    f"{HOST}Content-Length: 0\r\n",
    f"content-length:3\r\n{HOST}",
    f"{HOST}Content-Length: 03\r\n",
    f"{HOST}Content-Length: 3 \r\n",
    f"{HOST}Content-Length: +3\r\n",
    f"{HOST}Content-Length: 0x3\r\n",
    f"{HOST}Content-Length: 3\r\nContent-Length: 3\r\n",
    f"{HOST}X-Length: a\r\n Content-Length: 3\r\n",
    f"{HOST}X-Length: Content-Length: 3\r\nContent-Length: 4\r\n",
    f"{HOST}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n",
    f"{HOST}Transfer-Encoding: chunked\r\n",
    f"{HOST}Connection: close\r\n",
    f"{HOST}Connection: keep-alive\r\n",
    f"{HOST}Proxy-Connection: close\r\n",
    f"{HOST}Connection: Upgrade\r\nUpgrade: websocket\r\n",
    f"{HOST}Expect: 100-continue\r\nContent-Length: 3\r\n",
    "Host: registry\n",
    "Host: registry\nContent-Length: 3\n",
    "",
]
LINES = [
    "GET /a HTTP/1.1\r\n",
    "GET /b?watch=1&limit=%35 HTTP/1.1\r\n",
    "POST /a HTTP/1.1\r\n",
    "DELETE /a=b&c?d?e HTTP/1.1\r\n",
    "GET /a%2Fb HTTP/1.1\r\n",
    "GET /#part HTTP/1.1\r\n",
    "GET http://other/a HTTP/1.1\r\n",
    "GET /a HTTP/1.0\r\n",
    "GET /a\r\n",
    "HEAD /a HTTP/1.1\r\n",
    "NAME /a HTTP/1.1\r\n",
    "GET /a b HTTP/1.1\r\n",
]
ENDS = ["\r\n", "\r\nabc", "\r\nab", "\r\nabcd", "\r\n3\r\nabc\r\n0\r\n\r\n", "\r\n\r\n", "\n", "\nabc", ""]
METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]


class _NoCache(HeadCache[IncomingRequest]):
    __slots__ = ()

    def add(self, *_: Any) -> None:
        """Caches nothing, so that httptools parses everything."""


class _Counting(HeadCache[IncomingRequest]):
    """Counts hits."""

    __slots__ = ("hits",)

    def __init__(self) -> None:
        super().__init__(IncomingRequest)
        self.hits = 0

    def parse(self, data: bytes, transport: ClientTransport) -> IncomingRequest | None:
        found = super().parse(data, transport)
        self.hits += found is not None
        return found


def read(pieces: list[bytes], known: HeadCache[IncomingRequest] | None = None) -> list[tuple[Any, ...]]:
    """The result of parsing pieces of data, each request being answered before the next piece arrives."""
    parser = RequestParser(ClientTransport(asyncio.Transport()), IncomingRequest)
    if known is not None:
        parser._head_cache = known
    seen: list[tuple[Any, ...]] = []
    for piece in pieces:
        parser.feed(piece)
        while parser.requests:
            request = parser.requests.popleft()
            head = (request.method, request.path, request.query_string, request.headers, request._repeated)
            body = (b"".join(request._pieces), request.is_complete, request.is_broken)
            seen.append((*map(repr, head), *body, request.keep_alive, request.takes_chunks))
            request.headers.clear()
            parser.resume()
        seen.append((parser.refusal, parser.in_head, parser.between_messages))
    return seen


def parsed(pieces: list[bytes]) -> list[tuple[Any, ...]]:
    return read(pieces, _NoCache(IncomingRequest))


def hits(pieces: list[bytes]) -> int:
    known = _Counting()
    read(pieces, known)
    return known.hits


def whole(method: str, content: bytes, *headers: str, target: str = "/a") -> bytes:
    """A request with this body, and its length before the last header."""
    lines = [f"{method} {target} HTTP/1.1", "Host: registry", f"Content-Length: {len(content)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + content


@pytest.mark.parametrize("headers", HEADERS)
def test_a_repeated_request_is_read_as_httptools_parses_it(headers: str) -> None:
    """Alone or with another one, and with another URL."""
    for line, end in itertools.product(LINES, ENDS):
        rest = f"{headers}{end}".encode()
        message, other = line.encode() + rest, LINES[1].encode() + rest
        for pieces in ([message] * 3, [message, other, message], [message + other] * 2, [message + message, other]):
            assert read(pieces) == parsed(pieces)


@pytest.mark.parametrize("headers", HEADERS)
def test_a_request_after_cached_ones_is_read_as_httptools_parses_it(headers: str) -> None:
    """After requests with a body and without."""
    for end in ENDS:
        message = f"PUT /b HTTP/1.1\r\n{headers}{end}".encode()
        for before in (whole("PUT", b"abc"), f"PUT /a HTTP/1.1\r\n{HOST}\r\n".encode()):
            for pieces in ([before, message, before], [before, message + before], [before, before + message, message]):
                assert read(pieces) == parsed(pieces)


REQUESTS = st.builds(
    whole,
    st.sampled_from(METHODS),
    st.binary(max_size=12) | st.sampled_from([b"x" * 9, b"x" * 10, b"x" * 5000]),
    st.sampled_from(["Accept: a", "Accept: b"]),
    target=st.sampled_from(["/a", "/b?c=d"]),
)


@given(st.lists(REQUESTS, min_size=2, max_size=6))
def test_bodies_of_any_length_are_read_alike(requests: list[bytes]) -> None:
    assert read(requests) == parsed(requests)


@given(st.lists(REQUESTS, min_size=2, max_size=4), st.data())
def test_the_result_does_not_depend_on_the_pieces(requests: list[bytes], data: st.DataObject) -> None:
    pieces = list(_cut(b"".join(requests), data))
    assert read(pieces) == parsed(pieces)


@given(st.lists(REQUESTS, min_size=2, max_size=3), REQUESTS, st.data())
def test_bodies_of_wrong_lengths_are_read_alike(requests: list[bytes], wrong: bytes, data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(wrong)))
    for last in (wrong[:cut], wrong + wrong[:cut], wrong + b"\r\n" + wrong, wrong + b"x"):
        pieces = [*requests, last, *requests]
        assert read(pieces) == parsed(pieces)


@given(st.lists(st.sampled_from(LINES[:4]), min_size=2, max_size=4), st.sampled_from(HEADERS), st.data())
def test_odd_headers_may_be_in_any_pieces(lines: list[str], headers: str, data: st.DataObject) -> None:
    pieces = list(_cut("".join(f"{line}{headers}\r\n" for line in lines).encode(), data))
    assert read(pieces) == parsed(pieces)


def _cut(text: bytes, data: st.DataObject) -> Iterator[bytes]:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    return (text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True))


def test_a_request_that_has_begun_behind_a_whole_one_is_not_lost() -> None:
    request = f"{LINES[0]}{HOST}\r\n".encode()
    pieces = [request + request[:3], request[3:], request + request[:3], request[3:]]
    assert read(pieces) == parsed(pieces)


@pytest.mark.parametrize("last", ["Connection: close", "Proxy-Connection: close"])
def test_the_cache_is_cleared_after_a_last_request(last: str) -> None:
    """The parser takes nothing behind it."""
    known = f"{LINES[0]}{HOST}\r\n".encode()
    pieces = [known, f"{LINES[0]}{HOST}{last}\r\n\r\n".encode(), known]
    assert hits([known, known]) == 1
    assert hits(pieces) == 0
    assert read(pieces) == parsed(pieces)


@pytest.mark.parametrize("method", METHODS)
def test_each_method_has_a_cached_head_of_its_own(method: str) -> None:
    first, second = whole(method, b"abc"), whole(method, b"0123456789", target="/b?c=1")
    others = [whole(each, b"abc", f"X: {each}") for each in METHODS if each != method]
    assert hits([first, *others, second, *others]) == 1 + len(others)


def test_headers_with_percent_signs_are_cached() -> None:
    assert hits([whole("PUT", b"x" * number, "X: %d %(a)s %% %b") for number in range(1, 4)]) == 2


def test_heads_of_large_bodies_are_cached() -> None:
    assert hits([whole("PUT", b"x" * 5000), whole("PUT", b"y" * 60000), whole("PUT", b"z")]) == 2


KNOWN = b"POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nX: y\r\n\r\nabc"


@pytest.mark.parametrize(
    ("second", "body"),
    [
        (b"POST /b?c=1 HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nX: y\r\n\r\nabcd", b"abcd"),
        (b"POST /b HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nX: y\r\n\r\n", b""),
        (b"POST /b HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nX: y\r\n\r\nabc", None),
        (b"POST /b HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nX: y\r\n\r\nabc", None),
        (b"POST /b HTTP/1.1\r\nHost: a\r\nContent-Length: 03\r\nX: y\r\n\r\nabc", None),
        (b"POST /b HTTP/1.1\r\nHost: a\r\nContent-Length: 3 \r\nX: y\r\n\r\nabc", None),
        (b"POST /b HTTP/1.1\r\nHost: a\r\nContent-Length: +3\r\nX: y\r\n\r\nabc", None),
        (b"POST /b HTTP/1.1\r\nHost: a\r\nContent-Length: \r\nX: y\r\n\r\n", None),
        (b"POST /b HTTP/1.1\r\nHost: a\r\nContent-Length: \xb3\r\nX: y\r\n\r\nabc", None),
        (b"POST /b HTTP/1.1\r\nHost: a\r\nContent-Length: 3\nX: y\r\n\r\nabc", None),
        (b"POST /b HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nX: z\r\n\r\nabc", None),
        (b"POST /b HTTP/1.1\r\nHost: b\r\nContent-Length: 3\r\nX: y\r\n\r\nabc", None),
        (b"POST /b HTTP/1.1\r\nHost: a\r\nContent-length: 3\r\nX: y\r\n\r\nabc", None),
        (b"POST /b HTTP/1.1\r\nA: b\r\nHost: a\r\nContent-Length: 3\r\nX: y\r\n\r\nabc", None),
        (b"POST /b HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nX: y\r\nA: b\r\n\r\nabc", None),
        (b"POST /b HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nX: y", None),
        (b"POST /b HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\nX: y\r\n\r\n", None),
        (b"POST /b HTTP/1.0\r\nHost: a\r\nContent-Length: 3\r\nX: y\r\n\r\nabc", None),
        (b"POST /b#c HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nX: y\r\n\r\nabc", None),
        (b"POST /" + b"b" * 1025 + b" HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nX: y\r\n\r\nabc", None),
        (b"PUT /b HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nX: y\r\n\r\nabc", None),
        (b"POST /b HTTP/1.1\r\nHost: a\r\nX: y\r\n\r\n", None),
        (KNOWN + KNOWN, None),
        (KNOWN[10:], None),
    ],
)
def test_only_the_same_headers_and_a_whole_body_are_a_hit(second: bytes, body: bytes | None) -> None:
    wire = ClientTransport(asyncio.Transport())
    known, parser = HeadCache(IncomingRequest), RequestParser(wire, IncomingRequest)
    assert known.parse(second, wire) is None
    parser.feed(KNOWN)
    known.add(KNOWN, parser.requests[0])
    found = known.parse(second, wire)
    assert (found and b"".join(found._pieces)) == body


@pytest.mark.parametrize(
    "lines",
    [
        "Content-Length: 3 \r\n",
        "X: a\r\n Content-Length: 3\r\nContent-Length: 3\r\n",
        "Expect: 100-continue\r\nContent-Length: 3\r\n",
        "Connection: keep-alive\r\nContent-Length: 3\r\n",
        "Host: registry\nContent-Length: 3\r\n",
        "Content-Length : 3\r\n",
        f"X: {'x' * 4096}\r\nContent-Length: 3\r\n",
    ],
)
def test_other_than_plain_heads_are_never_cached(lines: str) -> None:
    assert hits([f"POST /a HTTP/1.1\r\n{lines}\r\nabc".encode()] * 3) == 0


@pytest.mark.parametrize(
    "lines",
    [
        b"Host: a\nContent-Length: 3\r\n",
        b"Host: a\nX: b\r\nContent-Length: 3\r\n",
        b"Host: a\r\n b\r\nContent-Length: 3\r\n",
        b"Host: a\r\nContent-Length: 4\r\n",
        b"Content-Length: 3\r\n",
    ],
)
def test_lines_that_httptools_read_differently_are_not_cached(lines: bytes) -> None:
    wire, known = ClientTransport(asyncio.Transport()), HeadCache(IncomingRequest)
    data = b"POST /a HTTP/1.1\r\n" + lines + b"\r\nabc"
    known.add(data, IncomingRequest(wire, "POST", "/a", b"", {"host": "a", "content-length": "3"}, [], b"abc"))
    assert not known._heads


def test_a_repeated_length_is_not_cached() -> None:
    wire, known = ClientTransport(asyncio.Transport()), HeadCache(IncomingRequest)
    data = b"POST /a HTTP/1.1\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc"
    known.add(
        data, IncomingRequest(wire, "POST", "/a", b"", {"content-length": "3"}, [("content-length", "3")], b"abc")
    )
    assert not known._heads


def test_the_length_of_another_header_is_not_taken() -> None:
    def request(other: int, content: bytes) -> bytes:
        return f"POST /a HTTP/1.1\r\nX-Content-Length: {other}\r\nContent-Length: 3\r\n\r\n".encode() + content

    pieces = [request(3, b"abc"), request(5, b"abcde")]
    assert hits(pieces) == 0
    assert read(pieces) == parsed(pieces)


def test_a_dropped_header_is_back_in_the_next_request() -> None:
    request = f"{LINES[0]}{HOST}X-Group: a\r\nX-Group: b\r\n\r\n".encode()
    parser = RequestParser(ClientTransport(asyncio.Transport()), IncomingRequest)
    for _ in range(3):
        parser.feed(request)
        found = parser.requests.popleft()
        assert (found.header("host"), found.header_values("x-group")) == ("registry", ["a", "b"])
        found.drop_headers(HeaderNames(["host", "x-group"]))
        assert (found.header("host"), found.header_values("x-group")) == ("", ())


def test_after_many_misses_nothing_is_cached() -> None:
    same = [whole("PUT", b"abc")] * 2
    numbered = [whole("PUT", b"abc", f"Audit-Id: {number}") for number in range(30)]
    assert hits([*numbered[:14], *same]) == 1
    assert hits([*numbered, *same]) == 0
    assert hits([each for number in numbered for each in (number, number)]) == len(numbered)
