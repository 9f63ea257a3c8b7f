"""Staleness over a real storage, with time that passes when the test says so."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from clusterregistry.api.clusterregistry import GROUP
from clusterregistry.apimachinery.meta import errors, times
from clusterregistry.apiserver.endpoints.request_scope import field_managers
from clusterregistry.apiserver.registry.deletion import DeleteOptions
from clusterregistry.apiserver.registry.rbac.bootstrap import ServerWriter
from clusterregistry.apiserver.registry.store import Store
from clusterregistry.apiserver.storage import interface
from clusterregistry.apiserver.storage.cacher import Cacher
from clusterregistry.apiserver.storage.errors import StorageUnavailable
from clusterregistry.apiserver.storage.interface import Storage
from clusterregistry.apiserver.storage.object_bytes import decoded, presented
from clusterregistry.apiserver.storage.sqlite import SQLiteStorage
from clusterregistry.registry.cluster import cluster_resource
from clusterregistry.registry.cluster.staleness import MANAGER, StalenessController
from tests.apiserver.api.objects import cluster
from tests.apiserver.storage.engines import SHARED, settled

INTERVAL = 30.0
STALE_AFTER = 3 * INTERVAL
RESOURCE = cluster_resource("off")
PREFIX = interface.prefix_of(GROUP, "clusters")
OBSERVED = "2026-01-02T03:04:05Z"
OK = {"type": "OK", "status": "True", "reason": "Ready", "message": "", "lastTransitionTime": OBSERVED}
REACHABLE = {"type": "Reachable", "status": "True"}


class FakeClock:
    """A clock on which sleeping takes no time."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def now(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        self.seconds += seconds


