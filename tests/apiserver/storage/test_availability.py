"""What every store does when it is closed, and when the engine behind it cannot take writes, or not in time."""

import asyncio
import random
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from clusterregistry.apiserver.storage.cacher import Cacher
from clusterregistry.apiserver.storage.errors import StorageUnavailable
from clusterregistry.apiserver.storage.interface import Event, KeyValue, Storage
from clusterregistry.apiserver.storage.sqlite import SQLiteStorage
from tests.apiserver.storage.engines import LARGE, CachedEngine, Engine, SQLiteEngine, settled
from tests.apiserver.storage.recording import Chronicle, keys

pytestmark = pytest.mark.usefixtures("impatient_writes")

OPERATIONS: dict[str, Callable[[Storage], Awaitable[object]]] = {
    "get": lambda store: store.get("/a"),
    "list": lambda store: store.list("/"),
    "list in the past": lambda store: store.list("/", revision=1),
    "history": lambda store: store.history("/", after=1),
    "create": lambda store: store.create("/b", b""),
    "update": lambda store: store.update("/a", b"", expected=2),
    "delete": lambda store: store.delete("/a", expected=2),
    "compact": lambda store: store.compact(1),
    "current revision": lambda store: store.current_revision(),
    "wait for": lambda store: store.wait_for(1),
}
WRITES = ["create", "update", "delete", "compact"]


@asynccontextmanager
async def failing(engine: Engine) -> AsyncIterator[None]:
    """For as long as it lasts writes cannot be taken; whatever goes wrong, the next test finds the engine mended."""
    await engine.fail()
    try:
        yield
    finally:
        await engine.repair()


async def test_a_closed_store_says_so(store: Storage) -> None:
    await store.create("/a", b"1")
    await store.close()
    for operation in OPERATIONS.values():
        with pytest.raises(StorageUnavailable, match="closed"):
            await operation(store)
    assert "closed" in store.problem()


async def test_closing_again_or_twice_at_once_is_fine(store: Storage) -> None:
    subscription = store.subscribe("/", lambda _: None)
    await asyncio.gather(store.close(), store.close())
    await store.close()
    subscription.close()


async def test_a_closing_that_is_given_up_can_be_waited_for_again(engine: Engine) -> None:
    store = await engine.open()
    await store.create("/a", b"1")
    closing = asyncio.ensure_future(store.close())
    await asyncio.sleep(0)
    closing.cancel()
    await asyncio.gather(closing, return_exceptions=True)
    await engine.close()
    assert keys(await (await engine.open()).list("/")) == ["/a"]


async def test_a_store_without_a_problem_names_none(store: Storage) -> None:
    assert store.problem() == ""
    await store.create("/a", b"")
    assert store.problem() == ""


async def test_a_write_that_cannot_be_stored_fails_and_is_not_visible(engine: Engine) -> None:
    store = await engine.open()
    received: list[Event] = []
    created = await store.create("/a", b"1")
    await settled(store)
    store.subscribe("/", received.extend)
    async with failing(engine):
        outcomes = await asyncio.gather(
            store.create("/b", LARGE), store.update("/a", LARGE, expected=created), return_exceptions=True
        )
        assert [type(outcome) for outcome in outcomes] == [StorageUnavailable] * 2
        assert all(str(outcome) for outcome in outcomes)
        assert store.problem() != ""
        assert received == []


async def test_writes_are_taken_again_when_the_cause_is_gone(engine: Engine) -> None:
    store = await engine.open()
    written, received = await Chronicle.of(store), list[Event]()
    store.subscribe("/", received.extend)
    await written.put(store, "/a", b"1")
    async with failing(engine):
        outcomes = await asyncio.gather(*(store.create(f"/lost/{n}", LARGE) for n in range(3)), return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [StorageUnavailable] * 3
    last = await asyncio.wait_for(first_success(store, "/b"), 30)
    await settled(store)
    assert store.problem() == ""
    # What failed may have happened all the same; what was answered must have. Watches tell what can be read.
    assert {"/a", "/b"} <= set(keys(await store.list("/")))
    events = await store.history("/", after=written.start)
    assert received == list(events)
    assert events[-1].revision == last


async def first_success(store: Storage, key: str) -> int:
    """The revision of the first attempt to create a key that succeeds."""
    while True:
        try:
            return await store.create(key, LARGE)
        except StorageUnavailable:
            await asyncio.sleep(0.05)


async def test_a_cache_reads_on_while_the_disk_is_full(tmp_path: Path) -> None:
    engine = CachedEngine(SQLiteEngine(tmp_path))
    store = await engine.open()
    written = await Chronicle.of(store)
    await written.scribble(store, writes=20, chance=random.Random(1))
    async with failing(engine):
        with pytest.raises(StorageUnavailable, match="the disk is full"):
            await store.create("/lost", LARGE)
        assert "the disk is full" in store.problem()
        for revision in written.revisions:
            assert list((await store.list("/", revision=revision)).items) == written.state(revision)
            assert list(await store.history("/", after=revision)) == written.history(after=revision)
    await written.put(store, "/lost", LARGE)
    assert list((await store.list("/")).items) == written.state(written.last)
    await engine.close()


async def test_a_full_disk_lets_through_what_it_has_room_for(tmp_path: Path) -> None:
    engine = SQLiteEngine(tmp_path)
    store = await engine.open()
    written = await Chronicle.of(store)
    await written.put(store, "/a", b"1")
    await engine.fail()
    with pytest.raises(StorageUnavailable):
        await store.create("/large", LARGE)
    await written.put(store, "/a", b"2")
    await engine.close()
    store = await engine.open()
    assert list((await store.list("/")).items) == written.state(written.last)
    await engine.close()


@pytest.mark.parametrize("operation", WRITES)
async def test_a_cache_whose_store_was_closed_underneath_takes_no_writes(sqlite: SQLiteStorage, operation: str) -> None:
    cacher = await Cacher.open(sqlite, "/")
    await cacher.create("/a", b"1")
    await sqlite.close()
    with pytest.raises(StorageUnavailable, match="closed"):
        await OPERATIONS[operation](cacher)
    assert "closed" in cacher.problem()
    await cacher.close()


async def test_a_cache_whose_store_was_closed_underneath_still_reads_from_memory(sqlite: SQLiteStorage) -> None:
    # A server that shuts down answers what is under way.
    cacher = await Cacher.open(sqlite, "/")
    created = await cacher.create("/a", b"1")
    await sqlite.close()
    assert await cacher.get("/a") == KeyValue("/a", b"1", created)
    assert keys(await cacher.list("/", revision=created)) == ["/a"]
    assert len(await cacher.history("/", after=created - 1)) == 1
    await cacher.close()


@pytest.mark.parametrize("cached", [False, True])
async def test_a_disk_that_is_slow_to_write_keeps_no_reader_waiting(sqlite: SQLiteStorage, *, cached: bool) -> None:
    store: Storage = await Cacher.open(sqlite, "/") if cached else sqlite
    revision = await store.create("/a", b"1")
    gate = threading.Event()
    busy = sqlite._writer.transact(lambda _: gate.wait())
    write = asyncio.ensure_future(store.update("/a", b"2", expected=revision))
    try:
        async with asyncio.timeout(30):
            assert await store.get("/a") == KeyValue("/a", b"1", revision)
            assert (await store.list("/")).items == [KeyValue("/a", b"1", revision)]
            assert len(await store.history("/", after=revision - 1)) == 1
        assert not write.done()
    finally:
        gate.set()
    await busy
    assert await write == revision + 1
