"""Responses are written whole, in pieces, as a stream, or not at all."""

from __future__ import annotations

import asyncio
import logging
import re
import time

import pytest

from clusterregistry.apiserver.http import response_writer, server
from clusterregistry.apiserver.http.request_body import IncomingRequest
from clusterregistry.apiserver.http.response import Answer, Outlet, Response, StreamResponse, text_response
from clusterregistry.apiserver.http.transport import ClientTransport
from tests.apiserver.http.http_servers import PATIENCE, SOON, Endless, Gate, RawClient, get, path, serving, within

PIECE = 64 * 1024


async def test_a_response_has_status_date_length_and_headers() -> None:
    async def answer(_: IncomingRequest) -> Answer:
        return Response(201, b"text/x", (b"a", b"bc"), [(b"x-one", b"1"), (b"x-two", "zwölf".encode())])

    async with serving(answer) as served, await served.connect() as client:
        client.send(get())
        head, content = await client.answer()
    lines = head.decode().split("\r\n")
    assert lines[0] == "HTTP/1.1 201 Created"
    assert re.fullmatch(r"date: \w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT", lines[1])
    assert lines[2:] == ["content-length: 3", "x-one: 1", "x-two: zwölf", "content-type: text/x", "", ""]
    assert content == b"abc"


async def test_a_stream_comes_in_chunks_as_they_are_made_and_the_connection_is_kept() -> None:
    more = asyncio.Event()

    async def stream(outlet: Outlet) -> None:
        await outlet.send(b"one")
        await more.wait()
        await outlet.send(b"")
        await outlet.send(b"twenty-one characters")

    async def answer(request: IncomingRequest) -> Answer:
        return StreamResponse(200, b"text/x", stream) if request.path == "/stream" else text_response("whole")

    async with serving(answer) as served, await served.connect() as client:
        client.send(get("/stream"))
        assert b"\r\ntransfer-encoding: chunked\r\n" in await client.until(b"\r\n\r\n")
        assert await client.until(b"one\r\n") == b"3\r\none\r\n"
        more.set()
        assert await client.until(b"0\r\n\r\n") == b"15\r\ntwenty-one characters\r\n0\r\n\r\n"
        client.send(get("/whole"))
        assert (await client.answer())[1] == b"whole"


