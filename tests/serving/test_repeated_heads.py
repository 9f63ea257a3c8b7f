"""A head that was seen before is taken for what the parser takes it for, whatever comes before and behind it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterregistry.serving.http.reading import RequestReader
from clusterregistry.serving.http.repeating import KnownHead
from clusterregistry.serving.http.wire import Wire

HOST = "Host: registry\r\n"
HEADERS = [
    HOST,
    f"{HOST}Accept: application/json\r\nX-Group: a\r\nX-Group: b\r\n",
    f"{HOST}Content-Length: 3\r\n",
    f"{HOST}Content-Length: 0\r\n",
    f"{HOST}Transfer-Encoding: chunked\r\n",
    f"{HOST}Connection: close\r\n",
    f"{HOST}Connection: keep-alive\r\n",
    f"{HOST}Connection: Upgrade\r\nUpgrade: websocket\r\n",
    f"{HOST}Expect: 100-continue\r\n",
    "Host: registry\n",
    "",
]
LINES = [
    "GET /a HTTP/1.1\r\n",
    "GET /b?watch=1&limit=%35 HTTP/1.1\r\n",
    "GET /a%2Fb HTTP/1.1\r\n",
    "GET /#part HTTP/1.1\r\n",
    "GET http://other/a HTTP/1.1\r\n",
    "GET /a HTTP/1.0\r\n",
    "GET /a\r\n",
    "POST /a HTTP/1.1\r\n",
    "HEAD /a HTTP/1.1\r\n",
    "NAME /a HTTP/1.1\r\n",
    "GET /a b HTTP/1.1\r\n",
]
ENDS = ["\r\n", "\r\nabc", "\r\n3\r\nabc\r\n0\r\n\r\n", "\r\n\r\n", "\n", ""]


class _Forgetful(KnownHead):
    __slots__ = ()

    def learn(self, *_: Any) -> None:
        """Nothing, so that everything is parsed."""


def read(pieces: list[bytes], *, forgetful: bool) -> list[tuple[Any, ...]]:
    """What a reader makes of pieces of data, each request being answered before the next piece comes."""
    reader = RequestReader(Wire(asyncio.Transport()))
    if forgetful:
        reader._known = _Forgetful()
    seen: list[tuple[Any, ...]] = []
    for piece in pieces:
        reader.feed(piece)
        while reader.requests:
            request = reader.requests.popleft()
            head = (request.method, request.path, request.query_string, request._headers, request._repeated)
            body = (list(request._pieces), request.complete, request.broken)
            seen.append((*head, *body, request.keep_alive, request.takes_chunks))
            request._headers.clear()
            reader.go_on()
        seen.append((reader.refusal, reader.in_head, reader.between_messages))
    return seen


REST = [f"{headers}{end}".encode() for headers in HEADERS for end in ENDS]


@pytest.mark.parametrize("rest", REST)
def test_what_is_known_is_read_as_it_was_parsed(rest: bytes) -> None:
    """Whatever comes twice, alone or with another one, and with another URL the third time."""
    for line in LINES:
        message, other = line.encode() + rest, LINES[1].encode() + rest
        for pieces in ([message] * 3, [message, other, message], [message + other] * 2, [message + message, other]):
            assert read(pieces, forgetful=False) == read(pieces, forgetful=True)


@given(st.lists(st.sampled_from(LINES[:2]), min_size=2, max_size=4), st.sampled_from(HEADERS), st.data())
def test_pieces_may_end_anywhere(lines: list[str], headers: str, data: st.DataObject) -> None:
    text = "".join(f"{line}{headers}\r\n" for line in lines).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    pieces = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert read(pieces, forgetful=False) == read(pieces, forgetful=True)


def test_a_request_that_has_begun_behind_a_whole_one_is_not_lost() -> None:
    whole = f"{LINES[0]}{HOST}\r\n".encode()
    pieces = [whole + whole[:3], whole[3:], whole + whole[:3], whole[3:]]
    assert read(pieces, forgetful=False) == read(pieces, forgetful=True)


@pytest.mark.parametrize(
    ("second", "url"),
    [
        (b"GET /b?c=1 HTTP/1.1\r\nHost: a\r\n\r\n", b"/b?c=1"),
        (b"GET /b HTTP/1.1\r\nHost: b\r\n\r\n", None),
        (b"GET /b HTTP/1.1\r\nX: y\r\nHost: a\r\n\r\n", None),
        (b"GET /b HTTP/1.0\r\nHost: a\r\n\r\n", None),
        (b"GET /b#c HTTP/1.1\r\nHost: a\r\n\r\n", None),
        (b"DELETE /b HTTP/1.1\r\nHost: a\r\n\r\n", None),
        (b"GET /b HTTP/1.1\r\nHost: a\r\n\r\nGET /c HTTP/1.1\r\nHost: a\r\n\r\n", None),
        (b"Host: a\r\n\r\n", None),
    ],
)
def test_only_the_same_headers_are_known(second: bytes, url: bytes | None) -> None:
    known = KnownHead()
    assert known.url_in(second) is None
    known.learn(b"GET /a HTTP/1.1\r\nHost: a\r\n\r\n", {b"host": b"a"}, [])
    assert known.url_in(second) == url


def test_who_drops_a_header_drops_it_once() -> None:
    known = KnownHead()
    known.learn(b"GET /a HTTP/1.1\r\nHost: a\r\n\r\n", {b"host": b"a"}, [(b"x", b"y")])
    for _ in range(2):
        headers, repeated = known.headers()
        assert (headers.pop(b"host"), repeated.pop()) == (b"a", (b"x", b"y"))
