"""Writes whose first attempt is on a cached object, which another replica may have changed."""

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


class Caching:
    """A storage with several writers, and the cache of one replica."""

    sole_writer = False

    def __init__(self, inner: SQLiteStorage) -> None:
        self.inner = inner
        self.cached: dict[str, KeyValue] = {}
        self.reads = self.writes = 0
        self.fails = False
        self.most_bytes = 1_000_000

    def get_stale(self, key: str) -> KeyValue | None:
        return self.cached.get(key)

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
async def storage(tmp_path: Path) -> AsyncIterator[Caching]:
    inner = await SQLiteStorage.open(tmp_path / "registry.db")
    yield Caching(inner)
    await inner.close()


@pytest.fixture
def store(storage: Caching) -> Store:
    return Store(cluster_resource("off"), storage, now=lambda: "2026-01-01T00:00:00Z")


async def made(store: Store, storage: Caching, **metadata: Any) -> KeyValue:
    """A stored and cached object."""
    kv = await store.create(cluster("a", **metadata), dry_run=False, warn=print)
    storage.cached[kv.key] = kv
    return kv


async def updated(store: Store, *, label: str = "", dry_run: bool = False, **metadata: Any) -> Written:
    """Sets metadata of the object, and adds a label to the present ones."""

    def change(old: Object | None) -> Object:
        if old is None:
            raise store.not_found("a")
        present = old["metadata"]
        labels = {"labels": {**present.get("labels", {}), label: "1"}} if label else {}
        return {**old, "metadata": {**present, "resourceVersion": "0", **labels, **metadata}}

    request = UpdateRequest(change=change, strategy=store.resource.strategy, dry_run=dry_run, warn=print)
    return await store.update("a", request)


def labels(kv: KeyValue) -> set[str]:
    return set(decoded(kv)["metadata"]["labels"])


async def test_a_current_cached_object_is_written_without_a_read(store: Store, storage: Caching) -> None:
    await made(store, storage)
    assert labels((await updated(store, label="x")).kv) == {"x"}
    assert (storage.reads, storage.writes) == (0, 1)


async def test_a_stale_object_is_read_and_the_change_of_the_other_writer_stays(store: Store, storage: Caching) -> None:
    old = await made(store, storage)
    await updated(store, label="theirs")
    storage.cached[old.key] = old
    assert labels((await updated(store, label="ours")).kv) == {"theirs", "ours"}
    assert storage.reads == 1


async def test_an_object_that_was_deleted_meanwhile_is_not_found(store: Store, storage: Caching) -> None:
    kv = await made(store, storage)
    await storage.inner.delete(kv.key, expected=kv.revision)
    with pytest.raises(APIError, match="not found"):
        await updated(store, label="x")
    with pytest.raises(APIError, match="not found"):
        await store.delete("a", DeleteOptions())


async def test_a_resource_version_that_is_newer_than_the_cache_is_no_conflict(store: Store, storage: Caching) -> None:
    old = await made(store, storage)
    newer = (await updated(store, label="x")).kv
    storage.cached[old.key] = old
    assert labels((await updated(store, label="y", resourceVersion=str(newer.revision))).kv) == {"x", "y"}
    with pytest.raises(APIError, match="has been modified"):
        await updated(store, label="z", resourceVersion=str(old.revision))


async def test_a_change_that_the_stale_object_has_already_is_written(store: Store, storage: Caching) -> None:
    await made(store, storage)
    with_label = (await updated(store, label="x")).kv
    storage.cached[with_label.key] = with_label

    await updated(store, labels={})
    # The cached object has the label already.
    assert labels((await updated(store, label="x")).kv) == {"x"}
    present = await storage.inner.get(with_label.key)
    assert present is not None
    assert labels(present) == {"x"}


async def test_a_dry_run_reads(store: Store, storage: Caching) -> None:
    old = await made(store, storage)
    await updated(store, label="theirs")
    storage.cached[old.key] = old
    assert labels((await updated(store, label="ours", dry_run=True)).kv) == {"theirs", "ours"}


async def test_a_write_without_an_answer_is_not_repeated(store: Store, storage: Caching) -> None:
    await made(store, storage)
    storage.fails = True
    with pytest.raises(APIError, match="not known"):
        await updated(store, label="x")
    assert (storage.reads, storage.writes) == (0, 1)


async def test_a_change_that_is_too_large_for_the_stale_object_may_fit_the_stored_one(
    store: Store, storage: Caching
) -> None:
    large = await made(store, storage, annotations={"large": "x" * 1000})
    storage.most_bytes = len(large.value)

    await updated(store, annotations={})
    label = "l" * 60
    assert labels((await updated(store, label=label)).kv) == {label}


async def test_a_change_that_is_too_large_is_refused_after_a_read(store: Store, storage: Caching) -> None:
    large = await made(store, storage)
    storage.most_bytes = len(large.value)
    with pytest.raises(APIError, match="more than the storage takes"):
        await updated(store, label="l" * 60)
    assert storage.reads == 1


async def test_a_delete_begins_with_the_cached_object_too(store: Store, storage: Caching) -> None:
    await made(store, storage)
    assert (await store.delete("a", DeleteOptions())).removed
    assert storage.reads == 0


async def test_a_delete_of_a_stale_object_is_repeated_on_the_stored_one(store: Store, storage: Caching) -> None:
    old = await made(store, storage)
    held = (await updated(store, label="x", finalizers=[HOLD])).kv
    storage.cached[old.key] = old
    newer = Preconditions(resource_version=str(held.revision))
    deleted = await store.delete("a", DeleteOptions(preconditions=newer))
    assert not deleted.removed
    with pytest.raises(APIError, match="precondition"):
        await store.delete("a", DeleteOptions(preconditions=newer))


async def test_a_second_deletion_mark_is_unchanged_only_if_the_first_is_stored(store: Store, storage: Caching) -> None:
    await made(store, storage, finalizers=[HOLD])
    marked = (await store.delete("a", DeleteOptions())).kv
    storage.cached[marked.key] = marked
    await storage.inner.delete(marked.key, expected=marked.revision)
    with pytest.raises(APIError, match="not found"):
        await store.delete("a", DeleteOptions())