async def test_the_head_of_a_stream_does_not_wait_for_its_first_piece() -> None:
    endless = Endless()
    async with serving(endless) as served, await served.connect() as client:
        client.send(get())
        assert (await client.until(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 OK")


@pytest.mark.parametrize("headers", [[], ["Connection: keep-alive"], ["Proxy-Connection: keep-alive"]], ids=str)
async def test_a_stream_to_an_http_1_0_client_ends_with_the_connection(headers: list[str]) -> None:
    async def stream(outlet: Outlet) -> None:
        await outlet.send(b"one")
        await outlet.send(b"two")

    async def answer(_: IncomingRequest) -> Answer:
        return StreamResponse(200, b"text/x", stream)

    async with serving(answer) as served, await served.connect() as client:
        client.send(get("/", *headers, version="1.0"))
        received = await client.everything()
    assert b"transfer-encoding" not in received
    assert received.endswith(b"\r\n\r\nonetwo")


async def test_a_client_that_leaves_ends_its_stream() -> None:
    endless = Endless()
    async with serving(endless) as served, await served.connect() as client:
        client.send(get())
        await within(endless.begun)
        client.abort()
        await within(endless.left)


async def test_a_large_answer_waits_for_a_client_that_does_not_read() -> None:
    made = [b"x" * PIECE] * 400
    pieces_taken, begun = 0, asyncio.Event()

    class Counted(list[bytes]):
        def __iter__(self):  # type: ignore[no-untyped-def]
            nonlocal pieces_taken
            for piece in made:
                pieces_taken += 1
                begun.set()
                yield piece

    async def answer(request: IncomingRequest) -> Answer:
        if request.path != "/large":
            return text_response("small")
        response = Response(200, b"text/x", made)
        response.body = Counted()
        return response

    async with serving(answer) as served, await served.connect() as slow, await served.connect() as other:
        slow.send(get("/large"))
        await asyncio.wait_for(begun.wait(), 20)
        await asyncio.sleep(SOON)
        assert pieces_taken < len(made)
        other.send(get("/small"))
        assert (await other.answer())[1] == b"small"
        assert len((await slow.answer())[1]) == len(made) * PIECE


async def test_pieces_of_a_large_answer_let_others_have_their_turn() -> None:
    turns = 0

    async def answer(_: IncomingRequest) -> Answer:
        return Response(200, b"text/x", [b"x" * PIECE] * 4)

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async with serving(answer) as served, await served.connect() as client:
        counting = asyncio.create_task(count())
        client.send(get())
        await client.answer()
        counting.cancel()
    assert turns > 4


async def test_a_handler_can_end_the_connection_of_a_client_that_does_not_read() -> None:
    ended = asyncio.Event()

    async def answer(request: IncomingRequest) -> Answer:
        async def stream(outlet: Outlet) -> None:
            while not ended.is_set():
                await outlet.send(b"x" * PIECE)

        async def end_soon() -> None:
            await asyncio.sleep(SOON)
            ended.set()
            if request.abort:
                request.abort()

        ending.append(asyncio.create_task(end_soon()))
        return StreamResponse(200, b"text/x", stream)

    ending: list[asyncio.Task[None]] = []
    async with serving(answer) as served, await served.connect() as client:
        client.send(get())
        await within(ended)
        received = await client.everything()
    assert not received.endswith(b"0\r\n\r\n")


@pytest.mark.parametrize("at_once", [True, False])
async def test_a_handler_that_fails_is_logged_and_answered(caplog: pytest.LogCaptureFixture, *, at_once: bool) -> None:
    def broken(request: IncomingRequest) -> Response:
        if request.path == "/broken":
            raise LookupError("our mistake")
        return text_response("fine")

    async def broken_later(request: IncomingRequest) -> Answer:
        return broken(request)

    async with serving(broken if at_once else broken_later) as served, await served.connect() as client:
        client.send(get("/broken"))
        head, content = await client.answer()
        assert head.startswith(b"HTTP/1.1 500 Internal Server Error")
        assert b"our mistake" not in content
        client.send(get("/fine"))
        assert (await client.answer())[1] == b"fine"
    assert "our mistake" in caplog.text


async def test_the_next_answer_is_never_taken_for_one_that_was_cancelled() -> None:
    """What a handler awaits may be cancelled elsewhere: then its request has no response."""

    async def cancelled(request: IncomingRequest) -> Answer:
        if request.path == "/cancelled":
            raise asyncio.CancelledError
        return path(request)

    async with serving(cancelled) as served, await served.connect() as client:
        client.send(get("/cancelled") + get("/next"))
        assert await client.everything() == b""


async def test_a_failed_stream_is_logged_and_has_no_last_chunk(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def stream(outlet: Outlet) -> None:
        await outlet.send(b"half")
        raise LookupError("our mistake")

    async def answer(_: IncomingRequest) -> Answer:
        return StreamResponse(200, b"text/x", stream)

    async with serving(answer) as served, await served.connect() as client:
        client.send(get())
        assert b"0\r\n\r\n" not in await client.everything()
    assert "our mistake" in caplog.text


@pytest.mark.parametrize("at_once", [True, False])
async def test_no_header_can_hold_another(caplog: pytest.LogCaptureFixture, *, at_once: bool) -> None:
    def splitting(_: IncomingRequest) -> Response:
        return Response(200, b"text/x", (b"",), [(b"x-one", b"1\r\nset-cookie: stolen")])

    async def splitting_later(request: IncomingRequest) -> Answer:
        return splitting(request)

    async with serving(splitting if at_once else splitting_later) as served, await served.connect() as client:
        client.send(get())
        assert b"set-cookie" not in await client.everything()
    assert "more than one line" in caplog.text


async def test_connections_wait_independently() -> None:
    gate = Gate()
    async with serving(gate) as served, await served.connect() as first, await served.connect() as second:
        first.send(get("/first"))
        await gate.has_seen(1)
        second.send(get("/second"))
        await gate.has_seen(2)
        gate.open.set()
        assert (await first.answer())[1] == b"/first"
        assert (await second.answer())[1] == b"/second"


async def test_a_client_that_left_while_it_was_answered_is_no_fault(caplog: pytest.LogCaptureFixture) -> None:
    gate = Gate()
    async with serving(gate) as served:
        async with await served.connect() as client:
            client.send(get())
            await gate.has_seen(1)
            client.abort()
        await asyncio.sleep(SOON)
        gate.open.set()
        async with await served.connect() as another, asyncio.timeout(PATIENCE):
            another.send(get("/another"))
            assert (await another.answer())[1] == b"/another"
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


class Leaving(asyncio.Transport):
    """The transport of a client that has closed and does not read."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []

    def is_closing(self) -> bool:
        return True

    def write(self, data: bytes | bytearray | memoryview[int]) -> None:
        self.written.append(bytes(data))


async def test_nothing_is_written_to_a_client_that_has_closed() -> None:
    """The transport warns of each write to such a client, in the log."""

    async def stream(outlet: Outlet) -> None:
        for _ in range(10):
            await outlet.send(b"event")

    for answer in (StreamResponse(200, b"text/x", stream), Response(200, b"text/x", [b"x" * PIECE] * 10)):
        transport = Leaving()
        wire = ClientTransport(transport)
        request = IncomingRequest(wire, "GET", "/", b"", {}, ())
        await response_writer.send(answer, request, wire, date=b"date: now", keep_alive=True)
        assert len(transport.written) <= 1


async def test_the_date_is_of_this_second_though_it_is_not_made_for_each_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    second_day, made_later = b"\r\ndate: Fri, 02 Jan 1970 00:00:00 GMT\r\n", 3600.0
    monkeypatch.setattr(server, "_TICK_SECONDS", made_later)
    async with serving(path) as served, await served.connect() as client:
        monkeypatch.setattr(time, "time", lambda: 86400.0)
        assert second_day not in await _head_from(client)
    monkeypatch.setattr(time, "time", lambda: 0.0)
    monkeypatch.setattr(server, "_TICK_SECONDS", 0.05)
    async with serving(path) as served, await served.connect() as client:
        monkeypatch.setattr(time, "time", lambda: 86400.0)
        async with asyncio.timeout(PATIENCE):
            while second_day not in await _head_from(client):
                pass


async def _head_from(client: RawClient) -> bytes:
    client.send(get())
    head, _ = await client.answer()
    return head
