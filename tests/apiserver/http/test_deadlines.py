"""How connections end: by a deadline, or with the server."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable

import pytest

from clusterregistry.apiserver.http import connection
from clusterregistry.apiserver.http.request_body import IncomingRequest
from clusterregistry.apiserver.http.response import Answer, Outlet, Response, StreamResponse
from tests.apiserver.http.http_servers import (
    PATIENCE,
    SOON,
    Endless,
    Gate,
    Handler,
    RawClient,
    Served,
    get,
    path,
    serving,
    within,
)

TOO_SLOW = b"HTTP/1.1 408 Request Timeout\r\n"


@contextlib.asynccontextmanager
async def serving_without_a_clock(handler: Handler) -> AsyncIterator[tuple[Served, RawClient]]:
    """A server for which time passes only when a test lets it pass, and a client that is connected."""
    async with serving(handler) as served:
        served.stop_clock()
        async with await served.connect() as client:
            yield served, client


async def what_comes(served: Served, client: RawClient) -> bytes:
    """All that a client receives until it is disconnected, while time passes."""
    reading = asyncio.create_task(client.everything())
    await served.pass_time_until(reading)
    return reading.result()


@pytest.mark.parametrize("said", ["", "\r\n\r\n"], ids=["nothing", "empty lines"])
async def test_a_connection_without_a_request_is_closed(said: str) -> None:
    async with serving_without_a_clock(path) as (served, client):
        client.send(said)
        assert await what_comes(served, client) == b""


async def test_a_slow_head_gets_a_408(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, connection.__name__)
    async with serving_without_a_clock(path) as (served, client):
        client.send("GET / HT")
        await eventually(lambda: is_in_head(served))
        received = await what_comes(served, client)
    assert received.startswith(TOO_SLOW)
    assert received.endswith(b"The head of the request did not come in time.")
    assert "a client at 127.0.0.1 that sends nothing, or too slowly" in caplog.text


async def test_a_head_in_small_pieces_gains_no_time() -> None:
    async with serving_without_a_clock(path) as (served, client):

        async def trickle() -> None:
            for character in get("/slow") * 100:
                client.send(character)
                served.pass_seconds(connection.HEAD_SECONDS / 10)
                await asyncio.sleep(0.001)

        trickling = asyncio.create_task(trickle())
        assert (await client.everything()).startswith(TOO_SLOW)
        trickling.cancel()


async def test_a_slow_head_behind_a_response_gets_a_408() -> None:
    async with serving_without_a_clock(path) as (served, client):
        client.send(get("/first"))
        assert (await client.answer())[1] == b"/first"
        client.send("GET /second")
        await eventually(lambda: is_in_head(served))
        assert (await what_comes(served, client)).startswith(TOO_SLOW)


async def test_an_idle_connection_has_more_time_than_a_slow_head() -> None:
    async with serving_without_a_clock(path) as (served, client):
        client.send(get("/first"))
        assert (await client.answer())[1] == b"/first"
        served.pass_seconds(connection.HEAD_SECONDS * 2)
        client.send(get("/second"))
        assert (await client.answer())[1] == b"/second"
        served.pass_seconds(connection.IDLE_SECONDS + 1)
        assert await client.everything() == b""


async def test_a_connection_is_idle_after_a_discarded_body() -> None:
    async with serving_without_a_clock(path) as (served, client):
        client.send(get("/first", "Content-Length: 4", method="POST"))
        assert (await client.answer())[1] == b"/first"
        client.send("body")
        await eventually(lambda: seconds_left(served) > connection.HEAD_SECONDS)
        served.pass_seconds(connection.HEAD_SECONDS * 2)
        client.send(get("/second"))
        assert (await client.answer())[1] == b"/second"


async def test_a_request_in_progress_has_no_read_deadline() -> None:
    gate = Gate()
    async with serving_without_a_clock(gate) as (served, client):
        client.send(get("/slow"))
        await gate.has_seen(1)
        served.pass_seconds(connection.IDLE_SECONDS * 10)
        gate.open.set()
        assert (await client.answer())[1] == b"/slow"


def is_in_head(served: Served) -> bool:
    """Whether the server has read a part of a head on its only connection."""
    return any(each._parser.in_head for each in served.server._connections)


def seconds_left(served: Served) -> float:
    """Until the only connection is ended."""
    (only,) = served.server._connections
    return only.deadline - served.server.now


async def eventually(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not holds():  # noqa: ASYNC110 - a deadline has no event
            await asyncio.sleep(0.001)


async def test_a_stopping_server_finishes_requests_in_progress() -> None:
    gate = Gate()
    async with serving(gate) as served, await served.connect() as busy, await served.connect() as idle:
        busy.send(get("/first"))
        await gate.has_seen(1)
        stopping = asyncio.create_task(served.server.stop(patience=PATIENCE))
        assert await idle.everything() == b""
        with pytest.raises(OSError, match="onnect"):
            await served.connect()
        busy.send(get("/second"))
        assert not stopping.done()
        gate.open.set()
        received = await busy.everything()
        await stopping
    assert b"\r\nconnection: close\r\n" in received
    assert received.endswith(b"/first")
    assert gate.came == ["/first"]


async def test_a_request_that_has_come_when_the_server_stops_is_answered() -> None:
    came = asyncio.Event()

    async def answer(request: IncomingRequest) -> Answer:
        came.set()
        return path(request)

    async with serving(answer) as served, await served.connect() as client:
        client.send(get("/just"))
        await within(came)
        await served.server.stop(patience=PATIENCE)
        assert (await client.everything()).endswith(b"/just")


async def test_a_stream_that_ends_while_the_server_stops_ends_its_connection() -> None:
    begun, end = asyncio.Event(), asyncio.Event()

    async def stream(outlet: Outlet) -> None:
        await outlet.send(b"one")
        begun.set()
        await end.wait()

    async def answer(_: IncomingRequest) -> Answer:
        return StreamResponse(200, b"text/x", stream)

    async with serving(answer) as served, await served.connect() as client:
        client.send(get())
        await within(begun)
        stopping = asyncio.create_task(served.server.stop(patience=PATIENCE))
        await asyncio.sleep(0)
        end.set()
        assert (await client.everything()).endswith(b"3\r\none\r\n0\r\n\r\n")
        await stopping


@pytest.fixture
def short_goodbyes(monkeypatch: pytest.MonkeyPatch) -> None:
    """For clients that take longer than that to read."""
    monkeypatch.setattr(connection, "_CLOSE_SECONDS", 0.01)


LARGE = 16 * 1024 * 1024
"""Bytes of an answer that no system takes all at once."""


@pytest.mark.usefixtures("short_goodbyes")
async def test_a_stopping_server_lets_a_slow_client_read_to_the_end() -> None:
    asked, may_answer = asyncio.Event(), asyncio.Event()

    async def large(_: IncomingRequest) -> Answer:
        asked.set()
        await may_answer.wait()
        return Response(200, b"text/plain", (b"x" * LARGE,))

    async with serving(large) as served, await served.connect() as client:
        client.send(get())
        await within(asked)
        stopping = asyncio.create_task(served.server.stop(patience=PATIENCE))
        await asyncio.sleep(0)
        may_answer.set()
        await asyncio.sleep(SOON)
        assert len((await client.answer())[1]) == LARGE
        await stopping


@pytest.mark.usefixtures("short_goodbyes")
async def test_a_refusal_lets_a_slow_client_read_the_response_before_it() -> None:
    async def large(_: IncomingRequest) -> Answer:
        return Response(200, b"text/plain", (b"x" * LARGE,))

    async with serving(large) as served, await served.connect() as client:
        client.send(get() + "nonsense\r\n\r\n")
        await asyncio.sleep(SOON)
        assert len((await client.answer())[1]) == LARGE
        assert (await client.everything()).startswith(b"HTTP/1.1 400 ")


@pytest.mark.usefixtures("short_goodbyes")
async def test_a_stopping_server_waits_for_slow_readers_only_so_long(caplog: pytest.LogCaptureFixture) -> None:
    async def large(_: IncomingRequest) -> Answer:
        return Response(200, b"text/plain", (b"x" * LARGE,))

    async with serving(large) as served, await served.connect() as client:
        client.send(get())
        await client.until(b"\r\n\r\n")
        await served.server.stop(patience=SOON)
        assert len(await client.everything()) < LARGE
    assert "stopping with 1 requests in progress" in caplog.text


async def test_a_stopping_server_waits_for_requests_only_so_long(caplog: pytest.LogCaptureFixture) -> None:
    gate = Gate()
    async with serving(gate) as served, await served.connect() as client:
        client.send(get("/never"))
        await gate.has_seen(1)
        async with asyncio.timeout(PATIENCE):
            await served.server.stop(patience=0.2)
        assert await client.everything() == b""
    assert "stopping with 1 requests in progress" in caplog.text


async def test_a_server_can_be_ended_while_it_stops() -> None:
    endless = Endless()
    async with serving(endless) as served, await served.connect() as client:
        client.send(get())
        await within(endless.begun)
        stopping = asyncio.create_task(served.server.stop(patience=PATIENCE * 2))
        await asyncio.sleep(0)
        served.server.abort()
        await asyncio.wait_for(stopping, PATIENCE)
        assert not (await client.everything()).endswith(b"0\r\n\r\n")


async def test_a_client_that_connects_while_the_server_stops_is_closed() -> None:
    """A handshake may have begun before, and end after all others were told to go."""
    async with serving(path) as served:
        served.server.is_stopping = True
        async with await served.connect() as late:
            assert await late.everything() == b""
