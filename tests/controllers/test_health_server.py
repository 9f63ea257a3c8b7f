"""The HTTPS server for probes and metrics: what it answers, and what clients cannot do to it."""

from __future__ import annotations

import asyncio
import contextlib
import ssl

import pytest

from clusterregistry.apimachinery.operator_error import OperatorError
from clusterregistry.controllers import health_server
from clusterregistry.controllers.health_server import MAX_HEAD, Answer, serve_health
from tests.controllers.fleets import until
from tools.ports import free_port

PATHS = {"/livez": lambda: Answer(b"ok")}


def trust() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


async def send(port: int, head: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trust())
    try:
        writer.write(head)
        with contextlib.suppress(ConnectionError):
            return await reader.read()
        return b""
    finally:
        writer.transport.abort()


@pytest.mark.parametrize(
    ("head", "status", "body"),
    [
        (b"GET /livez HTTP/1.1\r\nhost: x\r\n\r\n", b"200 OK", b"ok"),
        (b"GET /livez?verbose HTTP/1.0\r\n\r\n", b"200 OK", b"ok"),
        (b"HEAD /livez HTTP/1.1\r\n\r\n", b"200 OK", b""),
        (b"GET /../etc HTTP/1.1\r\n\r\n", b"404 Not Found", b"there are: /livez\n"),
        (b"POST /livez HTTP/1.1\r\ncontent-length: 9\r\n\r\n", b"405 Method Not Allowed", b"use GET\n"),
        (b"nonsense\r\n\r\n", b"400 Bad Request", b"not HTTP\n"),
        (b"GET /\xff HTTP/1.1\r\n\r\n", b"404 Not Found", b"there are: /livez\n"),
    ],
)
async def test_a_request_gets_one_answer(head: bytes, status: bytes, body: bytes) -> None:
    port = free_port()
    async with serve_health(PATHS, address="127.0.0.1", port=port):
        answer = await send(port, head)

    assert answer.startswith(b"HTTP/1.1 " + status)
    assert answer.partition(b"\r\n\r\n")[2] == body


async def test_a_head_without_end_is_dropped() -> None:
    port = free_port()
    async with serve_health(PATHS, address="127.0.0.1", port=port):
        assert await send(port, b"GET /" + b"x" * (4 * MAX_HEAD)) == b""


async def test_connections_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health_server, "MAX_CONNECTIONS", 1)
    monkeypatch.setattr(health_server, "REQUEST_SECONDS", 300.0)
    port = free_port()

    async def answer() -> bytes:
        return await send(port, b"GET /livez HTTP/1.1\r\n\r\n")

    async def is_dropped() -> bool:
        return await answer() == b""

    async def is_served() -> bool:
        return (await answer()).endswith(b"ok")

    async with serve_health(PATHS, address="127.0.0.1", port=port):
        _, held = await asyncio.open_connection("127.0.0.1", port, ssl=trust())
        await until(is_dropped)
        held.transport.abort()
        await until(is_served)


async def test_a_port_that_is_taken_is_explained() -> None:
    port = free_port()
    async with serve_health(PATHS, address="127.0.0.1", port=port):
        with pytest.raises(OperatorError, match=r"cannot listen on [^ ]+: Address already in use$") as raised:
            async with serve_health(PATHS, address="127.0.0.1", port=port):
                pass
    assert "--secure-port" in raised.value.remedy


async def test_port_0_is_no_server() -> None:
    async with serve_health(PATHS, address="nonsense", port=0):
        pass
