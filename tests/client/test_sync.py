from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from clusterregistry.client import errors
from clusterregistry.client.rest import Call, ListOptions, WriteOptions
from clusterregistry.client.rest_config import RestConfig
from clusterregistry.client.retry import ONCE
from clusterregistry.client.sync import LoopThread, SyncClient, SyncResourceClient
from clusterregistry.client.watch import WatchOptions
from tests.apiserver.server.programs import Program
from tests.client.conftest import CLUSTERS, cluster, program_config
from tests.client.hostile_servers import AGENT
from tools.ports import free_port


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "client-loop"]


@pytest.fixture
def sync(program: Program) -> Iterator[SyncResourceClient]:
    with SyncClient(program_config(program)) as client:
        yield client.resource(CLUSTERS)
        client.resource(CLUSTERS).delete_collection()


def test_all_verbs_work_without_a_loop(sync: SyncResourceClient) -> None:
    created = sync.create(cluster("a"))
    assert sync.get("a") == created
    assert sync.update({**created, "metadata": {**created["metadata"], "labels": {"x": "1"}}})["metadata"]["labels"]
    assert sync.patch("a", {"metadata": {"labels": {"x": "2"}}})["metadata"]["labels"] == {"x": "2"}
    sync.apply(cluster("b"), WriteOptions(field_manager="tests"))
    assert len(sync.list(ListOptions(label_selector="x=2"))["items"]) == 1
    assert len(sync.list_all(page_size=1)["items"]) == 2
    sync.delete("a")
    with pytest.raises(errors.NotFoundError):
        sync.get("a")


def test_a_watch_is_an_iterator(sync: SyncResourceClient) -> None:
    version = sync.list()["metadata"]["resourceVersion"]
    sync.create(cluster("a"))
    sync.delete("a")
    events = sync.watch(WatchOptions(resource_version=version))
    assert [next(events).type, next(events).type] == ["ADDED", "DELETED"]
    events.close()  # type: ignore[attr-defined]


def test_a_watch_ends_when_the_server_ends_it(sync: SyncResourceClient) -> None:
    assert list(sync.watch(WatchOptions(resource_version=sync.list()["metadata"]["resourceVersion"], seconds=1))) == []


def test_responses_of_any_status_come_whole_or_piece_by_piece(program: Program) -> None:
    with SyncClient(program_config(program, token="wrong")) as client:
        refused = client.exchange(Call("GET", "/version"))
        assert (refused.status, refused.headers["content-type"]) == (401, "application/json")
        with client.exchange_stream(Call("GET", "/version"), silence=10) as stream:
            assert (stream.status, stream.read()) == (401, refused.body)
            assert stream.read() == b""


def test_a_stream_that_is_not_read_to_its_end_can_be_left(program: Program) -> None:
    call = Call("GET", CLUSTERS.path(), query={"watch": True, "allowWatchBookmarks": True, "resourceVersion": 0})
    with SyncClient(program_config(program)) as client:
        client.resource(CLUSTERS).create(cluster("a"))
        with client.exchange_stream(call, silence=10) as stream:
            assert b'"ADDED"' in stream.read()
        client.resource(CLUSTERS).delete("a")
        with client.exchange_stream(call, silence=10):
            client.close()
    assert threads() == []


def test_the_thread_ends_with_the_client(program: Program) -> None:
    client = SyncClient(program_config(program))
    assert client.text(Call("GET", "/readyz")) == "ok"
    assert threads() == ["client-loop"]
    client.close()
    client.close()
    assert threads() == []
    with pytest.raises(RuntimeError, match="closed"):
        client.call(Call("GET", "/version"))


def test_a_client_that_is_collected_on_its_own_loop_does_not_wait_for_itself() -> None:
    loop = LoopThread()
    loop._loop.call_soon_threadsafe(loop.close)
    loop._thread.join(10)
    assert threads() == []


def test_a_client_with_an_open_watch_can_be_closed(program: Program) -> None:
    client = SyncClient(program_config(program))
    clusters = client.resource(CLUSTERS)
    clusters.create(cluster("a"))
    events = clusters.watch(WatchOptions(resource_version="0"))
    assert next(events).type == "ADDED"
    clusters.delete("a")
    client.close()
    assert threads() == []
    with pytest.raises(RuntimeError):
        next(events)


def test_several_threads_share_a_client(sync: SyncResourceClient) -> None:
    found: list[int] = []
    workers = [threading.Thread(target=lambda: found.append(len(sync.list()["items"]))) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert found == [0] * 8


def test_failures_are_raised_in_the_calling_thread() -> None:
    config = RestConfig(server=f"https://127.0.0.1:{free_port()}", user_agent=AGENT)
    with SyncClient(config, retry=ONCE) as client, pytest.raises(errors.UnreachableError):
        client.call(Call("GET", "/version"))
