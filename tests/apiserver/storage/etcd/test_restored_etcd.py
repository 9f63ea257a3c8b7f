"""An etcd that is restored from a snapshot under running replicas: they serve what is there, and say what was lost."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.apiserver.api import in_process
from tests.apiserver.api.in_process import InProcess, InProcessClient
from tests.apiserver.api.objects import CLUSTERS, cluster, names, path_of
from tests.apiserver.api.rbac_objects import BINDINGS, NOBODY, ROLES, binding, role, rule
from tests.apiserver.storage.etcd_servers import NEEDS_RESTORE, EtcdCluster, Settings

pytestmark = [NEEDS_RESTORE, pytest.mark.timeout(180)]

IN_TIME = 30.0

_numbers = count()

Replica = Callable[[], InProcessClient]


@pytest.fixture
def etcd(tmp_path: Path) -> Iterator[EtcdCluster]:
    directory = tmp_path / "etcd"
    directory.mkdir()
    with EtcdCluster(directory, Settings(killed=True)) as etcd:
        yield etcd


@pytest.fixture
def replica(etcd: EtcdCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Replica]:
    monkeypatch.setattr(in_process, "PATIENCE", 60.0)
    with ExitStack() as stack:

        def start() -> InProcessClient:
            server = InProcess(tmp_path / f"replica-{next(_numbers)}", f"--etcd-servers={etcd.endpoints[0]}")
            return stack.enter_context(server.running()).client()

        yield start


def eventually(happens: Callable[[], bool]) -> None:
    until = time.monotonic() + IN_TIME
    while not happens():
        assert time.monotonic() < until, "it does not happen"
        time.sleep(0.05)


def listed(client: InProcessClient) -> list[str] | None:
    answer = client.get(CLUSTERS)
    return names(answer.expect(200)) if answer.status == 200 else None


def shows(client: InProcessClient, expected: list[str]) -> bool:
    return listed(client) == expected


def revision_of(client: InProcessClient) -> str:
    revision: str = client.get(CLUSTERS).expect(200)["metadata"]["resourceVersion"]
    return revision


def create(client: InProcessClient, *wanted: str) -> None:
    for name in wanted:
        client.post(CLUSTERS, cluster(name, labels={"env": "prod"})).expect(201)


def turned_back(etcd: EtcdCluster, snapshot: Path, client: InProcessClient, *flags: str) -> None:
    """Objects a and b are in the snapshot; since then c was added, b deleted and a changed."""
    create(client, "a", "b")
    etcd.save(snapshot)
    create(client, "c")
    client.delete(path_of("b")).expect(200)
    client.patch(path_of("a"), {"metadata": {"labels": {"env": "dev"}}}).expect(200)
    etcd.restore(snapshot, *flags)


def go_on(etcd: EtcdCluster) -> None:
    """Has an etcd come to more revisions than it had before: that they went back does not show any longer."""
    for turn in range(10):
        etcd.etcdctl("put", "/elsewhere", str(turn))


@contextmanager
def frozen(client: InProcessClient) -> Iterator[None]:
    """Keeps a server from noticing anything: when it goes on, it meets what is there then."""
    gate = threading.Event()

    async def wait() -> None:
        gate.wait(IN_TIME)

    waiting = client.server.start(wait())
    try:
        yield
    finally:
        gate.set()
        waiting.result(IN_TIME)


@pytest.mark.parametrize("flags", [(), ("--bump-revision=1000000", "--mark-compacted")])
def test_replicas_serve_what_was_restored(
    etcd: EtcdCluster, replica: Replica, tmp_path: Path, flags: tuple[str, ...]
) -> None:
    replicas = [replica(), replica()]
    for client in replicas:
        assert names(client.get(CLUSTERS, labelSelector="env=prod").expect(200)) == []  # has the label indexed
    turned_back(etcd, tmp_path / "snapshot", replicas[0], *flags)
    for client in replicas:
        eventually(partial(shows, client, ["a", "b"]))
        assert names(client.get(CLUSTERS, labelSelector="env=prod").expect(200)) == ["a", "b"]
        client.get(path_of("c")).refused(404, "NotFound")
    # What one writes from now on, all of them show.
    create(replicas[1], "d")
    for client in replicas:
        assert listed(client) == ["a", "b", "d"]
        assert client.get("/readyz").status == 200


def test_watches_end_with_410_and_those_who_resume_from_what_was_lost_get_it_too(
    etcd: EtcdCluster, replica: Replica, tmp_path: Path
) -> None:
    client = replica()
    create(client, "before")
    begun = revision_of(client)
    with client.watch(CLUSTERS, resourceVersion=begun) as watch:
        turned_back(etcd, tmp_path / "snapshot", client)
        seen = [event["type"] for event in watch.take(5)]
        assert seen == ["ADDED", "ADDED", "ADDED", "DELETED", "MODIFIED"]
        (ended,) = watch.take(1)
        assert (ended["type"], ended["object"]["code"]) == ("ERROR", 410)
    lost = str(int(begun) + 5)
    eventually(lambda: listed(client) == ["a", "b", "before"])
    assert int(revision_of(client)) < int(lost) + 5
    for stale in (begun, lost):
        with client.watch(CLUSTERS, resourceVersion=stale) as watch:
            (refused,) = watch.take(1)
            assert (refused["type"], refused["object"]["code"]) == ("ERROR", 410), stale
    with client.watch(CLUSTERS, resourceVersion=revision_of(client)) as watch:
        create(client, "after")
        (event,) = watch.take(1)
        assert event["object"]["metadata"]["name"] == "after"


def test_writes_to_what_is_gone_end(etcd: EtcdCluster, replica: Replica, tmp_path: Path) -> None:
    client = replica()
    turned_back(etcd, tmp_path / "snapshot", client)
    change: dict[str, Any] = {"metadata": {"labels": {"x": "y"}}}
    # At once, while memory still has it, and for as long as it takes to read everything anew.
    eventually(lambda: client.patch(path_of("c"), change).status == 404)
    eventually(lambda: client.delete(path_of("c")).status == 404)
    client.patch(path_of("b"), change).expect(200)
    client.delete(path_of("b")).expect(200)
    assert listed(client) == ["a"]


def test_rights_are_those_that_were_restored(etcd: EtcdCluster, replica: Replica, tmp_path: Path) -> None:
    client, snapshot = replica(), tmp_path / "snapshot"
    client.post(ROLES, role("reader", rule("get", "list", "watch"))).expect(201)
    create(client, "a")
    etcd.save(snapshot)
    client.post(BINDINGS, binding("reader", "reader", User="nobody")).expect(201)
    for turn in range(10):  # so that there are revisions which take a while to come to again
        create(client, f"lost-{turn}")
    client.get(path_of("a"), headers=NOBODY).expect(200)
    etcd.restore(snapshot)
    eventually(lambda: client.get(path_of("a"), headers=NOBODY).status == 403)
    client.post(BINDINGS, binding("reader", "reader", User="nobody")).expect(201)
    client.get(path_of("a"), headers=NOBODY).expect(200)
    # Since when somebody has a right is told in revisions that count now, or every watch would be too old.
    with client.watch(CLUSTERS, headers=NOBODY, resourceVersion=revision_of(client)) as watch:
        create(client, "b")
        (event,) = watch.take(1)
        assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", "b")


def test_another_cluster_at_the_same_address_is_read_anew(
    etcd: EtcdCluster, replica: Replica, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    client = replica()
    create(client, "a")
    etcd.save(tmp_path / "snapshot")
    create(client, "b")
    with caplog.at_level(logging.WARNING):
        with frozen(client):
            etcd.restore(tmp_path / "snapshot", token="another")
            go_on(etcd)
        eventually(lambda: listed(client) == ["a"])
    assert "it has another ID" in caplog.text
    assert "--mark-compacted" in caplog.text


def test_a_past_that_goes_on_differently_from_the_same_revision_is_noticed(
    etcd: EtcdCluster, replica: Replica, tmp_path: Path
) -> None:
    """By the time a replica asks, the restored etcd has more revisions than it had before."""
    client, snapshot = replica(), tmp_path / "snapshot"
    create(client, "a")
    etcd.save(snapshot)
    create(client, "b")
    with frozen(client):
        etcd.restore(snapshot)
        go_on(etcd)
    eventually(lambda: listed(client) == ["a"])
