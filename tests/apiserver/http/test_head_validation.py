"""Heads that httptools would accept and another server may read differently are refused, as by Go's server."""

from __future__ import annotations

import asyncio
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterregistry.apiserver.http.parser import RequestParser
from clusterregistry.apiserver.http.request_body import IncomingRequest
from clusterregistry.apiserver.http.transport import ClientTransport
from tests.apiserver.http.http_servers import get, path, serving

HOST = "Host: registry\r\n"
GOOD = f"GET /good HTTP/1.1\r\n{HOST}\r\n".encode()
BODY = "2\r\n{}\r\n0\r\n\r\n"

REFUSED = {
    "no Host": (400, "GET /bad HTTP/1.1\r\n\r\n"),
    "no Host beside the one in the URL": (400, "GET https://registry/bad HTTP/1.1\r\n\r\n"),
    "two equal Hosts": (400, f"GET /bad HTTP/1.1\r\n{HOST}{HOST}\r\n"),
    "two Hosts": (400, f"GET /bad HTTP/1.1\r\n{HOST}X: y\r\nhost: other\r\n\r\n"),
    "an empty Host and another one": (400, f"GET /bad HTTP/1.1\r\nHost:\r\n{HOST}\r\n"),
    "two Hosts in HTTP/1.0": (400, f"GET /bad HTTP/1.0\r\n{HOST}{HOST}\r\n"),
    "a Host with a space": (400, "GET /bad HTTP/1.1\r\nHost: a b\r\n\r\n"),
    "a Host with a path": (400, "GET /bad HTTP/1.1\r\nHost: a/b\r\n\r\n"),
    "a Host with a bracket": (400, "GET /bad HTTP/1.1\r\nHost: a<b\r\n\r\n"),
    "an invalid Host in HTTP/1.0": (400, "GET /bad HTTP/1.0\r\nHost: a?b\r\n\r\n"),
    "HTTP/2.0": (505, f"GET /bad HTTP/2.0\r\n{HOST}\r\n"),
    "HTTP/0.9": (505, f"GET /bad HTTP/0.9\r\n{HOST}\r\n"),
    "HTTP/1.2": (400, f"GET /bad HTTP/1.2\r\n{HOST}\r\n"),
    "no version": (505, f"GET /bad\r\n{HOST}\r\n"),
    "an encoding within chunks": (501, f"POST /bad HTTP/1.1\r\n{HOST}Transfer-Encoding: gzip, chunked\r\n\r\n{BODY}"),
    "an encoding, and chunks": (
        501,
        f"POST /bad HTTP/1.1\r\n{HOST}Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n{BODY}",
    ),
    "an unknown encoding": (501, f"POST /bad HTTP/1.1\r\n{HOST}Transfer-Encoding: xchunked\r\n\r\n{BODY}"),
    "chunks in HTTP/1.0": (400, f"POST /bad HTTP/1.0\r\n{HOST}Transfer-Encoding: chunked\r\n\r\n{BODY}"),
    "an expectation": (417, f"POST /bad HTTP/1.1\r\n{HOST}Expect: else\r\nContent-Length: 2\r\n\r\n{{}}"),
    "a further expectation": (417, f"GET /bad HTTP/1.1\r\n{HOST}Expect: 100-continue\r\nExpect: else\r\n\r\n"),
}
SERVED = {
    "an empty Host": b"GET /good HTTP/1.1\r\nHost:\r\n\r\n",
    "a Host with a port": b"GET /good HTTP/1.1\r\nHost: [::1]:8443\r\n\r\n",
    "a Host with spaces around": b"GET /good HTTP/1.1\r\nHost: \t registry \t \r\n\r\n",
    "all that a Host may have": b"GET /good HTTP/1.1\r\nHost: aZ09!$%&()*+,-.:;=@[]'_~\r\n\r\n",
    "empty lines before it": b"\r\n\r\n\r\nGET /good HTTP/1.1\r\nHost: x\r\n\r\n",
    "chunks": b"POST /good HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: Chunked \r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    "a trailer": b"POST /good HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nX: y z\r\n\r\n",
    "chunks of empty lines": b"POST /good HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"9\r\n\r\n\r\na  b\n\r\n0\r\n\r\n",
    "a body of empty lines": b"POST /good HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n\r\n\r\na  b\n",
    "an expectation": b"POST /good HTTP/1.1\r\nHost: x\r\nExpect: 100-Continue\r\nContent-Length: 2\r\n\r\n{}",
    "an empty expectation": b"GET /good HTTP/1.1\r\nHost: x\r\nExpect:\r\n\r\n",
}
BY_BYTE = "byte by byte"
TOGETHER = "in one piece"


