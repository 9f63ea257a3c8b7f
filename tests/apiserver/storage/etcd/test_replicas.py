"""Servers that share an etcd, as their clients see it: replicas, an etcd that goes away, and one that forgets."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from clusterregistry.apiserver.storage.errors import StorageUnavailable
from clusterregistry.apiserver.storage.etcd import client as etcd_client
from tests.apiserver.api import in_process
from tests.apiserver.api.clients import Answer
from tests.apiserver.api.in_process import InProcess, InProcessClient
from tests.apiserver.api.objects import APPLY_PATCH, CLUSTERS, cluster, names, path_of
from tests.apiserver.api.rbac_objects import BINDINGS, ROLES, VIEWER, binding, role, rule
from tests.apiserver.api.rbac_objects import GROUP as RBAC
from tests.apiserver.storage.etcd_servers import NEEDS_ETCD, EtcdCluster, Settings
from tests.apiserver.storage.relays import Relay

pytestmark = NEEDS_ETCD

_numbers = count()

Replica = Callable[..., InProcessClient]


@pytest.fixture(scope="module")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdCluster]:
    with EtcdCluster(tmp_path_factory.mktemp("etcd")) as etcd:
        yield etcd


@pytest.fixture
def replica(etcd: EtcdCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Replica]:
    """Starts one more server on the same keys of the etcd, and gives a client of it."""
    # A request that waits for an etcd that is gone takes some seconds, and more on a busy machine.
    monkeypatch.setattr(in_process, "PATIENCE", 60.0)
    prefix = f"/registry/replicas/{next(_numbers)}"
    with ExitStack() as stack:

        def start(servers: str = etcd.endpoints[0]) -> InProcessClient:
            flags = (f"--etcd-servers={servers}", f"--etcd-prefix={prefix}")
            server = InProcess(tmp_path / f"replica-{next(_numbers)}", *flags)
            return stack.enter_context(server.running()).client()

        yield start


def eventually(happens: Callable[[], bool], *, seconds: float = 30.0) -> None:
    until = time.monotonic() + seconds
    while not happens():
        assert time.monotonic() < until, "it does not happen"
        time.sleep(0.05)


def revision_of(found: dict[str, Any]) -> str:
    revision: str = found["metadata"]["resourceVersion"]
    return revision


def large_cluster(size: int) -> dict[str, Any]:
    """A cluster whose object takes somewhat more than that many bytes."""
    providers = [{"name": f"p{n}", "config": {"k": "x" * 10_000}} for n in range(size // 10_000 + 1)]
    return cluster("large") | {"spec": {"authInfo": {"providers": providers}}}


def test_what_is_written_to_one_replica_is_read_from_the_other_at_once(replica: Replica) -> None:
    first, second = replica(), replica()
    for turn in range(5):
        writer, reader = (first, second) if turn % 2 else (second, first)
        created = writer.post(CLUSTERS, cluster(f"c{turn}")).expect(201)
        assert reader.get(path_of(f"c{turn}")).expect(200) == created
        assert f"c{turn}" in names(reader.get(CLUSTERS).expect(200))
        reader.delete(path_of(f"c{turn}")).expect(200)
        writer.get(path_of(f"c{turn}")).refused(404, "NotFound")


def test_a_watch_goes_on_at_another_replica_and_misses_nothing(replica: Replica) -> None:
    first, second = replica(), replica()
    revision = revision_of(first.get(CLUSTERS).expect(200))
    seen: list[str] = []
    for turn in range(6):
        watched, written = (first, second) if turn % 2 else (second, first)
        written.post(CLUSTERS, cluster(f"before-{turn}")).expect(201)
        with watched.watch(CLUSTERS, resourceVersion=revision) as watch:
            written.post(CLUSTERS, cluster(f"during-{turn}")).expect(201)
            for event in watch.take(2):
                assert event["type"] == "ADDED"
                seen.append(event["object"]["metadata"]["name"])
                revision = revision_of(event["object"])
    assert seen == [f"{when}-{turn}" for turn in range(6) for when in ("before", "during")]


@contextmanager
def hearing_late(replica: InProcessClient) -> Iterator[None]:
    """Keeps from a server what others write, until it asks etcd how far they have come."""
    storage: Any = replica.server.storage
    etcd = storage._backend
    on_events, on_progress, current_revision = etcd.on_events, etcd.on_progress, etcd.current_revision
    held: list[Callable[[], None]] = []

    async def hold() -> None:
        etcd.on_events = lambda events: held.append(partial(on_events, events))
        etcd.on_progress = lambda revision: held.append(partial(on_progress, revision))
        etcd.current_revision = asking

    async def release() -> None:
        etcd.on_events, etcd.on_progress, etcd.current_revision = on_events, on_progress, current_revision
        while held:
            held.pop(0)()

    async def asking() -> int:
        await release()
        return int(await current_revision())

    replica.server.run(hold())
    try:
        yield
    finally:
        replica.server.run(release())


def test_a_list_at_the_revision_of_a_write_waits_on_a_replica_that_lags(replica: Replica) -> None:
    first, second = replica(), replica()
    first.post(CLUSTERS, cluster("a")).expect(201)
    second.get(path_of("a")).expect(200)
    exact: list[dict[str, Any]] = [{"limit": 5}, {"resourceVersionMatch": "Exact"}]
    for number, query in enumerate(exact):
        with hearing_late(second):
            revision = revision_of(first.post(CLUSTERS, cluster(f"b{number}")).expect(201))
            listed = second.get(CLUSTERS, resourceVersion=revision, **query).expect(200)
        assert revision_of(listed) == revision
        assert f"b{number}" in names(listed)
    second.get(CLUSTERS, resourceVersion=str(int(revision) + 1000), limit=5).refused(504, "Timeout")


LOOSE = "loose"
"""A finalizer that who adds it is warned of."""


@pytest.mark.parametrize(
    "write",
    [
        lambda client, path, obj: client.put(path, obj),
        lambda client, path, _obj: client.patch(path, {"metadata": {"finalizers": [LOOSE]}, "spec": {"none": 1}}),
        lambda client, path, obj: client.patch(
            path, obj, kind=APPLY_PATCH, fieldManager="test", force="true", fieldValidation="Warn"
        ),
    ],
    ids=["update", "patch", "apply"],
)
def test_warnings_are_about_the_current_object_and_not_the_cached_one(
    replica: Replica, write: Callable[[InProcessClient, str, Any], Answer]
) -> None:
    first, second = replica(), replica()
    name = "a"
    wanted = cluster(name, finalizers=[LOOSE], labels={"ours": "1"})
    first.post(CLUSTERS, cluster(name)).expect(201)
    second.get(path_of(name)).expect(200)
    with hearing_late(second):
        first.patch(path_of(name), {"metadata": {"finalizers": [LOOSE]}}).expect(200)
        answer = write(second, path_of(name), wanted)
    answer.expect(200)
    assert not any(LOOSE in text for text in answer.warnings)


def test_a_404_has_no_warnings_from_an_outdated_cache(replica: Replica) -> None:
    first, second = replica(), replica()
    first.post(CLUSTERS, cluster("a")).expect(201)
    second.get(path_of("a")).expect(200)
    with hearing_late(second):
        first.delete(path_of("a")).expect(200)
        answer = second.patch(path_of("a"), {"metadata": {"finalizers": [LOOSE]}, "spec": {"none": 1}})
    answer.refused(404, "NotFound")
    assert answer.warnings == []


@pytest.fixture
def binder(replica: Replica) -> tuple[InProcessClient, InProcessClient]:
    """Two replicas. A viewer may bind roles, as far as it has their rights, and get clusters."""
    first, second = replica(), replica()
    first.post(ROLES, role("binder", rule("create", resource="clusterrolebindings", group=RBAC))).expect(201)
    first.post(ROLES, role("reader", rule("get"))).expect(201)
    first.post(BINDINGS, binding("binders", "binder", User="viewer")).expect(201)
    first.post(BINDINGS, binding("readers", "reader", User="viewer")).expect(201)
    eventually(lambda: second.get(path_of("none"), headers=VIEWER).status == 404)
    return first, second


def test_a_role_that_was_just_made_on_another_replica_can_be_bound(
    binder: tuple[InProcessClient, InProcessClient],
) -> None:
    first, second = binder
    with hearing_late(second):
        first.post(ROLES, role("new", rule("get"))).expect(201)
        second.post(BINDINGS, binding("mine", "new", User="jane"), headers=VIEWER).expect(201)


def test_a_right_that_was_just_taken_away_on_another_replica_cannot_be_given_on(
    binder: tuple[InProcessClient, InProcessClient],
) -> None:
    first, second = binder
    with hearing_late(second):
        first.delete(f"{BINDINGS}/readers").expect(200)
        given = second.post(BINDINGS, binding("mine", "reader", User="jane"), headers=VIEWER)
    given.refused(403, "Forbidden")


def test_a_role_cannot_be_bound_while_it_is_not_known_what_rights_there_are(
    binder: tuple[InProcessClient, InProcessClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def unknown() -> int:
        raise StorageUnavailable("gone")

    _, second = binder
    storage: Any = second.server.storage
    monkeypatch.setattr(storage._backend, "current_revision", unknown)
    given = second.post(BINDINGS, binding("mine", "reader", User="jane"), headers=VIEWER)
    given.refused(503, "ServiceUnavailable")


def test_without_etcd_any_version_is_still_read_writes_are_refused_in_time_and_all_comes_back(
    etcd: EtcdCluster, replica: Replica, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(etcd_client, "PATIENCE_SECONDS", 1.0)
    client, (member,) = replica(), etcd.members
    client.post(CLUSTERS, cluster("a")).expect(201)
    revision = revision_of(client.get(CLUSTERS).expect(200))
    with client.watch(CLUSTERS, resourceVersion=revision) as watch:
        member.kill()
        try:
            # Once the loss is known: a write that meets it has an unknown outcome, and is not to be repeated.
            eventually(lambda: client.get("/readyz").status == 500)
            refused = client.post(CLUSTERS, cluster("b"))
            refused.refused(503, "ServiceUnavailable")
            assert refused.header("Retry-After") == "1"
            assert names(client.get(CLUSTERS, resourceVersion="0").expect(200)) == ["a"]
            assert client.get(path_of("a"), resourceVersion="0").status == 200
            health = client.get("/readyz")
            assert health.status == 500
            assert b"[-]storage failed" in health.body
            assert client.get("/livez").status == 200
        finally:
            member.start()
        eventually(lambda: client.get("/readyz").status == 200)
        created = client.post(CLUSTERS, cluster("c")).expect(201)
        assert watch.next()["object"] == created


def test_an_object_too_large_for_etcd_is_refused_and_affects_no_other_write(replica: Replica, tmp_path: Path) -> None:
    (tmp_path / "small-etcd").mkdir()
    with EtcdCluster(tmp_path / "small-etcd", Settings(flags=("--max-request-bytes=600000",))) as small:
        client = replica(small.endpoints[0])
        # The first is refused by etcd, the second by its transport, which takes half a megabyte more; above 1.5 MiB we
        # refuse it ourselves.
        for size in (700_000, 1_400_000):
            refused = client.post(CLUSTERS, large_cluster(size))
            message = refused.refused(413, "RequestEntityTooLarge")["message"]
            assert "which is more than the storage takes" in message
            assert refused.header("Retry-After") is None
        client.post(CLUSTERS, large_cluster(1_600_000)).refused(413, "RequestEntityTooLarge")
        client.post(CLUSTERS, cluster("large")).expect(201)
        client.put(path_of("large"), large_cluster(700_000)).refused(413, "RequestEntityTooLarge")
        assert client.get("/readyz").status == 200
        client.post(CLUSTERS, large_cluster(400_000) | {"metadata": {"name": "fits"}}).expect(201)


def test_a_replica_that_was_away_while_history_was_forgotten_sends_its_watchers_to_list_again(
    etcd: EtcdCluster, replica: Replica
) -> None:
    with Relay(etcd.endpoints[0].partition("://")[2]) as relay:
        away, other = replica(f"http://{relay.endpoint}"), replica()
        for name in ("a", "b", "c"):
            away.post(CLUSTERS, cluster(name)).expect(201)
        listed = revision_of(away.get(CLUSTERS).expect(200))
        with away.watch(CLUSTERS, resourceVersion=listed) as watch:
            relay.cut()
            for name in ("a", "b"):
                other.delete(path_of(name)).expect(200)
            other.put(path_of("c"), cluster("c", "gce")).expect(200)
            created = other.post(CLUSTERS, cluster("d")).expect(201)
            etcd.etcdctl("compact", revision_of(created))
            relay.repair()
            assert watch.rest() == []
        # All changes or 410, never silence.
        with away.watch(CLUSTERS, resourceVersion=listed) as resumed:
            (event,) = resumed.rest()
        assert (event["type"], event["object"]["code"], event["object"]["reason"]) == ("ERROR", 410, "Expired")
        found = away.get(CLUSTERS).expect(200)
        assert names(found) == ["c", "d"]
        with away.watch(CLUSTERS, resourceVersion=revision_of(found)) as again:
            other.delete(path_of("c")).expect(200)
            assert again.next()["object"]["spec"] == {"cloudProvider": {"name": "gce"}}


def test_a_replica_that_was_cut_off_delivers_all_events_afterwards(etcd: EtcdCluster, replica: Replica) -> None:
    with Relay(etcd.endpoints[0].partition("://")[2]) as relay:
        away, other = replica(f"http://{relay.endpoint}"), replica()
        listed = revision_of(away.get(CLUSTERS).expect(200))
        with away.watch(CLUSTERS, resourceVersion=listed) as watch:
            relay.cut()
            for turn in range(3):
                other.post(CLUSTERS, cluster("a", labels={"turn": str(turn)})).expect(201)
                other.delete(path_of("a")).expect(200)
            relay.repair()
            events = watch.take(6)
        assert [event["type"] for event in events] == ["ADDED", "DELETED"] * 3
        assert [event["object"]["metadata"]["labels"]["turn"] for event in events] == ["0", "0", "1", "1", "2", "2"]


def test_a_replica_starts_and_is_read_while_etcd_takes_no_writes(tmp_path: Path) -> None:
    directory = tmp_path / "etcd"
    directory.mkdir()
    with EtcdCluster(directory, Settings(quota_bytes=600_000)) as etcd:
        flags = (f"--etcd-servers={etcd.endpoints[0]}",)
        with InProcess(tmp_path / "first", *flags).running() as first:
            first.client().post(CLUSTERS, cluster("a")).expect(201)
            first.client().post(BINDINGS, binding("viewers", "view", User="viewer")).expect(201)
        while not etcd.etcdctl("alarm", "list"):
            with contextlib.suppress(AssertionError):  # the one that raises the alarm
                etcd.etcdctl("put", "/elsewhere", "x" * 100_000)
        with InProcess(tmp_path / "second", *flags).running() as second:
            client = second.client()
            assert names(client.get(CLUSTERS).expect(200)) == ["a"]
            client.get(path_of("a")).expect(200)
            refused = client.post(CLUSTERS, cluster("b")).refused(503, "ServiceUnavailable")
            assert "its quota of space is used up" in refused["message"]
            client.get(path_of("a"), headers=VIEWER).expect(200)  # roles are there, too
