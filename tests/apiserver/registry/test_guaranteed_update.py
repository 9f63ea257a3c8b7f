"""Writes that begin with an object from memory, which another replica may have changed: what is stored counts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from clusterregistry.apimachinery.meta.errors import APIError
from clusterregistry.apiserver.registry.deletion import DeleteOptions, Preconditions
from clusterregistry.apiserver.registry.store import Store, UpdateRequest, Written
from clusterregistry.apiserver.storage.errors import StorageUnavailable, ValueTooLarge
from clusterregistry.apiserver.storage.interface import KeyValue
from clusterregistry.apiserver.storage.object_bytes import Object, decoded, presented
from clusterregistry.apiserver.storage.sqlite import SQLiteStorage
from clusterregistry.registry.cluster import cluster_resource
from tests.apiserver.api.objects import HOLD, cluster


class Remembering:
    """A storage that others write to too, and what one replica remembers of it."""

    sole_writer = False

    def __init__(self, inner: SQLiteStorage) -> None:
        self.inner = inner
        self.memory: dict[str, KeyValue] = {}
        self.reads = self.writes = 0
        self.fails = False
        self.most_bytes = 1_000_000

    def get_stale(self, key: str) -> KeyValue | None:
        return self.memory.get(key)

    async def get(self, key: str) -> KeyValue | None:
        self.reads += 1
        found = await self.inner.get(key)
        return found and presented(found)

    async def update(self, key: str, value: bytes, **named: Any) -> int:
        self.writes += 1
        if self.fails:
            raise StorageUnavailable("whether the write was done is not known")
        if len(value) > self.most_bytes:
            raise ValueTooLarge(key, size=len(value), remedy="")
        return await self.inner.update(key, value, **named)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


@pytest.fixture
async def storage(tmp_path: Path) -> AsyncIterator[Remembering]:
    inner = await SQLiteStorage.open(tmp_path / "registry.db")
    yield Remembering(inner)
    await inner.close()


@pytest.fixture
def store(storage: Remembering) -> Store:
    return Store(cluster_resource("off"), storage, now=lambda: "2026-01-01T00:00:00Z")


async def made(store: Store, storage: Remembering, **metadata: Any) -> KeyValue:
    """An object that is remembered as it is."""
    kv = await store.create(cluster("a", **metadata), dry_run=False, warn=print)
    storage.memory[kv.key] = kv
    return kv


async def labelled(store: Store, label: str, *, dry_run: bool = False, **metadata: Any) -> Written:
    """Adds a label to whatever labels there are."""

    def change(old: Object | None) -> Object:
        if old is None:
            raise store.not_found("a")
        labels = {**old["metadata"].get("labels", {}), label: "1"}
        return {**old, "metadata": {**old["metadata"], "resourceVersion": "0", "labels": labels, **metadata}}

    return await store.update(
        "a", UpdateRequest(change=change, strategy=store.resource.strategy, dry_run=dry_run, warn=print)
    )


def labels(kv: KeyValue) -> set[str]:
    return set(decoded(kv)["metadata"]["labels"])


async def test_what_is_remembered_rightly_is_written_without_a_read(store: Store, storage: Remembering) -> None:
    await made(store, storage)
    assert labels((await labelled(store, "x")).kv) == {"x"}
    assert (storage.reads, storage.writes) == (0, 1)


async def test_what_is_out_of_date_is_read_and_the_change_of_the_other_stays(
    store: Store, storage: Remembering
) -> None:
    old = await made(store, storage)
    await labelled(store, "theirs")
    storage.memory[old.key] = old
    assert labels((await labelled(store, "ours")).kv) == {"theirs", "ours"}
    assert storage.reads == 1


async def test_what_was_deleted_meanwhile_is_not_found(store: Store, storage: Remembering) -> None:
    kv = await made(store, storage)
    await storage.inner.delete(kv.key, expected=kv.revision)
    with pytest.raises(APIError, match="not found"):
        await labelled(store, "x")
    with pytest.raises(APIError, match="not found"):
        await store.delete("a", DeleteOptions())


async def test_a_resource_version_that_is_newer_than_memory_is_no_conflict(store: Store, storage: Remembering) -> None:
    old = await made(store, storage)
    newer = (await labelled(store, "x")).kv
    storage.memory[old.key] = old
    assert labels((await labelled(store, "y", resourceVersion=str(newer.revision))).kv) == {"x", "y"}
    with pytest.raises(APIError, match="has been modified"):
        await labelled(store, "z", resourceVersion=str(old.revision))


async def test_a_change_that_is_none_is_one_if_memory_is_out_of_date(store: Store, storage: Remembering) -> None:
    await made(store, storage)
    with_label = (await labelled(store, "x")).kv
    storage.memory[with_label.key] = with_label

    def without(old: Object | None) -> Object:
        assert old is not None
        return {**old, "metadata": {**old["metadata"], "resourceVersion": "0", "labels": {}}}

    await store.update("a", UpdateRequest(change=without, strategy=store.resource.strategy, warn=print))
    # For memory the label is there already.
    assert labels((await labelled(store, "x")).kv) == {"x"}
    present = await storage.inner.get(with_label.key)
    assert present is not None
    assert labels(present) == {"x"}


async def test_a_dry_run_reads(store: Store, storage: Remembering) -> None:
    old = await made(store, storage)
    await labelled(store, "theirs")
    storage.memory[old.key] = old
    assert labels((await labelled(store, "ours", dry_run=True)).kv) == {"theirs", "ours"}


async def test_a_write_whose_outcome_is_not_known_is_not_tried_again(store: Store, storage: Remembering) -> None:
    await made(store, storage)
    storage.fails = True
    with pytest.raises(APIError, match="not known"):
        await labelled(store, "x")
    assert (storage.reads, storage.writes) == (0, 1)


async def test_what_is_too_large_with_what_is_remembered_may_fit_what_is_there(
    store: Store, storage: Remembering
) -> None:
    large = await made(store, storage, annotations={"large": "x" * 1000})
    storage.most_bytes = len(large.value)

    def without(old: Object | None) -> Object:
        assert old is not None
        return {**old, "metadata": {**old["metadata"], "resourceVersion": "0", "annotations": {}}}

    await store.update("a", UpdateRequest(change=without, strategy=store.resource.strategy, warn=print))
    label = "l" * 60
    assert labels((await labelled(store, label)).kv) == {label}


async def test_what_is_too_large_for_the_storage_is_refused_once_it_was_read(
    store: Store, storage: Remembering
) -> None:
    large = await made(store, storage)
    storage.most_bytes = len(large.value)
    with pytest.raises(APIError, match="more than the storage takes"):
        await labelled(store, "l" * 60)
    assert storage.reads == 1


async def test_a_delete_begins_with_memory_too(store: Store, storage: Remembering) -> None:
    await made(store, storage)
    assert (await store.delete("a", DeleteOptions())).removed
    assert storage.reads == 0


async def test_a_delete_of_what_is_out_of_date_looks_at_what_is_there(store: Store, storage: Remembering) -> None:
    old = await made(store, storage)
    held = (await labelled(store, "x", finalizers=[HOLD])).kv
    storage.memory[old.key] = old
    newer = Preconditions(resource_version=str(held.revision))
    deleted = await store.delete("a", DeleteOptions(preconditions=newer))
    assert not deleted.removed
    with pytest.raises(APIError, match="precondition"):
        await store.delete("a", DeleteOptions(preconditions=newer))


async def test_a_second_mark_for_deletion_is_none_only_if_the_first_is_still_there(
    store: Store, storage: Remembering
) -> None:
    await made(store, storage, finalizers=[HOLD])
    marked = (await store.delete("a", DeleteOptions())).kv
    storage.memory[marked.key] = marked
    await storage.inner.delete(marked.key, expected=marked.revision)
    with pytest.raises(APIError, match="not found"):
        await store.delete("a", DeleteOptions())