class Replica:
    """One server's clusters, and their staleness."""

    def __init__(self, storage: Storage, store: Store) -> None:
        self.storage, self.store, self.clock = storage, store, FakeClock()
        self.observer = self._writer("status")
        self.begin()

    def _writer(self, subresource: str) -> ServerWriter:
        managers = field_managers(RESOURCE, RESOURCE.stored_as, now=times.present)
        return ServerWriter(store=self.store, field_manager=managers[subresource], subresource=subresource)

    def begin(self) -> None:
        """Begins as a new process does."""
        self.controller = StalenessController(self._writer("status"), interval=INTERVAL, clock=self.clock)

    async def pass_seconds(self, seconds: float) -> None:
        until = self.clock.seconds + seconds
        await self.controller.sweep()
        while self.clock.seconds < until:
            await self.clock.sleep(self.controller.sweep_interval)
            await self.controller.sweep()

    async def observe(self, name: str, observed_at: str = OBSERVED, **status: Any) -> None:
        """Writes a status as an observer does, of a cluster that is made if there is none."""
        if self.store.get_cached(name) is None:
            await self._writer("").create(cluster(name), manager="editor")
        sent = {"state": "Ready", "observedAt": observed_at, **status}
        await self.observer.change(name, lambda obj: {**obj, "status": sent}, manager="observer")

    async def label(self, name: str, value: str) -> None:
        def change(obj: dict[str, Any]) -> dict[str, Any]:
            return {**obj, "metadata": {**obj["metadata"], "labels": {"l": value}}}

        await self._writer("").change(name, change, manager="editor")

    async def status(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = decoded(await self.store.get(name)).get("status", {})
        return found

    async def state(self, name: str) -> str | None:
        return (await self.status(name)).get("state")


async def replica(storage: Storage, stack: AsyncExitStack) -> Replica:
    cacher = await Cacher.open(storage, PREFIX, present=presented)
    stack.push_async_callback(cacher.close)
    return Replica(storage, Store(RESOURCE, cacher, now=times.present, corrupt=cacher.corrupt))


@pytest.fixture
async def clusters(tmp_path: Path) -> AsyncIterator[Replica]:
    storage = await SQLiteStorage.open(tmp_path / "registry.db")
    async with AsyncExitStack() as stack:
        stack.push_async_callback(storage.close)
        clusters = await replica(storage, stack)
        await clusters.pass_seconds(5)
        yield clusters
        clusters.controller.close()


async def test_a_status_that_is_not_renewed_becomes_stale_and_keeps_everything_else(clusters: Replica) -> None:
    nodes: dict[str, Any] = {"nodes": {"total": 3}, "version": {"kubernetes": "v1.36.0"}}
    await clusters.observe("a", conditions=[REACHABLE, OK], **nodes)
    await clusters.pass_seconds(STALE_AFTER - 3)
    assert await clusters.state("a") == "Ready"
    await clusters.pass_seconds(6)
    status = await clusters.status("a")
    reachable, ok = status.pop("conditions")
    assert status == {"state": "Stale", "observedAt": OBSERVED, **nodes}
    assert reachable == REACHABLE
    assert ok.pop("lastTransitionTime") > OBSERVED
    assert ok == {
        "type": "OK",
        "status": "Unknown",
        "reason": "StatusStale",
        "message": "The status was not renewed for 1m30s.",
    }


async def test_each_renewal_begins_the_time_again(clusters: Replica) -> None:
    for turn in range(4):
        await clusters.observe("a", f"2026-01-02T03:0{turn}:00Z")
        await clusters.pass_seconds(STALE_AFTER - 3)
        assert await clusters.state("a") == "Ready"


async def test_labels_do_not_keep_a_status_fresh(clusters: Replica) -> None:
    await clusters.observe("a")
    for turn in range(10):
        await clusters.pass_seconds(STALE_AFTER / 9)
        await clusters.label("a", str(turn))
    assert await clusters.state("a") == "Stale"


@pytest.mark.parametrize("observed_at", ["2001-01-01T00:00:00Z", "2099-01-01T00:00:00Z"])
async def test_the_clock_of_the_observer_does_not_matter(clusters: Replica, observed_at: str) -> None:
    await clusters.observe("a", observed_at)
    await clusters.pass_seconds(STALE_AFTER - 3)
    assert await clusters.state("a") == "Ready"
    await clusters.pass_seconds(6)
    assert await clusters.status("a") == {"state": "Stale", "observedAt": observed_at}


@pytest.mark.parametrize("state", ["Degraded", "Unreachable", "Denied"])
async def test_states_that_are_worse_are_no_longer_known_either(clusters: Replica, state: str) -> None:
    await clusters.observe("a", state=state)
    await clusters.pass_seconds(STALE_AFTER + 3)
    assert await clusters.state("a") == "Stale"


async def test_clusters_that_are_not_observed_are_left_alone(clusters: Replica) -> None:
    await clusters.store.create(cluster("bare"), dry_run=False, warn=print)
    await clusters.observe("never", state="Never")
    await clusters.observe("conditions")
    await clusters.observer.change(
        "conditions", lambda obj: {**obj, "status": {"conditions": [OK], "capacity": {"observedAt": "5"}}}, manager="m"
    )
    await clusters.observe("stale", state="Stale")
    revision = clusters.storage.revision
    await clusters.pass_seconds(3 * STALE_AFTER)
    assert clusters.storage.revision == revision


async def test_a_stale_status_is_written_once_and_can_be_renewed(clusters: Replica) -> None:
    await clusters.observe("a")
    revision = clusters.storage.revision
    await clusters.pass_seconds(3 * STALE_AFTER)
    assert clusters.storage.revision == revision + 1
    await clusters.observe("a", "2026-01-02T05:00:00Z")
    await clusters.pass_seconds(STALE_AFTER - 3)
    assert await clusters.state("a") == "Ready"
    await clusters.pass_seconds(6)
    assert await clusters.state("a") == "Stale"


async def test_a_condition_that_was_unknown_already_keeps_the_time_of_its_transition(clusters: Replica) -> None:
    await clusters.observe("a", conditions=[{**OK, "status": "Unknown"}])
    await clusters.pass_seconds(STALE_AFTER + 3)
    (ok,) = (await clusters.status("a"))["conditions"]
    assert (ok["reason"], ok["lastTransitionTime"]) == ("StatusStale", OBSERVED)


async def test_after_a_start_every_cluster_has_three_whole_intervals(clusters: Replica) -> None:
    await clusters.observe("a", "2001-01-01T00:00:00Z")
    await clusters.pass_seconds(STALE_AFTER - 3)
    clusters.controller.close()
    clusters.clock.seconds += 10_000  # the server was down
    clusters.begin()
    await clusters.pass_seconds(STALE_AFTER - 3)
    assert await clusters.state("a") == "Ready"
    await clusters.pass_seconds(6)
    assert await clusters.state("a") == "Stale"


async def test_after_the_storage_did_not_answer_the_time_begins_again(
    clusters: Replica, monkeypatch: pytest.MonkeyPatch
) -> None:
    await clusters.observe("a")
    with monkeypatch.context() as patched:
        patched.setattr(clusters.storage, "problem", lambda: "the disk is full")
        await clusters.pass_seconds(2 * STALE_AFTER)
    await clusters.pass_seconds(STALE_AFTER - 3)
    assert await clusters.state("a") == "Ready"
    await clusters.pass_seconds(6)
    assert await clusters.state("a") == "Stale"


async def test_after_events_were_lost_and_after_the_process_stood_still_the_time_begins_again(
    clusters: Replica,
) -> None:
    await clusters.observe("a")
    await clusters.pass_seconds(STALE_AFTER - 3)
    clusters.controller._reset()
    await clusters.pass_seconds(STALE_AFTER - 3)
    clusters.clock.seconds += 2 * INTERVAL  # such as after a SIGSTOP
    await clusters.pass_seconds(STALE_AFTER - 3)
    assert await clusters.state("a") == "Ready"
    await clusters.pass_seconds(6)
    assert await clusters.state("a") == "Stale"


async def test_a_renewal_that_comes_between_look_and_write_wins(
    clusters: Replica, monkeypatch: pytest.MonkeyPatch
) -> None:
    await clusters.observe("a")
    await clusters.pass_seconds(STALE_AFTER - 3)
    update, renewals = clusters.storage.update, ["2026-01-02T03:05:00Z"]

    async def after_a_renewal(key: str, value: bytes, **named: Any) -> int:
        if renewals:
            await clusters.observe("a", renewals.pop())
        return await update(key, value, **named)

    monkeypatch.setattr(clusters.storage, "update", after_a_renewal)
    await clusters.pass_seconds(6)
    assert renewals == []
    assert await clusters.status("a") == {"state": "Ready", "observedAt": "2026-01-02T03:05:00Z"}
    await clusters.pass_seconds(STALE_AFTER)
    assert await clusters.state("a") == "Stale"


async def test_a_cluster_that_is_deleted_or_cannot_be_written_does_not_hold_up_others(
    clusters: Replica, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("a", "gone", "invalid"):
        await clusters.observe(name)
    change, attempts = ServerWriter.change, []

    async def refused(writer: ServerWriter, name: str, *given: Any, **named: Any) -> None:
        attempts.append(name)
        if name == "invalid":
            raise errors.invalid(group=GROUP, kind="Cluster", name=name, errors=[])
        if name == "gone":
            await clusters.store.delete(name, DeleteOptions())
        await change(writer, name, *given, **named)

    monkeypatch.setattr(ServerWriter, "change", refused)
    await clusters.pass_seconds(2 * STALE_AFTER)
    assert sorted(attempts) == ["a", "gone", "invalid"]
    assert await clusters.state("a") == "Stale"
    assert "/invalid cannot be marked as stale" in caplog.text


async def test_a_storage_that_fails_is_tried_again_later(
    clusters: Replica, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    await clusters.observe("a")
    update = clusters.storage.update

    async def failing(*_: Any, **__: Any) -> int:
        raise StorageUnavailable("no space")

    monkeypatch.setattr(clusters.storage, "update", failing)
    running = asyncio.create_task(clusters.controller.run())
    async with asyncio.timeout(60):
        while "cannot be marked as stale now" not in caplog.text:  # noqa: ASYNC110 - a log has no event
            await asyncio.sleep(0.001)
        monkeypatch.setattr(clusters.storage, "update", update)
        while await clusters.state("a") != "Stale":  # noqa: ASYNC110 - as above
            await asyncio.sleep(0.001)
    running.cancel()


async def test_many_clusters_become_stale_without_a_long_turn_of_the_loop(clusters: Replica) -> None:
    count = 300
    await asyncio.gather(*(clusters.observe(f"c-{number}") for number in range(count)))
    most_in_flight = in_flight = 0
    update = clusters.storage.update

    async def counted(*given: Any, **named: Any) -> int:
        nonlocal in_flight, most_in_flight
        in_flight += 1
        most_in_flight = max(most_in_flight, in_flight)
        try:
            return await update(*given, **named)
        finally:
            in_flight -= 1

    clusters.storage.update = counted  # type: ignore[method-assign]
    await clusters.pass_seconds(STALE_AFTER + 3)
    states = [decoded(kv)["status"]["state"] for kv in (await clusters.store.storage.list(PREFIX)).items]
    assert states == ["Stale"] * count
    assert most_in_flight <= 20


@pytest.mark.parametrize("engine", ["etcd", "lagging-cacher"])
async def test_of_two_replicas_one_writes_each_cluster(tmp_path: Path, engine: str) -> None:
    shared = SHARED[engine](tmp_path)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(shared.close)
        both = [await replica(await shared.open(), stack), await replica(await shared.open_second(), stack)]
        for number in range(30):
            await both[number % 2].observe(f"c-{number}")
        for each in both:
            await settled(each.storage)
        revision = await both[0].storage.current_revision()
        for _ in range(int(STALE_AFTER + 10)):
            for each in both:
                each.clock.seconds += 1
            await asyncio.gather(*(each.controller.sweep() for each in both))
        for each in both:
            await settled(each.storage)
            assert [await each.state(f"c-{number}") for number in range(30)] == ["Stale"] * 30
        history = await both[0].storage.history(PREFIX, after=revision)
        assert len(history) == 30
        for each in both:
            each.controller.close()


async def test_the_server_writes_under_a_name_of_its_own(clusters: Replica) -> None:
    await clusters.observe("a", conditions=[OK])
    await clusters.pass_seconds(STALE_AFTER + 3)
    managed = decoded(await clusters.store.get("a"))["metadata"]["managedFields"]
    (own,) = [entry for entry in managed if entry["manager"] == MANAGER]
    assert (own["operation"], own["subresource"]) == ("Update", "status")
    assert own["fieldsV1"] == {
        "f:status": {
            "f:state": {},
            "f:conditions": {
                'k:{"type":"OK"}': {"f:lastTransitionTime": {}, "f:message": {}, "f:reason": {}, "f:status": {}}
            },
        }
    }
