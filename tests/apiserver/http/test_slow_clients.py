"""Clients that take their time, to keep ours: each is left after a while, with what it was sent."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import AsyncIterator, Callable

import pytest

from clusterregistry.apiserver.http import connection, listener, server
from clusterregistry.apiserver.http.request_body import IncomingRequest
from clusterregistry.apiserver.http.response import Answer, Outlet, Response, StreamResponse
from tests.apiserver.http.http_servers import PATIENCE, Served, contexts, get, path, serving

MEBIBYTE = 1024 * 1024


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """A fast clock, and everything in the log."""
    monkeypatch.setattr(server, "_TICK_SECONDS", 0.02)
    caplog.set_level(logging.DEBUG, "clusterregistry.apiserver.http")


@pytest.fixture
def hurried_handshakes(monkeypatch: pytest.MonkeyPatch) -> None:
    """For clients that never finish them; others would not always be fast enough on a busy machine."""
    monkeypatch.setattr(listener, "HANDSHAKE_SECONDS", 0.2)


@pytest.fixture
def hurried_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """For clients that never read them."""
    monkeypatch.setattr(connection, "WRITE_SECONDS", 0.2)


async def bare(served: Served) -> socket.socket:
    """A TCP connection, without TLS."""
    client = socket.socket()
    client.setblocking(False)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 * 1024)
    await asyncio.get_running_loop().sock_connect(client, ("127.0.0.1", served.port))
    return client


async def is_ended(client: socket.socket) -> bool:
    """Whether the server ends a connection, in time."""
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(PATIENCE):
        with contextlib.suppress(OSError):
            while await loop.sock_recv(client, 65536):
                pass
        return True


async def eventually(holds: Callable[[], bool]) -> None:
    for _ in range(2000):
        if holds():
            return
        await asyncio.sleep(0.01)
    pytest.fail("it does not come to that")


async def places_are_free(served: Served) -> None:
    await eventually(lambda: not served.server.limit.taken)


def hello() -> bytes:
    """The first message of a handshake."""
    sent, received = ssl.MemoryBIO(), ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        contexts()[1].wrap_bio(received, sent, server_hostname="127.0.0.1").do_handshake()
    return sent.read()


@pytest.mark.usefixtures("hurried_handshakes")
@pytest.mark.parametrize("said", ["nothing", "half", "all"])
async def test_a_handshake_that_is_never_finished_is_ended(said: str, caplog: pytest.LogCaptureFixture) -> None:
    part = {"nothing": b"", "half": hello()[:100], "all": hello()}[said]
    async with serving(path) as served:
        with await bare(served) as client:
            await asyncio.get_running_loop().sock_sendall(client, part)
            assert await is_ended(client)
            await places_are_free(served)
    assert "handshake with a client at 127.0.0.1 failed" in caplog.text
    assert not [record for record in caplog.records if record.levelno > logging.DEBUG]


@pytest.mark.usefixtures("hurried_handshakes")
async def test_a_handshake_byte_by_byte_gains_no_time() -> None:
    async with serving(path) as served:
        with await bare(served) as client:

            async def trickle() -> None:
                for byte in hello() * 100:
                    await asyncio.get_running_loop().sock_sendall(client, bytes([byte]))
                    await asyncio.sleep(0.01)

            trickling = asyncio.create_task(trickle())
            assert await is_ended(client)
            trickling.cancel()
            with contextlib.suppress(OSError, asyncio.CancelledError):
                await trickling
        await places_are_free(served)


async def test_a_malformed_handshake_is_ended_at_once(caplog: pytest.LogCaptureFixture) -> None:
    async with serving(path) as served:
        with await bare(served) as client:
            await asyncio.get_running_loop().sock_sendall(client, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            assert await is_ended(client)
        await places_are_free(served)
    assert "handshake with a client at 127.0.0.1 failed" in caplog.text


@contextlib.asynccontextmanager
async def deaf(served: Served) -> AsyncIterator[asyncio.StreamWriter]:
    """A client behind TLS that asks for something and reads none of it."""
    plain = await bare(served)
    reader, writer = await asyncio.open_connection(
        sock=plain, ssl=contexts()[1], server_hostname="127.0.0.1", limit=1024
    )
    writer.write(get().encode())
    await writer.drain()
    transport = writer.transport
    assert isinstance(transport, asyncio.Transport)
    transport.pause_reading()
    try:
        yield writer
    finally:
        writer.transport.abort()
        del reader


@pytest.mark.usefixtures("hurried_answers")
async def test_a_client_that_never_reads_a_large_response_is_aborted(caplog: pytest.LogCaptureFixture) -> None:
    async def large(_: IncomingRequest) -> Answer:
        return Response(200, b"text/plain", (b"x" * MEBIBYTE,) * 64)

    async with serving(large) as served, deaf(served):
        await eventually(lambda: "that does not read" in caplog.text)
        await places_are_free(served)


@pytest.mark.usefixtures("hurried_answers")
async def test_little_of_an_unread_response_is_in_memory() -> None:
    taken, piece = [0], b"x" * 65536

    async def answer(request: IncomingRequest) -> Answer:
        async def stream(outlet: Outlet) -> None:
            leaving = asyncio.create_task(request.disconnected())
            while not leaving.done():
                await outlet.send(piece)
                taken[0] += len(piece)
                await asyncio.sleep(0)

        return StreamResponse(200, b"text/plain", stream)

    async with serving(answer) as served, deaf(served):
        await eventually(lambda: taken[0] > 0)
        await places_are_free(served)
    assert taken[0] < 16 * MEBIBYTE  # most of it with the system


async def test_the_rest_of_an_unread_body_has_a_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    async def answer(request: IncomingRequest) -> Answer:
        monkeypatch.setattr(connection, "HEAD_SECONDS", 0.1)
        return path(request)

    async with serving(answer) as served, await served.connect() as client:
        client.send(get("/", "Content-Length: 1000", method="POST") + "x")
        assert (await client.answer())[0].startswith(b"HTTP/1.1 200")
        assert await client.everything() == b""


async def test_a_slow_handshake_delays_no_other_client() -> None:
    async with serving(path) as served:
        slow = [await bare(served) for _ in range(50)]
        async with await served.connect() as client:
            client.send(get("/quick"))
            assert (await client.answer())[1] == b"/quick"
        for one in slow:
            one.close()
        await places_are_free(served)


async def test_a_server_that_ends_does_not_wait_for_handshakes() -> None:
    async with serving(path) as served:
        with await bare(served) as client:
            await eventually(lambda: bool(served.server.limit.taken))
            await served.server.stop(patience=0)
            assert await is_ended(client)
        await places_are_free(served)
