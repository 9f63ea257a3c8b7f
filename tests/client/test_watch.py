from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from clusterregistry.client import errors
from clusterregistry.client.rest import Client, ListOptions, ResourceClient
from clusterregistry.client.watch import Event, RetryWatcher, WatchOptions, watch
from tests.client.conftest import CLUSTERS, Pauses, cluster
from tests.client.hostile_servers import CHUNKED, HostileServer, Received, Writer, chunk, event, response, status

END = b"0\r\n\r\n"


def at(version: int, name: str = "a") -> dict[str, Any]:
    return {"metadata": {"name": name, "resourceVersion": str(version)}}


async def collect(events: AsyncGenerator[Event, None], count: int = 10**6) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    async with contextlib.aclosing(events):
        async for each in events:
            found.append((each.type, each.resource_version))
            if len(found) == count:
                break
    return found


async def test_changes_come_as_events(clusters: ResourceClient) -> None:
    version = (await clusters.list())["metadata"]["resourceVersion"]
    async with contextlib.aclosing(watch(clusters, WatchOptions(resource_version=version))) as events:
        await clusters.create(cluster("a"))
        await clusters.patch("a", {"metadata": {"labels": {"x": "1"}}})
        await clusters.delete("a")
        found = [await anext(events) for _ in range(3)]
    assert [each.type for each in found] == ["ADDED", "MODIFIED", "DELETED"]
    assert found[1].object["metadata"]["labels"] == {"x": "1"}


async def test_selectors_choose_what_is_watched(clusters: ResourceClient) -> None:
    options = WatchOptions(selection=ListOptions(label_selector="x=1"), resource_version="0")
    await clusters.create(cluster("a"))
    await clusters.create(cluster("b", labels={"x": "1"}))
    async with contextlib.aclosing(watch(clusters, options)) as events:
        assert (await anext(events)).object["metadata"]["name"] == "b"


async def test_initial_events_end_with_a_bookmark(clusters: ResourceClient) -> None:
    await clusters.create(cluster("a"))
    await clusters.create(cluster("b"))
    async with contextlib.aclosing(watch(clusters, WatchOptions(send_initial_events=True))) as events:
        found = [await anext(events) for _ in range(3)]
    assert [each.type for each in found] == ["ADDED", "ADDED", "BOOKMARK"]
    assert [each.ends_initial_events for each in found] == [False, False, True]


async def test_a_version_of_the_future_or_a_forbidden_watch_is_an_error_of_its_type(clusters: ResourceClient) -> None:
    with pytest.raises(errors.BadRequestError):
        await collect(watch(clusters, WatchOptions(resource_version="no number")))


async def test_events_are_found_however_the_bytes_are_cut(server: HostileServer, hostile: Client) -> None:
    lines = b"".join(json.dumps({"type": "ADDED", "object": at(number)}).encode() + b"\n" for number in range(1, 4))

    async def in_pieces(_: Received, writer: Writer) -> None:
        writer.write(CHUNKED)
        for start in range(0, len(lines), 7):
            writer.write(chunk(lines[start : start + 7]))
            await writer.drain()
            await asyncio.sleep(0)
        writer.write(END)

    server.handler = in_pieces
    found = await collect(watch(hostile.resource(CLUSTERS)))
    assert found == [("ADDED", "1"), ("ADDED", "2"), ("ADDED", "3")]


@pytest.mark.parametrize(
    "line",
    [
        b"garbage\n",
        b"[]\n",
        b"{}\n",
        b'{"type": "ADDED"}\n',
        b'{"type": "ODD", "object": {}}\n',
        b'{"type":3,"object":{}}\n',
    ],
)
async def test_a_line_that_is_no_event_is_malformed(server: HostileServer, hostile: Client, line: bytes) -> None:
    server.answers = [CHUNKED + chunk(line) + END]
    with pytest.raises(errors.MalformedResponseError):
        await collect(watch(hostile.resource(CLUSTERS)))


async def test_a_line_without_end_is_not_kept(server: HostileServer, hostile: Client) -> None:
    async def endless(_: Received, writer: Writer) -> None:
        writer.write(CHUNKED)
        while True:
            writer.write(chunk(b"x" * 65536))
            await writer.drain()
            await asyncio.sleep(0)

    server.handler = endless
    with pytest.raises(errors.ResponseTooLargeError):
        await collect(watch(hostile.resource(CLUSTERS), WatchOptions(max_line=1 << 20)))


