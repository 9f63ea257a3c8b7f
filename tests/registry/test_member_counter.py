"""The counter of members over real storages, with time that passes when the test says so."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from clusterregistry.apimachinery.meta import errors, times
from clusterregistry.apimachinery.meta.errors import APIError
from clusterregistry.apiserver.controllers.work_queue import UNPACED
from clusterregistry.apiserver.endpoints.request_scope import field_managers
from clusterregistry.apiserver.registry.deletion import DeleteOptions
from clusterregistry.apiserver.registry.group_index import GroupIndex
from clusterregistry.apiserver.registry.rbac.bootstrap import ServerWriter
from clusterregistry.apiserver.registry.resource import Resource
from clusterregistry.apiserver.registry.store import Store
from clusterregistry.apiserver.storage import interface
from clusterregistry.apiserver.storage.cacher import Cacher
from clusterregistry.apiserver.storage.errors import StorageUnavailable
from clusterregistry.apiserver.storage.interface import Event, Storage
from clusterregistry.apiserver.storage.object_bytes import decoded, presented
from clusterregistry.registry.cluster import cluster_resource
from clusterregistry.registry.clusterset import cluster_set_resource
from clusterregistry.registry.clusterset.member_counter import (
    INTERVAL,
    MANAGER,
    OTHERS_LATER,
    SETTLE_SECONDS,
    MemberCounter,
    with_status,
)
from clusterregistry.registry.clusterset.membership import CLUSTER_SETS
from tests.apiserver.api.objects import cluster
from tests.apiserver.storage.engines import SHARED, SOLE_WRITERS, Engine, SharedEngine, settled

ENGINES = {"sqlite": SOLE_WRITERS["sqlite"], "etcd": SHARED["etcd"]}
PATIENCE = 60.0


class FakeClock:
    """A clock on which sleeping takes no time, but lets others work."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    def now(self) -> float:
        return sum(self.slept)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await asyncio.sleep(0)


