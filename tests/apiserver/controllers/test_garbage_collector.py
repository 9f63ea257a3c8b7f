"""Garbage collection over a real storage, step by step."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from clusterregistry.apimachinery.meta import errors
from clusterregistry.apiserver.controllers.dependency_graph import served_types
from clusterregistry.apiserver.controllers.garbage_collector import GarbageCollector
from clusterregistry.apiserver.storage.sqlite import SQLiteStorage
from tests.apiserver.controllers.sample_stores import API_VERSION, SHIP, Fleet, fleet_over, sample_resource, settle

HOLD = "example.com/hold"


@pytest.fixture
async def fleet(tmp_path: Path) -> AsyncIterator[Fleet]:
    storage = await SQLiteStorage.open(tmp_path / "registry.db")
    async with fleet_over(storage) as fleet:
        yield fleet
    await storage.close()


@pytest.fixture
async def collector(fleet: Fleet) -> AsyncIterator[GarbageCollector]:
    collector = fleet.collector()
    await settle(collector)
    yield collector
    collector.close()


def blocking(owner: dict[str, Any]) -> dict[str, Any]:
    return {**owner, "blockOwnerDeletion": True}


async def test_an_object_goes_with_its_last_owner(fleet: Fleet, collector: GarbageCollector) -> None:
    one, two = await fleet.create("Ship/one"), await fleet.create("Ship/two")
    await fleet.create("Crate/ns/a", one, two)
    await fleet.create("Crate/ns/b", one)
    await fleet.create("Crate/ns/free")
    await fleet.delete("Ship/one")
    await settle(collector)
    assert await fleet.names() == {"Ship/two", "Crate/ns/a", "Crate/ns/free"}
    assert (await fleet.metadata("Crate/ns/a"))["ownerReferences"] == [two]
    await fleet.delete("Ship/two")
    await settle(collector)
    assert await fleet.names() == {"Crate/ns/free"}


async def test_dependents_of_dependents_go_too(fleet: Fleet, collector: GarbageCollector) -> None:
    owner = await fleet.create("Ship/top")
    for depth in range(30):
        owner = await fleet.create(f"Crate/ns/{depth}", owner)
    await fleet.delete("Ship/top")
    await settle(collector)
    assert await fleet.names() == set()


async def test_an_owner_that_never_was_counts_as_gone(fleet: Fleet, collector: GarbageCollector) -> None:
    ship = await fleet.create("Ship/one")
    await fleet.create("Crate/ns/absent", {**ship, "name": "other"})
    await fleet.create("Crate/ns/another-uid", {**ship, "uid": "another"})
    await fleet.create("Crate/ns/kept", ship)
    await settle(collector)
    assert await fleet.names() == {"Ship/one", "Crate/ns/kept"}


async def test_an_owner_is_sought_in_the_namespace_of_its_dependent(fleet: Fleet, collector: GarbageCollector) -> None:
    owner = await fleet.create("Crate/ns/owner")
    await fleet.create("Fish/ns/here", owner)
    await fleet.create("Fish/elsewhere/there", owner)
    await settle(collector)
    assert await fleet.names() == {"Crate/ns/owner", "Fish/ns/here"}


async def test_a_root_scoped_object_with_a_namespaced_owner_is_never_collected(
    fleet: Fleet, collector: GarbageCollector
) -> None:
    owner = await fleet.create("Crate/ns/owner")
    await fleet.create("Ship/one", owner)
    await fleet.delete("Crate/ns/owner")
    await settle(collector)
    assert await fleet.names() == {"Ship/one"}


@pytest.mark.parametrize("api_version", ["apps/v1", "wardle.example.com/v2", "", "v1"])
async def test_an_owner_of_a_kind_that_is_not_served_never_counts_as_gone(
    fleet: Fleet, collector: GarbageCollector, api_version: str
) -> None:
    stranger = {"apiVersion": api_version or "x/v1", "kind": "Ship" if api_version else "Deployment", "name": "a"}
    ship = await fleet.create("Ship/one")
    await fleet.create("Crate/ns/a", stranger | {"uid": "far"})
    await fleet.create("Crate/ns/b", stranger | {"uid": "far"}, ship)
    await fleet.delete("Ship/one", "Foreground")
    await settle(collector)
    assert await fleet.names() == {"Crate/ns/a", "Crate/ns/b"}
    assert (await fleet.metadata("Crate/ns/b"))["ownerReferences"] == [stranger | {"uid": "far"}]


async def test_a_foreground_deletion_without_dependents_is_finished(fleet: Fleet, collector: GarbageCollector) -> None:
    await fleet.create("Ship/one")
    await fleet.delete("Ship/one", "Foreground")
    await settle(collector)
    assert await fleet.names() == set()


async def test_a_foreground_deletion_waits_for_the_dependents_that_block_it(
    fleet: Fleet, collector: GarbageCollector
) -> None:
    ship = await fleet.create("Ship/one")
    await fleet.create("Crate/ns/blocks", blocking(ship), finalizers=[HOLD])
    await fleet.create("Crate/ns/does-not", ship, finalizers=[HOLD])
    await fleet.create("Crate/ns/goes", blocking(ship))
    await fleet.delete("Ship/one", "Foreground")
    await settle(collector)
    assert await fleet.names() == {"Ship/one", "Crate/ns/blocks", "Crate/ns/does-not"}
    assert (await fleet.metadata("Ship/one"))["finalizers"] == ["foregroundDeletion"]
    assert "deletionTimestamp" in await fleet.metadata("Crate/ns/does-not")
    await fleet.change("Crate/ns/blocks", finalizers=None)
    await settle(collector)
    assert await fleet.names() == {"Crate/ns/does-not"}


async def test_a_foreground_deletion_goes_on_once_a_dependent_no_longer_blocks(
    fleet: Fleet, collector: GarbageCollector
) -> None:
    ship = await fleet.create("Ship/one")
    await fleet.create("Crate/ns/a", blocking(ship), finalizers=[HOLD])
    await fleet.delete("Ship/one", "Foreground")
    await settle(collector)
    assert await fleet.exists("Ship/one")
    await fleet.change("Crate/ns/a", ownerReferences=[ship])
    await settle(collector)
    assert await fleet.names() == {"Crate/ns/a"}


async def test_foreground_deletions_go_down_a_chain(fleet: Fleet, collector: GarbageCollector) -> None:
    ship = await fleet.create("Ship/one")
    crate = await fleet.create("Crate/ns/a", blocking(ship))
    await fleet.create("Fish/ns/a", blocking(crate), finalizers=[HOLD])
    await fleet.delete("Ship/one", "Foreground")
    await settle(collector)
    assert (await fleet.metadata("Crate/ns/a"))["finalizers"] == ["foregroundDeletion"]
    assert await fleet.names() == {"Ship/one", "Crate/ns/a", "Fish/ns/a"}
    await fleet.change("Fish/ns/a", finalizers=None)
    await settle(collector)
    assert await fleet.names() == set()


async def test_a_dependent_with_another_owner_survives_a_foreground_deletion(
    fleet: Fleet, collector: GarbageCollector
) -> None:
    one, two = await fleet.create("Ship/one"), await fleet.create("Ship/two")
    await fleet.create("Crate/ns/a", blocking(one), two)
    await fleet.delete("Ship/one", "Foreground")
    await settle(collector)
    assert await fleet.names() == {"Ship/two", "Crate/ns/a"}
    assert (await fleet.metadata("Crate/ns/a"))["ownerReferences"] == [two]


@pytest.mark.parametrize("also", [(), ("Crate/ns/b",), ("Crate/ns/b", "Crate/ns/c")])
async def test_objects_that_own_each_other_in_a_circle_go(
    fleet: Fleet, collector: GarbageCollector, also: tuple[str, ...]
) -> None:
    a = await fleet.create("Crate/ns/a", finalizers=[HOLD])
    b = await fleet.create("Crate/ns/b", blocking(a), finalizers=[HOLD])
    c = await fleet.create("Crate/ns/c", blocking(b), finalizers=[HOLD])
    await fleet.change("Crate/ns/a", ownerReferences=[blocking(c), blocking(a)])
    for name in ("Crate/ns/a", *also):
        await fleet.delete(name, "Foreground")
    for name in ("a", "b", "c"):  # none of them may go before all are marked
        await settle(collector)
        await fleet.change(f"Crate/ns/{name}", finalizers=_without_hold(await fleet.metadata(f"Crate/ns/{name}")))
    await settle(collector)
    assert await fleet.names() == set()


def _without_hold(metadata: dict[str, Any]) -> list[str] | None:
    return [each for each in metadata.get("finalizers", ()) if each != HOLD] or None


async def test_orphans_lose_their_reference_and_stay(fleet: Fleet, collector: GarbageCollector) -> None:
    one, two = await fleet.create("Ship/one"), await fleet.create("Ship/two")
    await fleet.create("Crate/ns/a", blocking(one))
    await fleet.create("Crate/ns/b", one, two)
    await fleet.delete("Ship/one", "Orphan")
    await settle(collector)
    assert await fleet.names() == {"Ship/two", "Crate/ns/a", "Crate/ns/b"}
    assert "ownerReferences" not in await fleet.metadata("Crate/ns/a")
    assert (await fleet.metadata("Crate/ns/b"))["ownerReferences"] == [two]


async def test_a_dependent_with_the_orphan_finalizer_orphans_its_own_dependents(
    fleet: Fleet, collector: GarbageCollector
) -> None:
    ship = await fleet.create("Ship/one")
    crate = await fleet.create("Crate/ns/a", ship, finalizers=["orphan"])
    await fleet.create("Fish/ns/a", crate)
    await fleet.delete("Ship/one")
    await settle(collector)
    assert await fleet.names() == {"Fish/ns/a"}
    assert "ownerReferences" not in await fleet.metadata("Fish/ns/a")


async def test_an_object_that_is_created_again_under_the_name_of_a_dependent_is_not_hit(
    fleet: Fleet, collector: GarbageCollector
) -> None:
    ship = await fleet.create("Ship/one")
    await fleet.create("Crate/ns/a", ship)
    await fleet.delete("Ship/one")  # the dependent is queued
    await fleet.delete("Crate/ns/a")
    await fleet.create("Crate/ns/a")
    await settle(collector)
    assert await fleet.names() == {"Crate/ns/a"}


async def test_an_owner_that_is_created_again_is_another_one(fleet: Fleet, collector: GarbageCollector) -> None:
    ship = await fleet.create("Ship/one")
    await fleet.create("Crate/ns/a", ship)
    await fleet.delete("Ship/one")
    await fleet.create("Ship/one")
    await settle(collector)
    assert await fleet.names() == {"Ship/one"}


async def test_a_new_collector_finds_what_happened_before_it(fleet: Fleet) -> None:
    one, two, three = [await fleet.create(f"Ship/{name}") for name in ("one", "two", "three")]
    await fleet.create("Crate/ns/background", one)
    await fleet.create("Crate/ns/foreground", blocking(two))
    await fleet.create("Crate/ns/orphan", blocking(three))
    await fleet.delete("Ship/one")
    await fleet.delete("Ship/two", "Foreground")
    await fleet.delete("Ship/three", "Orphan")
    collector = fleet.collector()
    await settle(collector)
    collector.close()
    assert await fleet.names() == {"Crate/ns/orphan"}


async def test_objects_with_a_retention_are_no_dependents_but_their_deletions_finish(tmp_path: Path) -> None:
    storage = await SQLiteStorage.open(tmp_path / "registry.db")
    async with fleet_over(storage, [SHIP, sample_resource("Note", namespaced=True, retention=60.0)]) as fleet:
        collector = fleet.collector()
        await settle(collector)
        ship = await fleet.create("Ship/one")
        await fleet.create("Note/ns/a", ship)
        await fleet.create("Note/ns/b", blocking(ship))
        await fleet.delete("Ship/one", "Foreground")
        await fleet.delete("Note/ns/b", "Foreground")
        await settle(collector)
        assert await fleet.names() == {"Note/ns/a"}
        collector.close()
    await storage.close()


async def test_a_write_that_fails_is_tried_again(
    fleet: Fleet, collector: GarbageCollector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clusterregistry.apiserver.controllers.garbage_collector._UNAVAILABLE_PAUSE", 0.0)
    ship = await fleet.create("Ship/one")
    await fleet.create("Crate/ns/a", ship)
    store = fleet.stores["Crate"]
    delete, failures = store.delete, [errors.service_unavailable("not now"), errors.failure(403, "Forbidden", "no")]

    async def failing(*arguments: Any) -> Any:
        if failures:
            raise failures.pop()
        return await delete(*arguments)

    monkeypatch.setattr(store, "delete", failing)
    await fleet.delete("Ship/one")
    await settle(collector)
    assert await fleet.names() == set()
    assert not failures


async def test_a_graph_after_lost_events_is_that_of_the_storage(
    fleet: Fleet, collector: GarbageCollector, monkeypatch: pytest.MonkeyPatch
) -> None:
    ship = await fleet.create("Ship/one")
    await fleet.create("Crate/ns/a", {**ship, "uid": "other", "kind": "Unserved"})
    with monkeypatch.context() as failing:
        failing.setattr(collector.graph, "_update_node", None)  # as if the events had not come
        await fleet.create("Crate/ns/b", ship)
        await fleet.delete("Crate/ns/a")
    await settle(collector)
    assert len(collector.graph) == 1
    await fleet.delete("Ship/one")
    await settle(collector)
    assert await fleet.names() == set()
    assert len(collector.graph) == 0
    assert not collector.graph._dependents


def test_references_name_the_version_that_is_served() -> None:
    assert list(served_types(SHIP)) == [(API_VERSION, "Ship")]
