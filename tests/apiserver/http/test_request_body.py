"""Bodies that arrive in pieces, too late, or not at all."""

from __future__ import annotations

import asyncio
import logging

import pytest

from clusterregistry.apiserver.http.request import ClientGoneError
from clusterregistry.apiserver.http.request_body import IncomingRequest
from clusterregistry.apiserver.http.response import Answer, text_response
from clusterregistry.apiserver.http.transport import ClientTransport
from tests.apiserver.http.http_servers import PATIENCE, SOON, RawClient, body, get, path, post, serving, within

CHUNKED = "Transfer-Encoding: chunked"


async def test_a_repeated_header_has_all_its_values() -> None:
    async def values(request: IncomingRequest) -> Answer:
        several, one, none = request.header_values("x-a"), request.header("x-a"), request.header_values("x")
        return text_response(f"{list(several)} {one} {none}")

    async with serving(values) as served, await served.connect() as client:
        client.send(get("/", "X-A: one", "x-b: two", "x-a: three", "X-a: "))
        assert (await client.answer())[1] == b"['one', 'three', ''] one ()"
        client.send(get())
        assert (await client.answer())[1] == b"[]  ()"


@pytest.mark.parametrize("value", ["", "a", "ab"])
async def test_a_repeated_value_is_kept(value: str) -> None:
    """Python has but one object for each text of at most one byte."""

    async def values(request: IncomingRequest) -> Answer:
        return text_response(str(list(request.header_values("x-a"))))

    async with serving(values) as served, await served.connect() as client:
        client.send(get("/", f"X-A: {value}", f"X-A: {value}"))
        assert (await client.answer())[1].decode() == str([value, value])


async def test_a_body_in_chunks_with_trailers_that_are_no_headers() -> None:
    async def body_and_trailer(request: IncomingRequest) -> Answer:
        content = (await request.body()).decode()
        return text_response(f"{content}|{request.header('x-late')}|{request.header('x-early')}")

    async with serving(body_and_trailer) as served, await served.connect() as client:
        client.send(get("/", CHUNKED, "X-Early: yes", method="POST"))
        for part in ("3\r\nabc\r\n", "2;extension=1\r\nde\r\n", "0\r\nX-Late: yes\r\nX-Early: no\r\n\r\n"):
            client.send(part)
            await asyncio.sleep(0.01)
        assert (await client.answer())[1] == b"abcde||yes"
        client.send(post("next"))
        assert (await client.answer())[1] == b"next||"