def parse(*pieces: bytes) -> tuple[list[str], int | None]:
    """The paths of the parsed requests, each answered before the next piece arrives, and the refusal."""
    parser = RequestParser(ClientTransport(asyncio.Transport()), IncomingRequest)
    seen = []
    for piece in pieces:
        parser.feed(piece)
        while parser.requests:
            if not (parser.requests[0].is_complete or parser.requests[0].is_broken):
                break
            seen.append(parser.requests.popleft().path)
            parser.resume()
    return seen, parser.refusal


def cut(data: bytes, how: str) -> list[bytes]:
    return [data[at : at + 1] for at in range(len(data))] if how == BY_BYTE else [data]


@pytest.mark.parametrize(("status", "bad"), REFUSED.values(), ids=REFUSED)
def test_a_bad_head_is_refused_after_the_requests_before_it_and_nothing_behind_it_is_parsed(
    status: int, bad: str
) -> None:
    for how in (BY_BYTE, TOGETHER):
        assert parse(*cut(bad.encode() + GOOD, how)) == ([], status)
        before = list(SERVED.values())
        assert parse(*cut(b"".join(before) + GOOD + bad.encode() + GOOD, how)) == (
            ["/good"] * (len(before) + 1),
            status,
        )


@pytest.mark.parametrize("how", [BY_BYTE, TOGETHER])
@pytest.mark.parametrize("good", SERVED.values(), ids=SERVED)
def test_a_valid_head_is_served_again_and_again(good: bytes, how: str) -> None:
    assert parse(*cut(good * 3, how)) == (["/good"] * 3, None)
    assert parse(good, good, good) == (["/good"] * 3, None)


@pytest.mark.parametrize("how", [BY_BYTE, TOGETHER])
def test_http_1_0_needs_no_host(how: str) -> None:
    assert parse(*cut(b"GET /good HTTP/1.0\r\n\r\n", how)) == (["/good"], None)


@given(
    st.lists(st.sampled_from(list(SERVED.values())), max_size=4),
    st.sampled_from(list(REFUSED.values())),
    st.lists(st.integers(0, 600), max_size=8),
)
def test_the_result_does_not_depend_on_the_pieces(before: list[bytes], last: tuple[int, str], cuts: list[int]) -> None:
    data = b"".join((*before, last[1].encode(), GOOD))
    places = [0, *sorted(cuts), len(data)]
    pieces = [data[start:end] for start, end in itertools.pairwise(places)]
    assert parse(*pieces) == (["/good"] * len(before), last[0])


@pytest.mark.parametrize(
    ("host", "status"), [("Host: registry", None), ("Host: other", None), ("Host: a b", 400), ("X: y", 400)]
)
def test_a_cached_head_with_another_host_is_parsed_again(host: str, status: int | None) -> None:
    changed = f"GET /changed HTTP/1.1\r\n{host}\r\n\r\n".encode()
    served = [] if status else ["/changed", "/good"]
    assert parse(GOOD, GOOD, changed, GOOD) == (["/good", "/good", *served], status)


@pytest.mark.parametrize(("status", "bad"), REFUSED.values(), ids=REFUSED)
def test_a_bad_head_is_never_cached(status: int, bad: str) -> None:
    parser = RequestParser(ClientTransport(asyncio.Transport()), IncomingRequest)
    parser.feed(bad.encode())
    assert parser.refusal == status
    assert not parser._head_cache._heads


@pytest.mark.parametrize("name", ["no Host", "HTTP/2.0", "an unknown encoding", "an expectation"])
async def test_the_refusal_is_the_last_response_on_a_connection(name: str) -> None:
    status, bad = REFUSED[name]
    async with serving(path) as served, await served.connect() as client:
        client.send(get("/first") + bad + get("/hidden"))
        head, content = await client.answer()
        assert (head[:12], content) == (b"HTTP/1.1 200", b"/first")
        refusal = await client.everything()
    assert refusal.startswith(b"HTTP/1.1 %d " % status)
    assert b"connection: close" in refusal
    assert refusal.count(b"HTTP/1.1") == 1


async def test_the_response_names_a_refused_encoding() -> None:
    async with serving(path) as served, await served.connect() as client:
        client.send(REFUSED["an encoding within chunks"][1])
        assert (await client.everything()).endswith(b"\r\n\r\nUnsupported transfer encoding")


async def test_trailing_spaces_are_no_part_of_a_header() -> None:
    parser = RequestParser(ClientTransport(asyncio.Transport()), IncomingRequest)
    parser.feed(get("/", "X-Remote-User:  jane doe \t ").encode())
    assert parser.requests[0].header("x-remote-user") == "jane doe"