class Replica:
    """One server's clusters and sets, and its counter."""

    def __init__(self, storage: Storage, clusters: Store, sets: Store, index: GroupIndex) -> None:
        self.storage, self.clusters, self.sets, self.index = storage, clusters, sets, index
        self.clock = FakeClock()
        self.edit_cluster, self.edit_set = _writer(clusters), _writer(sets)
        self.count_set = _writer(sets, "status")
        self.begin()

    def begin(self) -> None:
        """Begins as a new process does."""
        self.counter = MemberCounter(self.count_set, self.index, clock=self.clock, pace=UNPACED)
        self.counter._add_all()

    async def add_cluster(self, name: str, **labels: str) -> None:
        await self.edit_cluster.create(cluster(name, labels=labels), manager="editor")

    async def label(self, name: str, **labels: str) -> None:
        def change(obj: dict[str, Any]) -> dict[str, Any]:
            return {**obj, "metadata": {**obj["metadata"], "labels": labels}}

        await self.edit_cluster.change(name, change, manager="editor")

    async def remove(self, name: str) -> None:
        await self.clusters.delete(name, DeleteOptions())

    async def add_set(self, name: str, selector: Mapping[str, str] | None = None, names: Sequence[str] = ()) -> None:
        spec: dict[str, Any] = {"clusters": list(names)}
        if selector is not None:
            spec["selector"] = {"matchLabels": dict(selector)}
        obj = {"apiVersion": "clusterregistry.k8s.io/v1beta1", "kind": "ClusterSet", "metadata": {"name": name}}
        await self.edit_set.create({**obj, "spec": spec}, manager="editor")

    async def redefine(self, name: str, **spec: Any) -> None:
        await self.edit_set.change(name, lambda obj: {**obj, "spec": spec}, manager="editor")

    async def count(self) -> None:
        """Counts all that has changed by now."""
        await settled(self.storage)
        while not self.counter.is_idle:
            await self.counter.count_due()
            await settled(self.storage)

    async def stored(self, name: str) -> dict[str, Any]:
        return decoded(await self.sets.get(name))

    async def status(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = (await self.stored(name)).get("status", {})
        return found

    async def until_counts(self, wanted: dict[str, int]) -> None:
        """Returns once the counter, which runs, has written these numbers."""
        written = asyncio.Event()
        subscription = self.sets.storage.subscribe(self.sets.prefix, lambda _: written.set())
        while await self.counts() != wanted:
            await written.wait()
            written.clear()
        subscription.close()

    async def counts(self) -> dict[str, int]:
        page = await self.sets.storage.list(self.sets.prefix)
        return {self.sets.key_in(kv): decoded(kv).get("status", {}).get("clusters") for kv in page.items}


def _writer(store: Store, subresource: str = "") -> ServerWriter:
    managers = field_managers(store.resource, store.resource.stored_as, now=times.present)
    return ServerWriter(store=store, field_manager=managers[subresource], subresource=subresource)


async def replica(storage: Storage, stack: AsyncExitStack) -> Replica:
    async def store(resource: Resource) -> Store:
        prefix = interface.prefix_of(resource.group, resource.plural)
        cacher = await Cacher.open(storage, prefix, present=presented)
        stack.push_async_callback(cacher.close)
        return Store(resource, cacher, now=times.present, corrupt=cacher.corrupt)

    clusters, sets = await store(cluster_resource("off")), await store(cluster_set_resource())
    index = await GroupIndex.open(clusters, sets, CLUSTER_SETS)
    stack.callback(index.close)
    made = Replica(storage, clusters, sets, index)
    stack.callback(lambda: made.counter.close())  # noqa: PLW0108 - a test may begin another one
    return made


@pytest.fixture(params=list(ENGINES))
async def engine(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Engine]:
    engine = ENGINES[request.param](tmp_path)
    yield engine
    await engine.close()


@pytest.fixture
async def one(engine: Engine) -> AsyncIterator[Replica]:
    async with AsyncExitStack() as stack:
        yield await replica(await engine.open(), stack)


@pytest.fixture
async def pair(tmp_path: Path) -> AsyncIterator[tuple[Replica, Replica]]:
    engine: SharedEngine = SHARED["etcd"](tmp_path)
    async with AsyncExitStack() as stack:
        yield await replica(await engine.open(), stack), await replica(await engine.open_second(), stack)
    await engine.close()


async def test_counts_follow_clusters_labels_and_definitions(one: Replica) -> None:
    await one.add_set("prod", {"env": "prod"}, ["named", "absent"])
    await one.count()
    status = await one.status("prod")
    (condition,) = status["conditions"]
    assert (status["clusters"], status["observedGeneration"]) == (0, 1)
    assert (condition["type"], condition["status"], condition["reason"]) == ("ClustersFound", "False", "NameNotFound")
    assert "absent, named" in condition["message"]
    await one.add_cluster("named")
    await one.add_cluster("absent")
    await one.add_cluster("other", env="prod")
    await one.count()
    status = await one.status("prod")
    assert (status["clusters"], status["conditions"][0]["status"]) == (3, "True")
    await one.label("other", env="dev")
    await one.count()
    assert await one.counts() == {"prod": 2}
    await one.redefine("prod", selector={"matchLabels": {"env": "dev"}})
    await one.count()
    status = await one.status("prod")
    assert (status["clusters"], status["observedGeneration"]) == (1, 2)
    await one.remove("other")
    await one.count()
    assert await one.counts() == {"prod": 0}
    managers = {
        each["manager"]: each.get("subresource") for each in (await one.stored("prod"))["metadata"]["managedFields"]
    }
    assert managers == {"editor": None, MANAGER: "status"}


async def test_a_burst_of_label_changes_is_one_write_of_each_set(one: Replica) -> None:
    await one.add_set("prod", {"env": "prod"})
    await one.add_set("dev", {"env": "dev"})
    await asyncio.gather(*(one.add_cluster(f"c-{number}", env="dev") for number in range(100)))
    await one.count()
    events: list[Event] = []
    subscription = one.sets.storage.subscribe(one.sets.prefix, events.extend)
    await asyncio.gather(*(one.label(f"c-{number}", env="prod") for number in range(100)))
    await one.count()
    subscription.close()
    assert await one.counts() == {"prod": 100, "dev": 0}
    assert sorted(event.key.rpartition("/")[2] for event in events) == ["dev", "prod"]


async def test_a_status_that_is_right_is_not_written(one: Replica) -> None:
    await one.add_set("prod", {"env": "prod"}, ["absent"])
    await one.add_cluster("a", env="prod")
    await one.count()
    before = await one.storage.current_revision()
    await one.label("a", env="prod", tier="b")
    one.begin()
    await one.count()
    assert await one.storage.current_revision() == before + 1


async def test_the_time_of_the_condition_is_that_of_its_last_change_of_status() -> None:
    at = iter(["2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z"])

    def of(obj: dict[str, Any], *absent: str) -> dict[str, Any]:
        return with_status(obj, members=1, absent=absent, now=lambda: next(at))

    obj = of({"metadata": {"name": "a", "generation": 1}}, "x")
    obj = of(obj, "x", "y")
    assert obj["status"]["conditions"][0]["lastTransitionTime"] == "2026-01-01T00:00:00Z"
    assert of(obj, "x", "y") is obj
    obj = of(obj)
    assert obj["status"]["conditions"][0]["lastTransitionTime"] == "2026-01-02T00:00:00Z"
    many = [f"c-{number}" for number in range(12)]
    assert of(obj, *many)["status"]["conditions"][0]["message"].endswith("c-9 and 2 more.")


async def test_a_storage_that_does_not_answer_is_asked_again(
    one: Replica, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    await one.add_set("prod", {})
    await settled(one.storage)
    update = one.sets.storage.update
    failures = iter([StorageUnavailable("gone"), errors.service_unavailable("lost")])

    async def failing(*arguments: Any, **keywords: Any) -> int:
        for failure in failures:
            raise failure
        return await update(*arguments, **keywords)

    monkeypatch.setattr(one.sets.storage, "update", failing)
    with caplog.at_level(logging.WARNING):
        task = asyncio.create_task(one.counter.run())
        async with asyncio.timeout(PATIENCE):
            await one.until_counts({"prod": 0})
        task.cancel()
    assert caplog.text.count("the members of sets cannot be counted now") == 2


async def test_one_that_runs_pauses_between_two_looks(one: Replica) -> None:
    task = asyncio.create_task(one.counter.run())
    await one.add_set("prod", {})
    async with asyncio.timeout(PATIENCE):
        for number in range(1, 4):
            await one.add_cluster(f"c-{number}")
            await one.until_counts({"prod": number})
    task.cancel()
    looks = len(one.clock.slept) // 2
    assert one.clock.now() >= (looks - 1) * INTERVAL


class NotFirst:
    """The pace of a replica beside one that writes first."""

    def before_work(self) -> float:
        return 0.0

    def when_overtaken(self) -> float:
        return 0.5


async def test_a_replica_beside_the_one_that_writes_first_is_later(one: Replica) -> None:
    await one.add_set("prod", {})
    await settled(one.storage)
    one.counter.close()
    one.counter = MemberCounter(one.count_set, one.index, clock=one.clock, pace=NotFirst())
    task = asyncio.create_task(one.counter.run())
    async with asyncio.timeout(PATIENCE):
        await one.until_counts({"prod": 0})
    task.cancel()
    assert one.clock.slept[0] == SETTLE_SECONDS + OTHERS_LATER + 0.5


async def test_a_set_that_is_deleted_meanwhile_is_forgotten(one: Replica) -> None:
    await one.add_set("prod", {})
    await settled(one.storage)
    write = one.counter._write

    async def write_late(names: Sequence[str]) -> None:
        await one.sets.delete("prod", DeleteOptions())
        await write(names)

    one.counter._write = write_late  # type: ignore[method-assign]
    await one.counter.count_due()
    with pytest.raises(APIError):
        await one.stored("prod")


async def test_a_status_of_an_earlier_definition_is_not_written(one: Replica) -> None:
    """Until the event of the new definition arrives, the index counts by the old one."""
    await one.add_set("prod", {"env": "prod"})
    await one.add_cluster("a", env="dev")
    await one.count()
    one.index.close()
    await one.redefine("prod", selector={"matchLabels": {"env": "dev"}})
    await one.count()
    status = await one.status("prod")
    assert (status["clusters"], status["observedGeneration"]) == (0, 1)


async def test_two_replicas_come_to_the_same_counts_and_then_rest(pair: tuple[Replica, Replica]) -> None:
    chance = random.Random(11)
    for name in ("prod", "dev"):
        await pair[0].add_set(name, {"env": name}, ["c-1"])
    for number in range(10):
        await pair[0].add_cluster(f"c-{number}", env="prod")
    for _ in range(10):
        for _ in range(5):
            await chance.choice(pair).label(f"c-{chance.randrange(10)}", env=chance.choice(["prod", "dev"]))
        await asyncio.gather(*(each.count() for each in pair))
    async with asyncio.timeout(PATIENCE):
        while not all(each.counter.is_idle for each in pair):
            await asyncio.gather(*(each.count() for each in pair))
    for each in pair:
        assert await each.counts() == {name: each.index.count(name) for name in ("prod", "dev")}
    before = await pair[0].storage.current_revision()
    for each in pair:
        each.begin()
        await each.count()
    assert await pair[0].storage.current_revision() == before
