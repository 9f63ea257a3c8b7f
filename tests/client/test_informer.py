"""Informers on our real server, over its restarts and compactions, and on servers that fail."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from clusterregistry.apiserver.storage.sqlite.store import SQLiteStorage
from clusterregistry.client import errors
from clusterregistry.client.informer import Handler, Informer, InformerOptions
from clusterregistry.client.rest import Client, ListOptions, ResourceClient
from clusterregistry.client.retry import Backoff
from clusterregistry.client.store import Store, by_namespace, key_of, split_key
from tests.apiserver.server.programs import Program
from tests.client.conftest import CLUSTERS, Pauses, cluster, program_config
from tests.client.fake_clock import until
from tests.client.hostile_servers import CHUNKED, HostileServer, Received, Writer, event, response, status

PATIENCE = 30.0
QUICK = Backoff(first=0.05, longest=0.2)


class Calls:
    """A handler that notes its calls."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.handler = Handler(
            on_add=lambda obj: self.seen.append(f"add {key_of(obj)}"),
            on_update=lambda _, obj: self.seen.append(f"update {key_of(obj)}"),
            on_delete=lambda obj: self.seen.append(f"delete {key_of(obj)}"),
        )


@contextlib.asynccontextmanager
async def running(informer: Informer) -> AsyncIterator[Informer]:
    task = asyncio.create_task(informer.run())
    try:
        async with asyncio.timeout(PATIENCE):
            await informer.wait_synced()
        yield informer
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def test_keys_are_namespace_and_name() -> None:
    assert key_of({"metadata": {"name": "n", "namespace": "s"}}) == "s/n"
    assert (split_key("s/n"), split_key("n")) == (("s", "n"), ("", "n"))


def test_indexes_follow_the_objects() -> None:
    store = Store({"namespace": by_namespace, "words": lambda obj: obj["words"]})
    one = {"metadata": {"name": "1", "namespace": "a"}, "words": ["x", "y"]}
    two = {"metadata": {"name": "2", "namespace": "a"}, "words": ["y", "y"]}
    store.put("a/1", one)
    store.put("a/2", two)
    assert store.by_index("words", "y") == [one, two]
    assert store.by_index("namespace", "a") == [one, two]
    changed = {**one, "words": ["z"]}
    assert store.put("a/1", changed) is one
    assert (store.by_index("words", "x"), store.index_values("words")) == ([], ["y", "z"])
    assert store.remove("a/2") is two
    assert (store.remove("a/2"), store.index_values("words"), len(store)) == (None, ["z"], 1)
    with pytest.raises(KeyError):
        store.by_index("other", "x")


@pytest.mark.parametrize("streams", [True, False])
async def test_the_cache_holds_what_the_server_has(clusters: ResourceClient, *, streams: bool) -> None:
    for name in ("a", "b", "c"):
        await clusters.create(cluster(name, labels={"zone": name}))
    calls = Calls()
    informer = Informer(
        clusters,
        InformerOptions(send_initial_events=streams, page_size=2),
        indexers={"zone": lambda obj: [obj["metadata"]["labels"]["zone"]]},
    )
    informer.add_handler(calls.handler)
    assert not informer.has_synced
    async with running(informer):
        assert informer.store.keys() == ["a", "b", "c"]
        assert all(obj["kind"] == "Cluster" for obj in informer.store)
        await clusters.create(cluster("d", labels={"zone": "a"}))
        await clusters.patch("b", {"metadata": {"labels": {"zone": "a"}}})
        await clusters.delete("c")
        await until(lambda: len(calls.seen) == 6)
        assert calls.seen == ["add a", "add b", "add c", "add d", "update b", "delete c"]
        assert [key_of(obj) for obj in informer.store.by_index("zone", "a")] == ["a", "b", "d"]
        assert informer.last_error is None


async def test_selectors_and_transforms_decide_what_is_kept(clusters: ResourceClient) -> None:
    await clusters.create(cluster("a", labels={"x": "1"}))
    await clusters.create(cluster("b"))
    options = InformerOptions(
        selection=ListOptions(label_selector="x=1"), transform=lambda obj: {"metadata": {"name": key_of(obj)}}
    )
    async with running(Informer(clusters, options)) as informer:
        assert informer.store.objects() == [{"metadata": {"name": "a"}}]


