"""Retention over a real storage, with time that passes when the test says so."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from clusterregistry.apimachinery.meta import times
from clusterregistry.apiserver.controllers.retention import RetentionController
from clusterregistry.apiserver.storage.errors import StorageUnavailable
from clusterregistry.apiserver.storage.interface import Storage
from clusterregistry.apiserver.storage.object_bytes import decoded, to_stored
from clusterregistry.apiserver.storage.sqlite import SQLiteStorage
from tests.apiserver.controllers.sample_stores import SHIP, Fleet, fleet_over, sample_resource
from tests.apiserver.storage.lagging import Lagging

SECONDS = 60.0
NOTE = sample_resource("Note", namespaced=True, retention=SECONDS)
NOW = times.parse("2026-01-02T03:04:05Z").timestamp()


class FakeClock:
    """A clock on which sleeping takes no time."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def now(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        self.seconds += seconds


class Notes:
    """Notes and their retention."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet, self.clock = fleet, FakeClock()
        self.begin()

    def begin(self, *, wall: float = NOW) -> None:
        """Begins as a new process does."""
        self.controller = RetentionController(self.fleet.stores["Note"], clock=self.clock, wall=lambda: wall)

    async def pass_seconds(self, seconds: float) -> None:
        until = self.clock.seconds + seconds
        await self.controller.sweep()
        while self.clock.seconds < until:
            await self.clock.sleep(self.controller.interval)
            await self.controller.sweep()

    async def write(self, name: str, *, created: str = "2026-01-02T03:04:05Z", changed: str = "") -> None:
        """Stores a note as an earlier process has written it, by times on the wire."""
        store, key = self.fleet.store(name)
        fields = [{"manager": "m", "operation": "Update", "time": changed}] if changed else None
        await self.fleet.create(name)
        kept = await store.get(key)
        metadata = {**await self.fleet.metadata(name), "creationTimestamp": created}
        if fields:
            metadata["managedFields"] = fields
        await self.fleet.storage.update(
            kept.key, to_stored({**decoded(kept), "metadata": metadata}), expected=kept.revision
        )


@asynccontextmanager
async def notes_over(storage: Storage) -> AsyncIterator[Notes]:
    async with fleet_over(storage, [SHIP, NOTE]) as fleet:
        notes = Notes(fleet)
        yield notes
        notes.controller.close()


@pytest.fixture
async def storage(tmp_path: Path) -> AsyncIterator[SQLiteStorage]:
    storage = await SQLiteStorage.open(tmp_path / "registry.db")
    yield storage
    await storage.close()


@pytest.fixture
async def notes(storage: SQLiteStorage) -> AsyncIterator[Notes]:
    async with notes_over(storage) as notes:
        yield notes


async def test_an_object_goes_when_it_was_not_written_for_so_long(notes: Notes) -> None:
    await notes.pass_seconds(5)
    await notes.fleet.create("Note/ns/a", finalizers=["example.com/no-matter"])
    await notes.fleet.create("Ship/stays")
    await notes.pass_seconds(SECONDS - 2)
    assert await notes.fleet.exists("Note/ns/a")
    await notes.pass_seconds(4)
    assert await notes.fleet.names() == {"Ship/stays"}


async def test_each_write_begins_the_time_again(notes: Notes) -> None:
    await notes.pass_seconds(1)
    await notes.fleet.create("Note/ns/a")
    for at in range(4):
        await notes.pass_seconds(SECONDS - 5)
        await notes.fleet.change("Note/ns/a", labels={"at": str(at)})
    await notes.pass_seconds(SECONDS - 2)
    assert await notes.fleet.exists("Note/ns/a")
    await notes.pass_seconds(4)
    assert not await notes.fleet.exists("Note/ns/a")


async def test_after_a_start_the_times_of_the_metadata_count(notes: Notes) -> None:
    await notes.write("Note/ns/old", created="2026-01-02T02:00:00Z", changed="2026-01-02T02:30:00Z")
    await notes.write("Note/ns/half", created="2026-01-02T02:00:00Z", changed="2026-01-02T03:03:35Z")
    await notes.write("Note/ns/new", created="2026-01-02T03:04:04Z", changed="2026-01-02T02:00:00Z")
    await notes.write("Note/ns/unknown", created="2026-01-02T02:00:00Z")
    await notes.write("Note/ns/future", created="2026-01-02T02:00:00Z", changed="2099-01-02T03:04:05Z")
    await notes.write("Note/ns/written-since", created="2026-01-02T02:00:00Z", changed="2026-01-02T02:30:00Z")
    notes.begin()
    await notes.controller.sweep()
    await notes.fleet.change("Note/ns/written-since", labels={"a": "b"})
    await notes.pass_seconds(2)
    left = {"Note/ns/half", "Note/ns/new", "Note/ns/unknown", "Note/ns/future", "Note/ns/written-since"}
    assert await notes.fleet.names() == left
    await notes.pass_seconds(25)
    assert await notes.fleet.names() == left
    await notes.pass_seconds(10)
    assert await notes.fleet.names() == left - {"Note/ns/half"}
    await notes.pass_seconds(20)
    assert await notes.fleet.names() == left - {"Note/ns/half"}
    await notes.pass_seconds(10)
    assert await notes.fleet.names() == set()


async def test_many_expire_in_small_batches(notes: Notes) -> None:
    await notes.pass_seconds(1)
    for at in range(95):
        await notes.fleet.create(f"Note/ns/{at}")
    sizes: list[int] = []
    notes.fleet.storage.subscribe("/", lambda events: sizes.append(len(events)))
    await notes.pass_seconds(SECONDS + 2)
    assert await notes.fleet.names() == set()
    assert sum(sizes) == 95
    assert max(sizes) <= 20


async def test_an_object_that_is_written_while_it_expires_stays(notes: Notes, monkeypatch: pytest.MonkeyPatch) -> None:
    await notes.pass_seconds(1)
    await notes.fleet.create("Note/ns/a")
    await notes.fleet.create("Note/ns/b")
    cache = notes.fleet.stores["Note"].storage
    delete = cache.delete

    async def delete_later(key: str, **named: object) -> int:
        if key.endswith("a"):
            await notes.fleet.change("Note/ns/a", labels={"just": "now"})
        return await delete(key, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(cache, "delete", delete_later)
    await notes.pass_seconds(SECONDS + 1)
    assert await notes.fleet.names() == {"Note/ns/a"}


async def test_a_gap_begins_the_time_again(notes: Notes) -> None:
    await notes.pass_seconds(1)
    await notes.fleet.create("Note/ns/a")
    await notes.pass_seconds(SECONDS - 10)
    notes.controller._reset()  # a restore of etcd: revisions of another history say nothing
    await notes.pass_seconds(SECONDS - 5)
    assert await notes.fleet.exists("Note/ns/a")
    await notes.pass_seconds(10)
    assert not await notes.fleet.exists("Note/ns/a")


async def test_a_replica_without_the_writer_lease_is_later(storage: SQLiteStorage) -> None:
    async with notes_over(Lagging(storage)) as notes:
        await notes.pass_seconds(1)
        await notes.fleet.create("Note/ns/a")
        cache = notes.fleet.stores["Note"].storage
        await cache.wait_for(await cache.current_revision())
        await notes.pass_seconds(SECONDS + notes.controller.interval)
        assert await notes.fleet.exists("Note/ns/a")
        await notes.pass_seconds(3 * notes.controller.interval)
        assert not await notes.fleet.exists("Note/ns/a")


async def test_a_sweep_that_fails_is_made_up_for(notes: Notes, monkeypatch: pytest.MonkeyPatch) -> None:
    await notes.pass_seconds(1)
    await notes.fleet.create("Note/ns/a")
    cache = notes.fleet.stores["Note"].storage

    async def fail(*_: object, **_named: object) -> int:
        raise StorageUnavailable("not now")

    with monkeypatch.context() as failing:
        failing.setattr(cache, "delete", fail)
        with pytest.raises(StorageUnavailable):
            await notes.pass_seconds(SECONDS + 5)
    await notes.pass_seconds(1)
    assert not await notes.fleet.exists("Note/ns/a")


@pytest.mark.parametrize(("retention", "interval"), [(1.0, 0.2), (60.0, 1.0), (3600.0, 60.0), (86400.0, 60.0)])
async def test_sweeps_are_a_sixtieth_of_the_retention_apart_within_bounds(
    storage: SQLiteStorage, retention: float, interval: float
) -> None:
    async with fleet_over(storage, [sample_resource("Note", retention=retention)]) as fleet:
        controller = RetentionController(fleet.stores["Note"])
        assert controller.interval == interval
        controller.close()
