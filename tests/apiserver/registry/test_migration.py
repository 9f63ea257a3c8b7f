"""Stored objects are rewritten in another version, each on condition that no other write came first."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from clusterregistry.apiserver.registry import migration
from clusterregistry.apiserver.registry.migration import Migrated, migrate, target_version
from clusterregistry.apiserver.registry.native_resources import native_resources
from clusterregistry.apiserver.registry.resource import Version
from clusterregistry.apiserver.storage.errors import StorageUnavailable
from clusterregistry.apiserver.storage.interface import KeyValue, Page
from clusterregistry.apiserver.storage.object_bytes import to_stored
from clusterregistry.apiserver.storage.sqlite import SQLiteStorage
from clusterregistry.registry.cluster import cluster_resource

CLUSTERS = cluster_resource("off")
BETA, ALPHA = CLUSTERS.versions
PREFIX = "/clusterregistry.k8s.io/clusters/"


@pytest.fixture
async def storage(tmp_path: Path) -> AsyncIterator[SQLiteStorage]:
    opened = await SQLiteStorage.open(tmp_path / "registry.db")
    yield opened
    await opened.close()


def value(name: str, *, version: str = "v1alpha1", **parts: Any) -> bytes:
    metadata = {"name": name, "uid": f"uid-of-{name}", "creationTimestamp": "2024-01-02T03:04:05Z"}
    return to_stored(
        {"apiVersion": f"clusterregistry.k8s.io/{version}", "kind": "Cluster", "metadata": metadata, **parts}
    )


async def run(storage: Any, version: Version = ALPHA, *, dry_run: bool = False) -> Migrated:
    return await migrate(storage, CLUSTERS, version, dry_run=dry_run, progress=lambda _done, _total: None)


async def versions(storage: SQLiteStorage) -> dict[str, str]:
    page = await storage.list(PREFIX)
    return {kv.key.removeprefix(PREFIX): orjson.loads(kv.value)["apiVersion"].rpartition("/")[2] for kv in page.items}


async def test_what_is_in_another_version_or_form_is_rewritten_once(storage: SQLiteStorage) -> None:
    await storage.create(PREFIX + "a", value("a"))
    await storage.create(PREFIX + "b", value("b", version="v1beta1"))
    await storage.create(PREFIX + "c", orjson.dumps(orjson.loads(value("c")), option=orjson.OPT_INDENT_2))
    before = await storage.list(PREFIX)
    planned = await run(storage, dry_run=True)
    assert (planned.objects, planned.rewritten) == (3, 2)
    assert await storage.list(PREFIX) == before
    done = await run(storage)
    assert (done.objects, done.rewritten, done.unreadable) == (3, 2, [])
    assert [kv.value for kv in (await storage.list(PREFIX)).items] == [value("a"), value("b"), value("c")]
    revision = storage.revision
    assert (await run(storage)).rewritten == 0
    assert storage.revision == revision


async def test_there_and_back_is_byte_for_byte_what_it_was(storage: SQLiteStorage) -> None:
    status = {"conditions": [{"type": "OK", "status": "True", "lastHeartbeatTime": "2024-01-02T03:04:05Z"}]}
    spec = {"authInfo": {"providers": [{"type": {"name": "x"}}, {"type": {}}]}}
    await storage.create(PREFIX + "a", value("a", spec=spec, status=status))
    assert (await run(storage, BETA)).rewritten == 1
    assert await versions(storage) == {"a": "v1beta1"}
    assert (await run(storage, ALPHA)).rewritten == 1
    assert [kv.value for kv in (await storage.list(PREFIX)).items] == [value("a", spec=spec, status=status)]


async def test_what_cannot_be_read_is_named_and_left_alone(storage: SQLiteStorage) -> None:
    await storage.create(PREFIX + "bad", b"rubbish")
    await storage.create(PREFIX + "later", value("later", version="v2"))
    await storage.create(PREFIX + "good", value("good", version="v1beta1"))
    done = await run(storage)
    assert done.rewritten == 1
    assert [error.key for error in done.unreadable] == [PREFIX + "bad", PREFIX + "later"]
    found = await storage.get(PREFIX + "bad")
    assert found is not None
    assert found.value == b"rubbish"


async def test_objects_are_read_page_by_page(storage: SQLiteStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(migration, "_PAGE", 10)
    monkeypatch.setattr(migration, "_AT_ONCE", 3)
    for number in range(25):
        await storage.create(f"{PREFIX}c{number}", value(f"c{number}", version="v1beta1"))
    seen: list[tuple[int, int]] = []
    done = await migrate(storage, CLUSTERS, ALPHA, dry_run=False, progress=lambda *counts: seen.append(counts))
    assert (done.objects, done.rewritten) == (25, 25)
    assert seen == [(10, 25), (20, 25), (25, 25)]
    assert set((await versions(storage)).values()) == {"v1alpha1"}


class Contended:
    """A storage in which another writer changes an object between a read and a write, some times."""

    def __init__(self, storage: SQLiteStorage, *, times: int) -> None:
        self._storage, self._left, self._numbers = storage, times, itertools.count()
        self.get = storage.get

    async def list(self, prefix: str, **limits: Any) -> Page:
        return await self._storage.list(prefix, **limits)

    async def update(self, key: str, new: bytes, *, expected: int) -> int:
        if self._left:
            self._left -= 1
            other = value(key.removeprefix(PREFIX), version="v1beta1", spec={"clusterID": f"{next(self._numbers)}"})
            await self._storage.update(key, other, expected=expected)
        return await self._storage.update(key, new, expected=expected)


async def test_a_write_in_between_is_not_lost(storage: SQLiteStorage) -> None:
    await storage.create(PREFIX + "a", value("a", version="v1beta1"))
    done = await run(Contended(storage, times=3))
    assert done.rewritten == 1
    found = await storage.get(PREFIX + "a")
    assert found == KeyValue(PREFIX + "a", value("a", spec={"clusterID": "2"}), storage.revision)


async def test_an_object_that_never_rests_ends_the_migration(storage: SQLiteStorage) -> None:
    await storage.create(PREFIX + "a", value("a", version="v1beta1"))
    with pytest.raises(StorageUnavailable, match="changes all the time"):
        await run(Contended(storage, times=1000))


async def test_an_object_that_is_deleted_in_between_is_gone(storage: SQLiteStorage) -> None:
    await storage.create(PREFIX + "a", value("a", version="v1beta1"))

    class Deleting(Contended):
        async def update(self, key: str, new: bytes, *, expected: int) -> int:
            await storage.delete(key, expected=expected)
            return await super().update(key, new, expected=expected)

    assert (await run(Deleting(storage, times=0))).rewritten == 0
    assert await storage.get(PREFIX + "a") is None


async def test_a_migration_that_is_cancelled_leaves_each_object_whole(storage: SQLiteStorage) -> None:
    for number in range(60):
        await storage.create(f"{PREFIX}c{number}", value(f"c{number}", version="v1beta1"))
    work = asyncio.ensure_future(run(storage))
    while set((await versions(storage)).values()) == {"v1beta1"}:
        pass
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)
    assert (await run(storage)).objects == 60
    assert set((await versions(storage)).values()) == {"v1alpha1"}


def test_a_kind_without_the_version_stays_in_its_own() -> None:
    assert target_version(CLUSTERS, "v1beta1") is BETA
    assert target_version(CLUSTERS, "") is ALPHA
    for resource in native_resources(event_retention=None):
        assert target_version(resource, "v1beta1") is resource.stored_as
        assert target_version(resource, "v1") is resource.stored_as
