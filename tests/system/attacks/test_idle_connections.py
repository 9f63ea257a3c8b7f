"""Ten thousand clients that have nothing to say, and one that has."""

from __future__ import annotations

import asyncio
import resource
import ssl
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import pytest
import uvloop

from tests.apiserver.api.objects import CLUSTERS, cluster
from tests.apiserver.server.programs import Program

WANTED = 10_000
AT_ONCE = 50
"""Handshakes under way: more of them would only wait for each other."""

SPARE = 500
"""Descriptors that either side needs for other things."""

BYTES_EACH = 96 * 1024
"""What one idle connection may cost: 30 KiB were measured, and 50 KiB within a handshake."""

SILENT = 3 / 4
"""The share of clients that do not even begin their handshake, which are cheap to make. They last ten seconds."""

PATIENCE = 60.0

REQUEST = b"GET /livez HTTP/1.1\r\nHost: registry\r\n\r\n"


@pytest.fixture
def possible() -> Iterator[int]:
    """How many connections the limit of open files allows, which is raised meanwhile."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    hard = before[1] if before[1] != resource.RLIM_INFINITY else WANTED + 2 * SPARE
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, before[1]))
    yield min(WANTED, hard - SPARE)
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


class Idle(asyncio.Protocol):
    """A client that asks one question, so that it is known to be there, and then falls silent."""

    def __init__(self) -> None:
        self.answered = asyncio.get_running_loop().create_future()
        self.transport: asyncio.Transport | None = None
        self.lost = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.transport = transport
        transport.write(REQUEST)

    def data_received(self, data: bytes) -> None:
        if not self.answered.done():
            self.answered.set_result(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = True
        if not self.answered.done():
            self.answered.set_exception(exc or ConnectionResetError())


class Crowd:
    """Many of them. All leave at the end, without which uvloop would wait for them for ever."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self.clients: list[Idle] = []
        self.silent: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
        self._trust = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._trust.check_hostname, self._trust.verify_mode = False, ssl.CERT_NONE  # it does not matter here

    async def gather(self, count: int, *, silent: bool) -> None:
        connect = self._connect_silently if silent else self._connect
        for _ in range(0, count, AT_ONCE):
            await asyncio.gather(*(connect() for _ in range(AT_ONCE)))

    async def _connect_silently(self) -> None:
        self.silent.append(await asyncio.open_connection("127.0.0.1", self._program.port))

    async def _connect(self) -> None:
        client = Idle()
        self.clients.append(client)
        loop, port = asyncio.get_running_loop(), self._program.port
        await loop.create_connection(lambda: client, "127.0.0.1", port, ssl=self._trust, ssl_handshake_timeout=PATIENCE)
        assert (await asyncio.wait_for(client.answered, PATIENCE)).startswith(b"HTTP/1.1 200 ")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for client in self.clients:
            if client.transport is not None:
                client.transport.abort()
        for connection in self.silent:
            connection[1].transport.abort()
        await asyncio.sleep(0)


def work(program: Program) -> None:
    """What another client does meanwhile."""
    with program.client() as client:
        client.post(CLUSTERS, cluster("a")).expect(201)
        assert len(client.get(CLUSTERS).expect(200)["items"]) == 1


async def cost_of_each(program: Program, count: int) -> float:
    """The memory that each of so many idle connections takes, while others are served."""
    before = program.resident_bytes()
    async with Crowd(program) as crowd:
        await crowd.gather(int(count * (1 - SILENT)), silent=False)
        await crowd.gather(int(count * SILENT), silent=True)
        each = (program.resident_bytes() - before) / count
        await asyncio.to_thread(work, program)
        assert program.descriptors() > len(crowd.clients)
        assert not any(client.lost for client in crowd.clients)
    return each


def test_ten_thousand_idle_connections_cost_little_and_others_are_served(
    tmp_path: Path, possible: int, capsys: pytest.CaptureFixture[str]
) -> None:
    if possible < WANTED:
        with capsys.disabled():
            sys.stdout.write(f"\nonly {possible} of {WANTED} connections: the limit of open files is too low\n")
    with Program(tmp_path, "--max-connections=12000") as program:
        each = uvloop.run(cost_of_each(program, possible))
        assert each < BYTES_EACH, f"{each / 1024:.0f} KiB for each of {possible} connections"
        assert "Traceback" not in program.logged()