async def test_a_late_handler_sees_what_is_there_and_a_removed_one_nothing(clusters: ResourceClient) -> None:
    await clusters.create(cluster("a"))
    early, late = Calls(), Calls()
    informer = Informer(clusters)
    remove = informer.add_handler(early.handler)
    async with running(informer):
        informer.add_handler(late.handler)
        assert late.seen == ["add a"]
        remove()
        remove()
        await clusters.delete("a")
        await until(lambda: late.seen == ["add a", "delete a"])
    assert early.seen == ["add a"]


async def test_a_handler_that_fails_does_not_stop_the_informer(
    clusters: ResourceClient, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_: Any) -> None:
        raise RuntimeError("mistake")

    calls = Calls()
    informer = Informer(clusters)
    informer.add_handler(Handler(on_add=fail))
    informer.add_handler(calls.handler)
    async with running(informer):
        await clusters.create(cluster("a"))
        await until(lambda: calls.seen == ["add a"])
    assert "a handler of an informer failed" in caplog.text


async def test_a_resync_shows_every_object_again(clusters: ResourceClient) -> None:
    await clusters.create(cluster("a"))
    calls = Calls()
    informer = Informer(clusters, InformerOptions(resync_seconds=0.05))
    informer.add_handler(calls.handler)
    async with running(informer):
        await until(lambda: calls.seen.count("update a") >= 3)


async def test_an_informer_goes_on_after_restarts_of_the_server(tmp_path: Path) -> None:
    calls = Calls()
    with Program(tmp_path / "own") as program:
        async with Client(program_config(program)) as client:
            clusters = client.resource(CLUSTERS)
            await clusters.create(cluster("a"))
            informer = Informer(clusters, InformerOptions(backoff=QUICK))
            informer.add_handler(calls.handler)
            async with running(informer):
                for number in range(2):
                    await asyncio.to_thread(program.stop)
                    await until(lambda: informer.last_error is not None)
                    assert informer.store.keys()[0] == "a"  # what was known stays known
                    await asyncio.to_thread(program.start)
                    await clusters.create(cluster(f"b{number}"))
                    await until(lambda n=number: f"add b{n}" in calls.seen, lambda: informer.last_error)  # type: ignore[misc]
                    assert informer.last_error is None
    assert calls.seen == ["add a", "add b0", "add b1"]  # resumed: nothing was seen twice


async def test_an_informer_lists_anew_when_its_version_is_compacted(tmp_path: Path) -> None:
    calls = Calls()
    with Program(tmp_path / "own") as program:
        async with Client(program_config(program)) as client:
            clusters = client.resource(CLUSTERS)
            for name in ("goes", "changes", "stays"):
                await clusters.create(cluster(name))
            informer = Informer(clusters, InformerOptions(backoff=QUICK))
            informer.add_handler(calls.handler)
            async with running(informer):
                known = informer.resource_version
            await clusters.delete("goes")
            await clusters.patch("changes", {"metadata": {"labels": {"x": "1"}}})
            await clusters.create(cluster("comes"))
            latest = (await clusters.list())["metadata"]["resourceVersion"]
            await asyncio.to_thread(program.stop)
            await _compact(program, int(latest))
            await asyncio.to_thread(program.start)
            with pytest.raises(errors.GoneError):
                await clusters.list(ListOptions(resource_version=known, resource_version_match="Exact"))
            calls.seen.clear()
            async with running(informer):
                await until(lambda: len(calls.seen) == 3, lambda: calls.seen)
                assert sorted(calls.seen) == ["add comes", "delete goes", "update changes"]
                assert sorted(informer.store.keys()) == ["changes", "comes", "stays"]


async def _compact(program: Program, revision: int) -> None:
    """What the server does by itself, only later."""
    storage = await SQLiteStorage.open(program.data / "registry.db")
    try:
        await storage.compact(revision)
    finally:
        await storage.close()


def listed(version: int, *names: str) -> bytes:
    objects = [{"metadata": {"name": name, "resourceVersion": "1"}} for name in names]
    document = {"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": str(version)}, "items": objects}
    return response(json.dumps(document))


