"""The cache around a store some of whose values cannot be read."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from clusterregistry.apiserver.storage.cacher import Cacher, cache
from clusterregistry.apiserver.storage.cacher.corrupt_objects import CorruptObjects
from clusterregistry.apiserver.storage.errors import CorruptObject
from clusterregistry.apiserver.storage.interface import Event, KeyValue, Page
from clusterregistry.apiserver.storage.sqlite import SQLiteStorage
from tests.apiserver.storage.recording import keys

looked_at: list[bytes] = []


def present(kv: KeyValue) -> KeyValue:
    looked_at.append(kv.value)
    if kv.value.startswith(b"bad"):
        raise CorruptObject(kv.key, revision=kv.revision, reason="it is bad")
    return kv


@pytest.fixture
async def backend(tmp_path: Path) -> AsyncIterator[SQLiteStorage]:
    storage = await SQLiteStorage.open(tmp_path / "registry.db")
    yield storage
    await storage.close()


async def opened(backend: SQLiteStorage) -> Cacher:
    looked_at.clear()
    return await Cacher.open(backend, "/", present=present, present_own=lambda kv: kv)


def shown(events: list[Event]) -> list[tuple[str, bytes | None, bytes | None]]:
    return [(event.key, value_of(event.previous), value_of(event.current)) for event in events]


def value_of(kv: KeyValue | None) -> bytes | None:
    return kv.value if kv else None


async def test_what_is_bad_from_the_start_is_set_aside_and_can_be_deleted(backend: SQLiteStorage) -> None:
    await backend.create("/a", b"1")
    bad = await backend.create("/b", b"bad")
    cacher, received = await opened(backend), list[Event]()
    cacher.subscribe("/", received.extend)
    assert keys(await cacher.list("/")) == ["/a"]
    assert cacher.count("/") == 1
    assert (cacher.get_stale("/b"), cacher.get_cached("/b")) == (None, None)
    with pytest.raises(CorruptObject, match="it is bad") as caught:
        await cacher.get("/b")
    assert caught.value.revision == cacher.corrupt["/b"].revision == bad
    await cacher.delete("/b", expected=bad)
    assert await cacher.get("/b") is None
    assert dict(cacher.corrupt) == {}
    assert received == []
    await cacher.close()


async def test_what_becomes_bad_is_gone_and_what_becomes_good_is_new(backend: SQLiteStorage) -> None:
    cacher, received = await opened(backend), list[Event]()
    cacher.subscribe("/", received.extend)
    begun = cacher.revision
    revision = await backend.create("/a", b"1")
    for value in (b"bad", b"bad too", b"2"):
        revision = await backend.update("/a", value, expected=revision)
    live = [("/a", None, b"1"), ("/a", b"1", None), ("/a", None, b"2")]
    assert shown(received) == live
    assert not cacher.corrupt
    # From memory, and from the store after a restart; page by page, and never an empty page before the end.
    assert shown(list(await cacher.history("/", after=begun))) == live
    await cacher.close()
    again = await opened(backend)
    assert shown(list(await again.history("/", after=begun))) == live
    after, found = begun, list[Event]()
    while page := await again.history("/", after=after, limit=1):
        found += page
        after = page[-1].revision
    assert shown(found) == live
    await again.close()


async def test_pages_of_the_past_go_on_behind_what_is_bad(backend: SQLiteStorage) -> None:
    for name in "abcdefg":
        revision = await backend.create(f"/{name}", b"bad" if name in "abdef" else b"1")
    await backend.create("/later", b"")
    cacher = await opened(backend)
    found, page = list[str](), Page([], 0, 1)
    while page.remaining:
        page = await cacher.list("/", revision=revision, after=found[-1] if found else "", limit=2)
        assert page.items
        found += keys(page)
    assert found == ["/c", "/g"]
    await cacher.close()


async def test_each_value_is_looked_at_once_and_those_written_here_never(backend: SQLiteStorage) -> None:
    await backend.create("/a", b"1")
    cacher = await opened(backend)
    assert looked_at == [b"1"]
    revision = await cacher.create("/b", b"bad but ours")
    await cacher.update("/b", b"bad and ours", expected=revision)
    await backend.create("/c", b"another's")
    for _ in range(3):
        assert keys(await cacher.list("/")) == ["/a", "/b", "/c"]
        await cacher.get("/a")
    assert looked_at == [b"1", b"another's"]
    await cacher.close()


async def test_a_cache_that_fails_on_an_event_reads_everything_anew(
    backend: SQLiteStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is wrong with it is a fault of ours; that must not make it serve the old for ever."""
    cacher, told, taken = await opened(backend), list[str](), asyncio.Event()

    def take(events: Sequence[Event]) -> None:
        told.extend(event.key for event in events)
        taken.set()

    cacher.subscribe("/", take, interrupted=lambda: told.append("interrupted"))
    await backend.create("/a", b"1")
    taken.clear()
    apply, failures = cacher._snapshot.apply, iter([ValueError(), ValueError()])

    def fails_twice(key: str, current: KeyValue | None) -> KeyValue | None:
        for error in failures:
            raise error
        return apply(key, current)

    monkeypatch.setattr(cache, "_AGAIN_SECONDS", 0.01)
    monkeypatch.setattr(cacher._snapshot, "apply", fails_twice)
    await backend.create("/b", b"1")
    assert keys(await cacher.list("/")) == ["/a", "/b"]  # from the store meanwhile
    async with asyncio.timeout(10):
        await taken.wait()
    assert told == ["/a", "interrupted", "/b"]
    await backend.create("/c", b"1")
    assert told == ["/a", "interrupted", "/b", "/c"]
    assert keys(await cacher.list("/")) == ["/a", "/b", "/c"]
    await cacher.close()


def test_of_very_many_a_hundred_are_named_and_as_many_when_they_are_mended(caplog: pytest.LogCaptureFixture) -> None:
    corrupt = CorruptObjects()
    with caplog.at_level(logging.INFO):
        for number in range(1000):
            corrupt.add(CorruptObject(f"/{number}", revision=1, reason="it is bad"))
        assert len(caplog.records) == 101
        caplog.clear()
        for number in range(1000):
            corrupt.discard(f"/{number}")
    assert len(caplog.records) == 100
