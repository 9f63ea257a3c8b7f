"""Heads that the parser would take and that another server may read in another way: they are refused, as Go does."""

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
    "a Host in HTTP/1.0 that can be none": (400, "GET /bad HTTP/1.0\r\nHost: a?b\r\n\r\n"),
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


def read(*pieces: bytes) -> tuple[list[str], int | None]:
    """The paths of the requests that a reader found, each answered before the next piece comes, and the refusal."""
    reader = RequestParser(ClientTransport(asyncio.Transport()), IncomingRequest)
    seen = []
    for piece in pieces:
        reader.feed(piece)
        while reader.requests:
            if not (reader.requests[0].is_complete or reader.requests[0].is_broken):
                break
            seen.append(reader.requests.popleft().path)
            reader.resume()
    return seen, reader.refusal


def cut(data: bytes, how: str) -> list[bytes]:
    return [data[at : at + 1] for at in range(len(data))] if how == BY_BYTE else [data]


@pytest.mark.parametrize("how", [BY_BYTE, TOGETHER])
@pytest.mark.parametrize(("status", "bad"), REFUSED.values(), ids=REFUSED)
def test_such_a_head_is_refused_and_nothing_behind_it_is_read(status: int, bad: str, how: str) -> None:
    assert read(*cut(bad.encode() + GOOD, how)) == ([], status)


@pytest.mark.parametrize("how", [BY_BYTE, TOGETHER])
@pytest.mark.parametrize("before", SERVED.values(), ids=SERVED)
@pytest.mark.parametrize(("status", "bad"), REFUSED.values(), ids=REFUSED)
def test_what_came_before_it_is_still_answered(status: int, bad: str, before: bytes, how: str) -> None:
    assert read(*cut(before + GOOD + before + bad.encode() + GOOD, how)) == (["/good"] * 3, status)


@pytest.mark.parametrize("how", [BY_BYTE, TOGETHER])
@pytest.mark.parametrize("good", SERVED.values(), ids=SERVED)
def test_what_is_clean_is_served_again_and_again(good: bytes, how: str) -> None:
    assert read(*cut(good * 3, how)) == (["/good"] * 3, None)
    assert read(good, good, good) == (["/good"] * 3, None)


@pytest.mark.parametrize("how", [BY_BYTE, TOGETHER])
def test_an_older_version_needs_no_host(how: str) -> None:
    assert read(*cut(b"GET /good HTTP/1.0\r\n\r\n", how)) == (["/good"], None)


@given(
    st.lists(st.sampled_from(list(SERVED.values())), max_size=4),
    st.sampled_from(list(REFUSED.values())),
    st.lists(st.integers(0, 600), max_size=8),
)
def test_it_does_not_matter_where_pieces_end(before: list[bytes], last: tuple[int, str], cuts: list[int]) -> None:
    data = b"".join((*before, last[1].encode(), GOOD))
    places = [0, *sorted(cuts), len(data)]
    pieces = [data[start:end] for start, end in itertools.pairwise(places)]
    assert read(*pieces) == (["/good"] * len(before), last[0])


@pytest.mark.parametrize(
    ("host", "status"), [("Host: registry", None), ("Host: other", None), ("Host: a b", 400), ("X: y", 400)]
)
def test_a_known_head_with_another_host_is_looked_at_anew(host: str, status: int | None) -> None:
    changed = f"GET /changed HTTP/1.1\r\n{host}\r\n\r\n".encode()
    served = [] if status else ["/changed", "/good"]
    assert read(GOOD, GOOD, changed, GOOD) == (["/good", "/good", *served], status)


@pytest.mark.parametrize(("status", "bad"), REFUSED.values(), ids=REFUSED)
def test_such_a_head_is_never_known(status: int, bad: str) -> None:
    reader = RequestParser(ClientTransport(asyncio.Transport()), IncomingRequest)
    reader.feed(bad.encode())
    assert reader.refusal == status
    assert not reader._head_cache._heads


@pytest.mark.parametrize(("status", "bad"), REFUSED.values(), ids=REFUSED)
async def test_the_refusal_is_the_last_answer_on_a_connection(status: int, bad: str) -> None:
    async with serving(path) as served, await served.connect() as client:
        client.say(get("/first") + bad + get("/hidden"))
        head, content = await client.answer()
        assert (head[:12], content) == (b"HTTP/1.1 200", b"/first")
        refusal = await client.everything()
    assert refusal.startswith(b"HTTP/1.1 %d " % status)
    assert b"connection: close" in refusal
    assert refusal.count(b"HTTP/1.1") == 1


async def test_an_encoding_that_is_refused_is_named() -> None:
    async with serving(path) as served, await served.connect() as client:
        client.say(REFUSED["an encoding within chunks"][1])
        assert (await client.everything()).endswith(b"\r\n\r\nUnsupported transfer encoding")


async def test_spaces_behind_a_header_are_no_part_of_it() -> None:
    reader = RequestParser(ClientTransport(asyncio.Transport()), IncomingRequest)
    reader.feed(get("/", "X-Remote-User:  jane doe \t ").encode())
    assert reader.requests[0].header("x-remote-user") == "jane doe"
