"""Watches over a WebSocket, by two real clients: that of aiohttp and that of websockets."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import socket
import ssl
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from tests.apiserver.api.clients import ADMIN_TOKEN, PATIENCE, Client, latest_version
from tests.apiserver.api.objects import CLUSTERS, OLD_WATCH, cluster, path_of
from tests.apiserver.api.test_slow_watchers import terminated
from tests.apiserver.server.programs import Program

ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
ADMIN = {"Authorization": f"Bearer {ADMIN_TOKEN}"}


@pytest.fixture
def server(program: Program) -> Iterator[Client]:
    """An administrator's client of the real program, which is empty before and after."""
    with program.client() as client:
        yield client
        client.delete(CLUSTERS).expect(200)


def trust(program: Program) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=program.data / "ca.crt")


class Watch:
    """A watch by the client of websockets for asyncio, one step at a time.

    Not by its client for threads: two of them use one TLS connection at once, and OpenSSL loses bytes or crashes.
    """

    def __init__(self, runner: asyncio.Runner, connection: ClientConnection) -> None:
        self._runner, self._connection = runner, connection

    def next(self) -> str | bytes:
        """The next message."""
        return self._runner.run(asyncio.wait_for(self._connection.recv(), PATIENCE))

    def ping(self) -> None:
        """Returns once a ping is answered."""

        async def answered() -> None:
            async with asyncio.timeout(PATIENCE):
                await (await self._connection.ping())

        self._runner.run(answered())


@contextlib.contextmanager
def opened(
    program: Program, query: str = "", *, path: str = CLUSTERS, headers: dict[str, str] = ADMIN
) -> Iterator[Watch]:
    url = f"wss://127.0.0.1:{program.port}{path}?watch=true&{query}"

    async def connected() -> ClientConnection:
        return await connect(
            url,
            additional_headers=headers,
            ssl=trust(program),
            open_timeout=PATIENCE,
            max_size=None,
            ping_interval=None,
        )

    with asyncio.Runner() as runner:
        connection = runner.run(connected())
        yield Watch(runner, connection)
        runner.run(connection.close())


def taken(watch: Watch, count: int) -> list[tuple[str, str]]:
    events = [json.loads(watch.next()) for _ in range(count)]
    return [(event["type"], event["object"]["metadata"]["name"]) for event in events]


@contextlib.asynccontextmanager
async def attempt(program: Program, headers: dict[str, str], query: str = "") -> AsyncIterator[aiohttp.ClientResponse]:
    """A plain GET with the headers of a handshake, whatever is answered."""
    handshake = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
        "Sec-WebSocket-Version": "13",
    }
    url = f"https://127.0.0.1:{program.port}{CLUSTERS}?watch=true&{query}"
    async with (
        http_session() as session,
        session.get(url, headers=handshake | headers, ssl=trust(program)) as response,
    ):
        yield response
        response.close()


@contextlib.asynccontextmanager
async def http_session(headers: dict[str, str] | None = None) -> AsyncIterator[aiohttp.ClientSession]:
    """A session of aiohttp whose connections are closed at the end: it does not wait for TLS to end them in order."""
    sockets: list[socket.socket] = []

    def made(address: Any) -> socket.socket:
        sockets.append(socket.socket(*address[:3]))
        return sockets[-1]

    async with aiohttp.ClientSession(headers=headers, connector=aiohttp.TCPConnector(socket_factory=made)) as session:
        yield session
    async with asyncio.timeout(PATIENCE):
        while any(each.fileno() != -1 for each in sockets):  # noqa: ASYNC110 - a socket has no event
            await asyncio.sleep(0.01)


def test_each_event_is_one_message(server: Client, program: Program) -> None:
    with opened(program, f"resourceVersion={latest_version(server)}") as watch:
        made = server.post(CLUSTERS, cluster("a")).expect(201)
        assert (
            watch.next()
            == json.dumps({"type": "ADDED", "object": made}, separators=(",", ":"), ensure_ascii=False) + "\n"
        )
        server.put(path_of("a"), cluster("a", "gce")).expect(200)
        server.delete(path_of("a")).expect(200)
        assert taken(watch, 2) == [("MODIFIED", "a"), ("DELETED", "a")]


def test_it_begins_with_the_existing_objects_and_resumes(server: Client, program: Program) -> None:
    for name in ("a", "b", "c"):
        server.post(CLUSTERS, cluster(name)).expect(201)
    with opened(program) as watch:
        assert taken(watch, 3) == [("ADDED", "a"), ("ADDED", "b"), ("ADDED", "c")]
    version = server.get(path_of("a")).expect(200)["metadata"]["resourceVersion"]
    with opened(program, f"resourceVersion={version}") as watch:
        assert taken(watch, 2) == [("ADDED", "b"), ("ADDED", "c")]
    with opened(program, path=f"{OLD_WATCH}/b") as watch:
        assert taken(watch, 1) == [("ADDED", "b")]


def test_a_table_has_its_columns_in_the_first_message(server: Client, program: Program) -> None:
    server.post(CLUSTERS, cluster("a")).expect(201)
    server.post(CLUSTERS, cluster("b")).expect(201)
    accept = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    with opened(program, headers=ADMIN | accept) as watch:
        first, second = (json.loads(watch.next())["object"] for _ in range(2))
    assert [first["kind"], second["kind"]] == ["Table", "Table"]
    assert first["columnDefinitions"]
    assert second["columnDefinitions"] is None


