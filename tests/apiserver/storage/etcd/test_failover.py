"""What becomes of a store when members of its etcd are killed, frozen, or left without a leader."""

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import suppress
from typing import TypeVar

import pytest

from clusterregistry.apiserver.storage.cacher import Cacher
from clusterregistry.apiserver.storage.errors import StorageUnavailable
from clusterregistry.apiserver.storage.etcd.store import EtcdStorage
from clusterregistry.apiserver.storage.interface import Event, Storage
from tests.apiserver.storage.engines import settled
from tests.apiserver.storage.etcd_engine import eventually, settings_for
from tests.apiserver.storage.etcd_servers import NEEDS_ETCD, EtcdCluster, Member, Settings
from tests.apiserver.storage.recording import keys

pytestmark = [NEEDS_ETCD, pytest.mark.usefixtures("impatient_writes")]

T = TypeVar("T")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdCluster]:
    with EtcdCluster(tmp_path_factory.mktemp("cluster"), Settings(members=3, killed=True)) as etcd:
        yield etcd


@pytest.fixture
async def etcd(cluster: EtcdCluster) -> AsyncIterator[EtcdCluster]:
    """Three members, all of them there again afterwards."""
    yield cluster
    for member in cluster.members:
        if member.running:
            member.resume()
        else:
            await asyncio.to_thread(member.launch)
    await asyncio.to_thread(cluster.wait_until_healthy)


@pytest.fixture
async def store(etcd: EtcdCluster, request: pytest.FixtureRequest) -> AsyncIterator[EtcdStorage]:
    storage = await EtcdStorage.open(settings_for(etcd, prefix=f"/{request.node.name}"))
    yield storage
    await storage.close()


IN_TIME = 25.0
"""Seconds: far more than the few that it takes, since the machine may be busy, and far less than never."""


def in_use(store: EtcdStorage, etcd: EtcdCluster) -> Member:
    endpoint = store._endpoints.member.endpoint
    return next(member for member in etcd.members if member.client_url.endswith(endpoint))


async def first_success(write: Callable[[], Awaitable[int]]) -> int:
    """The revision of the first attempt that succeeds."""
    while True:
        with suppress(StorageUnavailable):
            return await write()


async def at_last(read: Callable[[], Awaitable[T]]) -> T:
    """What is read as soon as etcd answers in time again: members that starve choose leaders again and again."""
    async with asyncio.timeout(60):
        while True:
            with suppress(StorageUnavailable):
                return await read()


class Writing:
    """Creates one key after the other until it is told to stop, and keeps those that were acknowledged."""

    def __init__(self, store: Storage) -> None:
        self._store, self._stop = store, False
        self.acknowledged: dict[str, int] = {}
        self._task = asyncio.ensure_future(self._write_on())

    async def progress(self) -> None:
        """Returns when some more are acknowledged."""
        enough = len(self.acknowledged) + 10
        await eventually(lambda: len(self.acknowledged) >= enough)

    async def end(self) -> None:
        self._stop = True
        await self._task

    async def _write_on(self) -> None:
        for number in itertools.count():
            key = f"/{number:05}"
            with suppress(StorageUnavailable):
                self.acknowledged[key] = await self._store.create(key, b"")
            if self._stop:
                return


FAULTS: dict[str, Callable[[Member], None]] = {"killed": Member.kill, "frozen": Member.pause}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
@pytest.mark.parametrize("chosen", ["in use", "leader"])
async def test_without_one_member_nothing_acknowledged_is_lost_and_a_watch_has_no_gap(
    etcd: EtcdCluster, store: EtcdStorage, fault: Callable[[Member], None], chosen: str
) -> None:
    received: list[Event] = []
    start = await settled(store)
    store.subscribe("/", received.extend)
    writing = Writing(store)
    await writing.progress()
    member = in_use(store, etcd) if chosen == "in use" else await asyncio.to_thread(etcd.leader)
    fault(member)
    await writing.progress()
    await writing.end()
    other = await at_last(lambda: EtcdStorage.open(settings_for(etcd, prefix=store._range.key("").decode())))
    history = list(await at_last(lambda: other.history("/", after=start)))
    await other.close()
    await at_last(lambda: settled(store))
    assert received == history
    assert writing.acknowledged.items() <= {event.key: event.revision for event in history}.items()
    await eventually(lambda: not store.problem())