async def test_an_event_that_is_cut_is_a_disconnection(server: HostileServer, hostile: Client) -> None:
    server.answers = [CHUNKED + event("ADDED", at(1)) + chunk(b'{"type": "MOD') + END]
    with pytest.raises(errors.DisconnectedError, match="within an event"):
        await collect(watch(hostile.resource(CLUSTERS)))


async def test_a_server_that_falls_silent_is_left(server: HostileServer, hostile: Client, monkeypatch: Any) -> None:
    monkeypatch.setattr("clusterregistry.client.watch._GRACE", 0.2)

    async def silent(_: Received, writer: Writer) -> None:
        writer.write(CHUNKED + event("ADDED", at(1)))
        await writer.drain()
        await asyncio.sleep(60)

    server.handler = silent
    with pytest.raises(errors.RequestTimeoutError):
        await collect(watch(hostile.resource(CLUSTERS), WatchOptions(seconds=0)))


@pytest.mark.parametrize("in_stream", [True, False])
async def test_a_version_that_is_too_old_is_gone(server: HostileServer, hostile: Client, *, in_stream: bool) -> None:
    expired = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"}
    server.answers = [CHUNKED + event("ERROR", expired) + END if in_stream else status(410, "Expired", "too old")]
    with pytest.raises(errors.GoneError, match="too old"):
        await collect(watch(hostile.resource(CLUSTERS), WatchOptions(resource_version="1")))


async def test_a_watcher_resumes_from_the_last_version_also_of_a_bookmark(
    server: HostileServer, hostile: Client, pauses: Pauses
) -> None:
    server.answers = [
        CHUNKED + event("ADDED", at(5)) + END,
        CHUNKED + event("BOOKMARK", at(9)) + END,
        status(503, "ServiceUnavailable", retryAfterSeconds=3),
        CHUNKED + event("MODIFIED", at(12)) + END,
    ]
    watcher = RetryWatcher(hostile.resource(CLUSTERS), WatchOptions(resource_version="4"), sleep=pauses)
    failures: list[errors.ClientError] = []
    found = await collect(watcher.events(on_failure=failures.append), 3)
    assert found == [("ADDED", "5"), ("BOOKMARK", "9"), ("MODIFIED", "12")]
    asked = [received.target.partition("resourceVersion=")[2].partition("&")[0] for received in server.received]
    assert asked == ["4", "5", "9", "9"]
    assert pauses.seconds == [3.0]
    assert [type(failure) for failure in failures] == [errors.ServiceUnavailableError]
    assert watcher.resource_version == "12"


async def test_a_watcher_waits_longer_and_longer_for_a_server_that_ends_watches_at_once(
    server: HostileServer, hostile: Client, pauses: Pauses
) -> None:
    server.answers = [CHUNKED + END] * 3 + [CHUNKED + event("ADDED", at(2)) + END]
    watcher = RetryWatcher(hostile.resource(CLUSTERS), WatchOptions(resource_version="1"), sleep=pauses)
    await collect(watcher.events(), 1)
    assert len(pauses.seconds) == 3
    assert pauses.seconds == sorted(pauses.seconds)


async def test_a_watcher_raises_what_does_not_pass(server: HostileServer, hostile: Client, pauses: Pauses) -> None:
    for answer, kind in ((status(403, "Forbidden"), errors.ForbiddenError), (status(410, "Gone"), errors.GoneError)):
        server.answers = [answer]
        watcher = RetryWatcher(hostile.resource(CLUSTERS), WatchOptions(resource_version="1"), sleep=pauses)
        with pytest.raises(kind):
            await collect(watcher.events())
    assert pauses.seconds == []


def test_a_watcher_needs_a_version_to_resume_from(hostile: Client) -> None:
    with pytest.raises(ValueError, match="resource version"):
        RetryWatcher(hostile.resource(CLUSTERS), WatchOptions())


async def test_leaving_a_watch_ends_its_connection(server: HostileServer, hostile: Client) -> None:
    ended = asyncio.Event()

    async def until_cut(_: Received, writer: Writer) -> None:
        writer.write(CHUNKED + event("ADDED", at(1)))
        try:
            while True:
                await writer.drain()
                await asyncio.sleep(0.01)
                writer.write(chunk(b"\n"))
        except OSError:
            ended.set()
            raise

    server.handler = until_cut
    await collect(watch(hostile.resource(CLUSTERS)), 1)
    async with asyncio.timeout(5):
        await ended.wait()
    server.handler = server._answer
    server.answers = [response()]
    await hostile.resource(CLUSTERS).list()
    assert server.connections == 2