def test_protobuf_comes_in_binary_messages(program: Program) -> None:
    accept = {"Accept": "application/vnd.kubernetes.protobuf;stream=watch"}
    with opened(program, path=ROLES, headers=ADMIN | accept) as watch:
        message = watch.next()
    assert isinstance(message, bytes)
    assert message.startswith(b"\x0a\x05ADDED")  # a WatchEvent, without a length before it


def test_bookmarks_come_and_pings_are_answered(server: Client, program: Program) -> None:
    query = "sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan"
    with opened(program, query) as watch:
        assert json.loads(watch.next())["type"] == "BOOKMARK"
        watch.ping()
        server.post(CLUSTERS, cluster("a")).expect(201)
        assert taken(watch, 1) == [("ADDED", "a")]


def test_a_watch_ends_after_its_time_with_a_close_frame(program: Program) -> None:
    with opened(program, "timeoutSeconds=1") as watch, pytest.raises(ConnectionClosed) as closed:
        watch.next()
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1000


async def test_the_client_of_aiohttp_watches_too(server: Client, program: Program) -> None:
    async with http_session(ADMIN) as session:
        url = f"https://127.0.0.1:{program.port}{CLUSTERS}?watch=true"
        async with session.ws_connect(url, ssl=trust(program), heartbeat=5) as watch:
            await asyncio.to_thread(server.post, CLUSTERS, cluster("a"))
            assert (await watch.receive_json(timeout=PATIENCE))["type"] == "ADDED"


async def test_a_token_may_be_a_subprotocol(program: Program) -> None:
    encoded = base64.urlsafe_b64encode(ADMIN_TOKEN.encode()).decode().rstrip("=")
    token = f"base64url.bearer.authorization.k8s.io.{encoded}"
    async with attempt(program, {"Sec-WebSocket-Protocol": f"{token}, base64.binary.k8s.io"}) as response:
        assert response.status == 101
        assert response.headers["Sec-WebSocket-Protocol"] == "base64.binary.k8s.io"
    async with attempt(program, {"Sec-WebSocket-Protocol": token}) as response:
        assert response.status == 401
    async with attempt(program, {"Sec-WebSocket-Protocol": f"{token}x, v1"}) as response:
        assert response.status == 401


@pytest.mark.parametrize(
    ("headers", "query", "status"),
    [
        ({}, "", 403),
        ({"Authorization": "Bearer nobodytoken"}, "", 403),
        ({"Authorization": "Bearer wrong"}, "", 401),
        (ADMIN, "resourceVersion=x", 400),
        (ADMIN, "sendInitialEvents=true", 422),
        (ADMIN | {"Accept": "text/css"}, "", 406),
    ],
)
async def test_what_every_watch_is_refused_for_is_a_status(
    program: Program, headers: dict[str, str], query: str, status: int
) -> None:
    async with attempt(program, headers, query) as response:
        assert response.status == status
        assert (await response.json())["kind"] == "Status"


async def test_a_wrong_handshake_is_text(program: Program) -> None:
    async with attempt(program, ADMIN | {"Sec-WebSocket-Version": "8"}) as response:
        assert response.status == 400
        assert response.headers["Sec-WebSocket-Version"] == "13"
        assert response.headers["Connection"] == "close"


async def test_other_requests_ignore_the_upgrade(program: Program) -> None:
    headers = ADMIN | {"Connection": "Upgrade", "Upgrade": "websocket"}
    url = f"https://127.0.0.1:{program.port}{CLUSTERS}"
    async with http_session() as session, session.get(url, headers=headers, ssl=trust(program)) as response:
        assert response.status == 200
        assert (await response.json())["kind"] == "ClusterList"


def test_a_client_that_does_not_read_is_ended_and_delays_nobody(server: Client, program: Program) -> None:
    large = "x" * 1024 * 1024
    server.post(CLUSTERS, cluster("a")).expect(201)
    start, ended = latest_version(server), terminated(server)
    handshake = (
        f"GET {CLUSTERS}?watch=true&resourceVersion={start} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\n"
        f"Upgrade: websocket\r\nSec-WebSocket-Key: eA==\r\nSec-WebSocket-Version: 13\r\n"
        f"Authorization: Bearer {ADMIN_TOKEN}\r\n\r\n"
    )
    with program.socket() as asleep, opened(program, f"resourceVersion={start}") as awake:
        asleep.sendall(handshake.encode())
        assert asleep.recv(12) == b"HTTP/1.1 101"
        for index in range(60):
            server.put(path_of("a"), cluster("a", f"{index}-{large}")).expect(200)
            assert taken(awake, 1) == [("MODIFIED", "a")]
        assert terminated(server) == ended + 1


def test_the_end_of_the_server_is_a_close_frame_and_the_audit_log_has_the_watch(tmp_path: Path) -> None:
    audit = tmp_path / "audit.log"
    policy = tmp_path / "policy.yaml"
    policy.write_text("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- level: Metadata\n")
    flags = ("--audit-log-path", str(audit), "--audit-policy-file", str(policy))
    with Program(tmp_path, *flags) as program, opened(program) as watch:
        with program.client() as client:
            client.post(CLUSTERS, cluster("a")).expect(201)
            assert taken(watch, 1) == [("ADDED", "a")]
            assert 'verb="WATCH"' in client.get("/metrics").body.decode()
        program.signal()
        with pytest.raises(ConnectionClosed) as closed:
            watch.next()
        assert program.wait() == 0
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1000
    events = [json.loads(line) for line in audit.read_text().splitlines()]
    watches = [
        (event["stage"], event["responseStatus"]["code"])
        for event in events
        if event["verb"] == "watch" and "responseStatus" in event
    ]
    assert watches == [("ResponseStarted", 101), ("ResponseComplete", 101)]