def kind_of(received: Received) -> str:
    if "sendInitialEvents" in received.target:
        return "stream"
    return "watch" if "watch=true" in received.target else "list"


@pytest.mark.parametrize("refusal", [status(422, "Invalid"), status(400, "BadRequest")])
async def test_a_server_that_cannot_send_initial_events_is_asked_for_a_list(
    server: HostileServer, hostile: Client, pauses: Pauses, refusal: bytes
) -> None:
    async def old_server(received: Received, writer: Writer) -> None:
        if kind_of(received) == "watch":
            writer.write(CHUNKED)
            await asyncio.sleep(60)
        writer.write(refusal if kind_of(received) == "stream" else listed(7, "a"))

    server.handler = old_server
    async with running(Informer(hostile.resource(CLUSTERS), sleep=pauses)) as informer:
        await until(lambda: len(server.received) == 3)
        assert [kind_of(received) for received in server.received] == ["stream", "list", "watch"]
        assert "resourceVersion=7&" in server.received[2].target
        assert informer.store.objects()[0]["kind"] == "Pod"
    assert pauses.seconds == []


async def test_a_server_that_ignores_the_question_for_initial_events_is_asked_for_a_list(
    server: HostileServer, hostile: Client
) -> None:
    async def ignorant(received: Received, writer: Writer) -> None:
        if kind_of(received) == "list":
            writer.write(listed(7, "a"))
            return
        writer.write(CHUNKED + event("ADDED", {"metadata": {"name": "a", "resourceVersion": "1"}}))
        await writer.drain()
        await asyncio.sleep(60)

    server.handler = ignorant
    options = InformerOptions(initial_events_seconds=0.2, backoff=QUICK)
    async with running(Informer(hostile.resource(CLUSTERS), options)) as informer:
        assert informer.store.keys() == ["a"]
    assert [kind_of(received) for received in server.received][:2] == ["stream", "list"]


async def test_lists_that_expire_at_once_are_repeated_ever_later(
    server: HostileServer, hostile: Client, pauses: Pauses
) -> None:
    async def forgetful(received: Received, writer: Writer) -> None:
        writer.write(listed(7) if kind_of(received) == "list" else status(410, "Expired"))

    server.handler = forgetful
    options = InformerOptions(send_initial_events=False, backoff=Backoff(first=1, jitter=0))
    async with running(Informer(hostile.resource(CLUSTERS), options, sleep=_yielding(pauses))):
        await until(lambda: len(pauses.seconds) >= 7)
    assert pauses.seconds[:7] == [1, 2, 4, 8, 16, 30, 30]


async def test_a_server_that_names_a_time_is_given_it(server: HostileServer, hostile: Client, pauses: Pauses) -> None:
    async def busy(received: Received, writer: Writer) -> None:
        if kind_of(received) == "watch":
            writer.write(status(429, "TooManyRequests", retryAfterSeconds=17))
        else:
            writer.write(listed(7))

    server.handler = busy
    options = InformerOptions(send_initial_events=False)
    async with running(Informer(hostile.resource(CLUSTERS), options, sleep=_yielding(pauses))):
        await until(lambda: len(pauses.seconds) >= 1)
    assert pauses.seconds[0] == 17


async def test_more_objects_than_allowed_leave_the_cache_as_it_was(
    server: HostileServer, hostile: Client, pauses: Pauses
) -> None:
    async def large(_: Received, writer: Writer) -> None:
        writer.write(listed(7, "a", "b", "c"))

    server.handler = large
    options = InformerOptions(send_initial_events=False, max_objects=2)
    informer = Informer(hostile.resource(CLUSTERS), options, sleep=_yielding(pauses))
    task = asyncio.create_task(informer.run())
    await until(lambda: isinstance(informer.last_error, errors.LimitError))
    assert (len(informer.store), informer.has_synced) == (0, False)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def _yielding(pauses: Pauses) -> Any:
    """Pauses that take no time, but let others run."""

    async def sleep(seconds: float) -> None:
        await pauses(seconds)
        await asyncio.sleep(0.001)

    return sleep