async def test_a_frozen_member_is_left_at_the_first_write_that_it_does_not_answer(
    etcd: EtcdCluster, store: EtcdStorage
) -> None:
    frozen = in_use(store, etcd)
    frozen.pause()
    begun = time.monotonic()
    with pytest.raises(StorageUnavailable, match="not known"):
        await store.create("/lost", b"")
    assert time.monotonic() - begun < IN_TIME
    assert await store.create("/a", b"") > 0
    assert in_use(store, etcd) is not frozen


async def test_a_read_moves_on_from_a_frozen_member_by_itself(etcd: EtcdCluster, store: EtcdStorage) -> None:
    revision = await store.create("/a", b"1")
    in_use(store, etcd).pause()
    begun = time.monotonic()
    item, current = await asyncio.gather(store.get("/a"), store.current_revision())
    assert time.monotonic() - begun < IN_TIME
    assert item is not None
    assert item.revision == revision <= current


async def test_what_a_frozen_member_did_not_tell_comes_from_another_one(etcd: EtcdCluster, store: EtcdStorage) -> None:
    other = await EtcdStorage.open(settings_for(etcd, prefix=store._range.key("").decode()))
    received: list[Event] = []
    store.subscribe("/", received.extend)
    heard_from = in_use(store, etcd)
    other._endpoints._at = (store._endpoints._at + 1) % 3
    heard_from.pause()
    revisions = [await first_success(lambda n=n: other.create(f"/{n}", b"")) for n in range(5)]  # type: ignore[misc]
    await eventually(lambda: store.revision >= revisions[-1])
    assert [event.revision for event in received] == revisions
    await other.close()


async def test_without_a_majority_writes_are_refused_in_time_and_the_cache_still_tells_what_it_knows(
    etcd: EtcdCluster, store: EtcdStorage
) -> None:
    cacher = await Cacher.open(store, "/")
    revision = await cacher.create("/a", b"1")
    await settled(cacher)
    for member in etcd.members[:2]:
        member.kill()
    begun = time.monotonic()
    with pytest.raises(StorageUnavailable) as caught:
        await cacher.create("/b", b"")
    assert time.monotonic() - begun < IN_TIME
    assert str(caught.value)
    assert cacher.problem()
    assert keys(await cacher.list("/", revision=revision)) == ["/a"]
    with pytest.raises(StorageUnavailable):
        await cacher.get("/a")
    for member in etcd.members[:2]:
        await asyncio.to_thread(member.launch)
    await eventually(lambda: not cacher.problem())
    assert await cacher.get("/a") is not None
    await first_success(lambda: cacher.create("/c", b""))
    await cacher.close()


async def test_a_member_without_a_leader_is_left_though_it_answers(etcd: EtcdCluster, store: EtcdStorage) -> None:
    # Of the three only one is left, so it has no leader; then the other two come back while it is away.
    alone = in_use(store, etcd)
    others = [member for member in etcd.members if member is not alone]
    for member in others:
        member.pause()
    with pytest.raises(StorageUnavailable):
        await store.create("/lost", b"")
    for member in others:
        member.resume()
    alone.pause()
    await asyncio.wait_for(first_success(lambda: store.create("/a", b"")), IN_TIME)
    assert in_use(store, etcd) is not alone


async def test_all_members_gone_and_back_the_store_recovers_without_being_asked(
    etcd: EtcdCluster, store: EtcdStorage
) -> None:
    received: list[Event] = []
    store.subscribe("/", received.extend)
    before = await store.create("/a", b"")
    await settled(store)
    for member in etcd.members:
        member.kill()
    with pytest.raises(StorageUnavailable):
        await store.create("/b", b"")
    assert store.problem()
    for member in etcd.members:
        await asyncio.to_thread(member.launch)
    await asyncio.to_thread(etcd.wait_until_healthy)
    await eventually(lambda: not store.problem())
    after = await store.create("/c", b"")
    await settled(store)
    assert [event.revision for event in received if event.key != "/b"] == [before, after]


async def test_an_etcd_that_is_away_costs_no_work(etcd: EtcdCluster, store: EtcdStorage) -> None:
    for member in etcd.members:
        member.kill()
    with pytest.raises(StorageUnavailable):
        await store.create("/b", b"")
    begun = time.process_time()
    await asyncio.sleep(2)
    assert time.process_time() - begun < 0.6
