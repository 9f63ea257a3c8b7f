"""All controllers together, started and stopped as a server does, and two servers on one storage."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from clusterregistry.apiserver.controllers import run, work_queue
from clusterregistry.apiserver.controllers.garbage_collector import GarbageCollector
from clusterregistry.apiserver.controllers.run import run_server_controllers
from clusterregistry.apiserver.registry.coordination.lease import lease_resource
from clusterregistry.apiserver.registry.core.event import event_resource
from clusterregistry.apiserver.registry.core.namespace import PERMANENT, namespace_resource
from clusterregistry.apiserver.storage.errors import StorageUnavailable
from clusterregistry.apiserver.storage.interface import Storage
from clusterregistry.apiserver.storage.sqlite import SQLiteStorage
from tests.apiserver.controllers.sample_stores import CRATE, SHIP, Fleet, fleet_over, writer_of
from tests.apiserver.storage.engines import SHARED, SharedEngine

RESOURCES = (namespace_resource(), lease_resource(), event_resource(retention=3600.0), SHIP, CRATE)
ALWAYS = {f"Namespace/{name}" for name in PERMANENT}
SECONDS = 30.0


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "_START_DELAY", 0.0)
    monkeypatch.setattr(work_queue, "_SETTLE_SECONDS", 0.0)
    monkeypatch.setattr(work_queue, "_JITTER_SECONDS", 0.1)


@asynccontextmanager
async def served(storage: Storage) -> AsyncIterator[Fleet]:
    async with (
        fleet_over(storage, RESOURCES) as fleet,
        run_server_controllers(list(fleet.stores.values()), writer_of=writer_of),
    ):
        yield fleet


async def eventually(happens: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(SECONDS):
        while not await happens():  # noqa: ASYNC110 - it is about several controllers
            await asyncio.sleep(0.01)


async def has(fleet: Fleet, *names: str) -> None:
    """Returns once exactly these objects exist besides the namespaces that always do."""

    async def looks() -> bool:
        return await fleet.names() == ALWAYS | set(names)

    await eventually(looks)


@pytest.fixture
async def storage(tmp_path: Path) -> AsyncIterator[SQLiteStorage]:
    storage = await SQLiteStorage.open(tmp_path / "registry.db")
    yield storage
    await storage.close()


async def test_what_was_begun_before_a_restart_is_finished_after_it(storage: SQLiteStorage) -> None:
    async with fleet_over(storage, RESOURCES) as fleet:
        await fleet.create("Namespace/ends")
        await fleet.create("Lease/ends/a")
        ship = await fleet.create("Ship/one")
        await fleet.create("Crate/ends/a", ship)
        await fleet.create("Ship/two", ship)
        await fleet.delete("Ship/one", "Foreground")
        await fleet.delete("Namespace/ends")
    async with served(storage) as fleet:
        assert await fleet.names() >= ALWAYS
        await has(fleet)


async def test_controllers_stop_promptly(storage: SQLiteStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work_queue, "_SETTLE_SECONDS", 3600.0)
    async with asyncio.timeout(SECONDS), served(storage) as fleet:
        await fleet.create("Namespace/a")
        await fleet.delete("Namespace/a")
    assert len(asyncio.all_tasks()) == 1


async def test_a_server_starts_on_a_storage_that_cannot_be_written(
    storage: SQLiteStorage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(*_: object) -> int:
        raise StorageUnavailable("the disk is full")

    async with fleet_over(storage, RESOURCES) as fleet:
        with monkeypatch.context() as failing:
            failing.setattr(fleet.stores["Namespace"].storage, "create", fail)
            running = run_server_controllers(list(fleet.stores.values()), writer_of=writer_of)
            await running.__aenter__()
        assert "the disk is full" in caplog.text
        await has(fleet)
        await running.__aexit__(None, None, None)


async def test_a_controller_that_fails_begins_again(
    storage: SQLiteStorage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(run, "_RESTART_DELAY", 0.0)
    load = GarbageCollector._load
    failures = [RuntimeError("a mistake")]

    async def fail_once(collector: GarbageCollector) -> None:
        if failures:
            raise failures.pop()
        await load(collector)

    monkeypatch.setattr(GarbageCollector, "_load", fail_once)
    async with served(storage) as fleet:
        await fleet.create("Ship/one")
        await fleet.delete("Ship/one", "Foreground")
        await has(fleet)
    assert "a mistake" in caplog.text


@pytest.fixture(params=SHARED)
async def engine(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[SharedEngine]:
    engine = SHARED[request.param](tmp_path)
    yield engine
    await engine.close()


async def test_two_replicas_do_the_work_together(engine: SharedEngine) -> None:
    one_storage, two_storage = await engine.open(), await engine.open_second()
    async with served(one_storage) as one, served(two_storage) as two:
        await has(one)
        await has(two)
        ship = await one.create("Ship/one")
        await one.create("Namespace/ends")

        async def is_seen() -> bool:
            return two.stores["Namespace"].storage.get_stale("/namespaces/ends") is not None

        await eventually(is_seen)
        for at in range(30):
            await two.create(f"Crate/ends/{at}", {**ship, "blockOwnerDeletion": at % 2 == 0})
            await one.create(f"Lease/ends/{at}")
        await two.create("Crate/default/kept")
        await one.delete("Ship/one", "Foreground")
        await two.delete("Namespace/ends")
        await has(one, "Crate/default/kept")
        await has(two, "Crate/default/kept")


async def test_a_replica_knows_a_namespace_that_another_one_has_just_created(engine: SharedEngine) -> None:
    one_storage, two_storage = await engine.open(), await engine.open_second()
    async with served(one_storage) as one, served(two_storage) as two:
        for at in range(5):
            await one.create(f"Namespace/new-{at}")
            await two.create(f"Lease/new-{at}/a")