async def test_100_continue_is_sent_when_the_body_is_read() -> None:
    async with serving(body) as served, await served.connect() as client:
        client.send(get("/", "Content-Length: 4", "Expect: 100-continue", method="POST"))
        assert await client.until(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.send("here")
        assert (await client.answer())[1] == b"here"


async def test_100_continue_is_sent_once() -> None:
    """Before Go 1.23, its client gives up after five interim answers; others do after a hundred."""
    pieces: asyncio.Queue[bytes] = asyncio.Queue()

    async def piecewise(request: IncomingRequest) -> Answer:
        more = True
        while more:
            piece, more = await request.read_body()
            pieces.put_nowait(piece)
        return text_response("all")

    async with serving(piecewise) as served, await served.connect() as client:
        client.send(get("/", "Content-Length: 9", "Expect: 100-continue", method="POST"))
        assert await client.until(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        for piece in (b"one", b"two", b"six"):
            client.send(piece)
            assert await asyncio.wait_for(pieces.get(), PATIENCE) == piece
        assert (await client.answer())[0].startswith(b"HTTP/1.1 200 OK")


async def test_an_http_1_0_client_gets_no_100_continue() -> None:
    async with serving(body) as served, await served.connect() as client:
        client.send(get("/", "Content-Length: 4", "Expect: 100-continue", method="POST", version="1.0"))
        assert await client.receives_nothing()
        client.send("here")
        assert (await client.everything()).startswith(b"HTTP/1.1 200 OK")


async def test_an_unread_body_with_expect_ends_the_connection() -> None:
    """The client may or may not send its body, so the next request might begin anywhere."""
    async with serving(path) as served, await served.connect() as client:
        client.send(get("/unwanted", "Content-Length: 4", "Expect: 100-continue", method="POST"))
        received = await client.everything()
    assert received.startswith(b"HTTP/1.1 200")
    assert b"connection: close" in received


async def test_a_small_unread_body_keeps_the_connection() -> None:
    async with serving(path) as served, await served.connect() as client:
        client.send(get("/one", "Content-Length: 1000", method="POST"))
        assert (await client.answer())[1] == b"/one"
        client.send("x" * 1000 + get("/two"))
        assert (await client.answer())[1] == b"/two"


@pytest.mark.parametrize("length", ["Content-Length: 1000000", CHUNKED], ids=["large", "of unknown length"])
async def test_a_large_unread_body_ends_the_connection(length: str) -> None:
    async with serving(path) as served, await served.connect() as client:
        client.send(get("/one", length, method="POST"))
        received = await client.everything()
    assert b"connection: close" in received
    assert received.endswith(b"/one")


async def taken(request: IncomingRequest) -> Answer:
    """The buffered body, what ``body`` returns then, and what the observer has seen."""
    seen: list[bytes] = []
    request.body_observer = seen.append
    return text_response(str((request.take_buffered_body(), await request.body(), seen)))


@pytest.mark.parametrize("headers", [[], ["Connection: keep-alive"]], ids=["known", "parsed"])
async def test_a_body_that_arrives_with_its_head_is_buffered(headers: list[str]) -> None:
    async with serving(taken) as served, await served.connect() as client:
        for content in ("one", "two", "three"):
            client.send(post(content, *headers))
            assert (await client.answer())[1].decode() == str((content.encode(), b"", [content.encode(), b""]))


async def test_a_body_that_arrives_later_is_not_buffered() -> None:
    async with serving(taken) as served, await served.connect() as client:
        client.send(get("/", "Content-Length: 6", method="POST") + "now")
        assert await client.receives_nothing()
        client.send("but")
        assert (await client.answer())[1].decode() == str((b"", b"nowbut", [b"nowbut"]))
        client.send(post(""))
        assert (await client.answer())[1].decode() == str((b"", b"", [b""]))


async def test_a_buffered_body_is_dropped_when_its_client_has_left() -> None:
    """A request whose client has left is not begun."""
    wire = ClientTransport(asyncio.Transport())
    request = IncomingRequest(wire, "POST", "/", b"", {}, (), b"here")
    wire.on_lost()
    assert request.take_buffered_body() == b""
    with pytest.raises(ClientGoneError):
        await request.body()


ZEROS = "0" * 5000
"""Before a number: more digits than Python makes a number of."""


async def test_a_length_may_begin_with_any_number_of_zeros() -> None:
    async with serving(body) as served, await served.connect() as client:
        for content in ("here", "next"):
            client.send(get("/", f"Content-Length: {ZEROS}4", method="POST") + content)
            assert (await client.answer())[1] == content.encode()


async def test_the_length_of_an_unread_body_may_begin_with_zeros() -> None:
    async with serving(path) as served, await served.connect() as client:
        for target in ("/one", "/two"):
            client.send(get(target, f"Content-Length: {ZEROS}4", method="POST"))
            assert (await client.answer())[1] == target.encode()
            client.send("here")


@pytest.mark.parametrize("length", ["0", "0 ", f"{ZEROS} \t"], ids=["0", "space", "zeros"])
async def test_a_body_may_have_no_length_at_all(length: str) -> None:
    async with serving(body) as served, await served.connect() as client:
        for _ in range(2):
            client.send(get("/", f"Content-Length: {length}", method="POST"))
            assert (await client.answer())[1] == b""


async def test_a_client_is_paused_while_its_body_is_not_read() -> None:
    may_read = asyncio.Event()

    async def late(request: IncomingRequest) -> Answer:
        await may_read.wait()
        size, more = 0, True
        while more:
            piece, more = await request.read_body()
            size += len(piece)
        return text_response(str(size))

    size = 32 * 1024 * 1024
    async with serving(late) as served, await served.connect() as client:
        client.send(get("/", f"Content-Length: {size}", method="POST"))
        left = await client.flood(size, patience=SOON)
        assert left > size / 2
        may_read.set()
        assert await client.flood(left) == 0
        assert (await client.answer())[1] == str(size).encode()


class Abandoned:
    """A handler that reads its body and notes what became of that."""

    def __init__(self) -> None:
        self.reading, self.ended = asyncio.Event(), asyncio.Event()
        self.gone = False

    async def __call__(self, request: IncomingRequest) -> Answer:
        try:
            self.reading.set()
            return text_response((await request.body()).decode())
        except ClientGoneError:
            self.gone = True
            raise
        finally:
            self.ended.set()


async def test_a_disconnect_within_a_body_ends_the_request(caplog: pytest.LogCaptureFixture) -> None:
    abandoned = Abandoned()
    async with serving(abandoned) as served, await served.connect() as client:
        client.send(get("/", "Content-Length: 10", method="POST") + "12345")
        await within(abandoned.reading)
        client.abort()
        await within(abandoned.ended)
    assert abandoned.gone
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


async def test_a_malformed_body_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    abandoned = Abandoned()
    async with serving(abandoned) as served, await served.connect() as client:
        client.send(get("/", CHUNKED, method="POST") + "3\r\nabc\r\n")
        await within(abandoned.reading)
        client.send("not a size\r\n")
        received = await client.everything()
    assert received.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert received.endswith(b"Invalid HTTP request received.")
    assert abandoned.gone
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


async def test_trailers_without_end_are_refused() -> None:
    async with serving(body) as served, await served.connect() as client:
        client.send(get("/", CHUNKED, method="POST") + "0\r\n")
        received = asyncio.create_task(client.everything())
        await _keep_saying(client, "X-Trailer: 0123456789abcdef\r\n" * 1000, times=60)
        assert (await received).startswith(b"HTTP/1.1 431 ")


async def test_a_head_without_end_is_refused_after_the_answer_before_it() -> None:
    async with serving(path) as served, await served.connect() as client:
        client.send(get("/good") + "GET / HTTP/1.1\r\n")
        received = asyncio.create_task(client.everything())
        await _keep_saying(client, "X-Header: 0123456789abcdef\r\n" * 1000, times=60)
        answers = await received
    assert answers.startswith(b"HTTP/1.1 200 OK")
    assert b"/goodHTTP/1.1 431 Request Header Fields Too Large\r\n" in answers


async def _keep_saying(client: RawClient, text: str, *, times: int) -> None:
    for _ in range(times):
        client.send(text)
        await asyncio.sleep(0)
