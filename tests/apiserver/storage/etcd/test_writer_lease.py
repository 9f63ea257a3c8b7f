"""The holder of the writer lease reads without asking etcd, and yields the lease to replicas that want to write."""

import asyncio
import random
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import pytest

from clusterregistry.apiserver.storage.cacher import Cacher
from clusterregistry.apiserver.storage.errors import KeyExists, RevisionConflict, StorageUnavailable
from clusterregistry.apiserver.storage.etcd import messages, writer_lease
from clusterregistry.apiserver.storage.etcd.http2.streams import RpcError, StatusCode
from clusterregistry.apiserver.storage.etcd.settings import EtcdSettings
from clusterregistry.apiserver.storage.etcd.store import EtcdStorage
from clusterregistry.apiserver.storage.interface import KeyValue
from tests.apiserver.storage.engines import settled
from tests.apiserver.storage.etcd_engine import eventually, settings_for
from tests.apiserver.storage.etcd_servers import NEEDS_ETCD, EtcdCluster
from tests.apiserver.storage.recording import fill, keys

pytestmark = NEEDS_ETCD

LEASE_SECONDS = 60
AT_ONCE = 30.0
"""Seconds: much more than a handover takes, and less than a lease."""


@pytest.fixture
def settings(etcd: EtcdCluster, prefix: str) -> EtcdSettings:
    return settings_for(etcd, prefix=prefix)


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_lease, "_FIRST_DELAY", 0.02)
    monkeypatch.setattr(writer_lease, "_RETRY_DELAY", 0.02)
    # No lease is to expire only because the machine is busy.
    monkeypatch.setattr(writer_lease, "_LEASE_SECONDS", LEASE_SECONDS)


@pytest.fixture
def short_lease(soon: None, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ARG001 - to come after it
    monkeypatch.setattr(writer_lease, "_LEASE_SECONDS", 3)


@pytest.fixture
async def store(settings: EtcdSettings) -> AsyncIterator[EtcdStorage]:
    """The first one: it holds the lease."""
    async with opened(settings) as storage:
        await acquired(storage)
        yield storage


@pytest.fixture
async def second(settings: EtcdSettings, store: EtcdStorage) -> AsyncIterator[EtcdStorage]:  # noqa: ARG001 - the first one's turn
    async with opened(settings) as storage:
        yield storage


@asynccontextmanager
async def opened(settings: EtcdSettings) -> AsyncIterator[EtcdStorage]:
    storage = await EtcdStorage.open(settings)
    try:
        yield storage
    finally:
        await storage.close()


async def acquired(storage: EtcdStorage) -> int:
    """Waits until a store need not ask, and returns what it knows."""
    await eventually(lambda: storage.known_revision() is not None)
    known = storage.known_revision()
    assert known is not None
    return known


def calls(storage: EtcdStorage, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Notes what etcd is asked."""
    asked: list[str] = []
    for member in storage._client._members:
        call = member.call

        async def noted(name: str, request: Any, *, call: Any = call, **named: Any) -> Any:
            asked.append(name)
            return await call(name, request, **named)

        monkeypatch.setattr(member, "call", noted)
    return asked


# Alone


async def test_the_holder_reads_without_asking_etcd(store: EtcdStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    await fill(store, "/a", "/b", "/c")
    cacher = await Cacher.open(store, "/")
    await settled(cacher)
    asked = calls(store, monkeypatch)
    for _ in range(5):
        page = await cacher.list("/")
        assert len(page.items) == 3
        assert await cacher.get(page.items[0].key) is page.items[0]
        assert cacher.get_cached(page.items[0].key) is page.items[0]
        assert await cacher.get("/missing") is None
    assert asked == []
    await cacher.close()


async def test_each_answered_write_is_read_at_once(store: EtcdStorage) -> None:
    cacher = await Cacher.open(store, "/")
    revision = await cacher.create("/a", b"0")
    for number in range(1, 200):
        revision = await cacher.update("/a", b"%d" % number, expected=revision)
        found = cacher.get_cached("/a") or await cacher.get("/a")
        assert found is not None
        assert (found.value, found.revision) == (b"%d" % number, revision)
    await cacher.delete("/a", expected=revision)
    assert await cacher.get("/a") is None
    await cacher.close()


async def test_nothing_is_known_while_a_write_is_on_its_way(store: EtcdStorage) -> None:
    writing = asyncio.create_task(store.create("/a", b""))
    await asyncio.sleep(0)
    assert store.known_revision() is None
    revision = await writing
    assert store.known_revision() == revision


async def test_a_write_refused_for_its_own_key_leaves_the_lease(store: EtcdStorage) -> None:
    revision = await store.create("/a", b"")
    with pytest.raises(KeyExists):
        await store.create("/a", b"")
    assert store.known_revision() == revision


async def test_writes_in_flight_when_the_lease_is_acquired_are_executed_once(settings: EtcdSettings) -> None:
    async with opened(settings) as storage:
        revisions = []
        for number in range(1000):
            revisions += await asyncio.gather(*(storage.create(f"/{number}-{each}", b"") for each in range(8)))
            if storage.known_revision() is not None and number > 20:
                break
        known = await acquired(storage)
        assert known == max(storage._lease.revision, *revisions)  # acquiring the lease may have been the last write
        assert len(set(revisions)) == len(revisions)
        assert len((await storage.list("/")).items) == len(revisions)


async def test_the_lease_key_is_no_object(store: EtcdStorage) -> None:
    await store.create("/a", b"")
    page = await store.list("/")
    assert keys(page) == ["/a"]
    assert page.remaining == 0
    assert (await store.list("/", limit=1)).remaining == 0


# Several


async def test_the_holder_yields_the_lease_to_a_replica_that_wants_to_write(
    store: EtcdStorage, second: EtcdStorage
) -> None:
    cacher = await Cacher.open(store, "/")
    begun = time.monotonic()
    revision = await second.create("/a", b"")
    assert time.monotonic() - begun < AT_ONCE  # it was asked, not waited for until its lease ended
    assert store.known_revision() is None
    found = await cacher.get("/a")
    assert found is not None
    assert found.revision == revision
    # Both write now, and none needs a handover.
    await asyncio.gather(*(each.create(f"/{n}-{id(each)}", b"") for each in (store, second) for n in range(20)))
    assert store.known_revision() is second.known_revision() is None
    await cacher.close()


async def test_concurrent_writes_share_one_handover_request(store: EtcdStorage, second: EtcdStorage) -> None:
    requests: list[Any] = []
    observe = store._lease.observe

    def noted(events: Any) -> None:
        requests.extend(event for event in events if event.kv.key == store._lease._handover_key)
        observe(events)

    store._lease.observe = noted  # type: ignore[method-assign]
    revisions = await asyncio.gather(*(second.create(f"/{number}", b"") for number in range(50)))
    assert len(set(revisions)) == 50
    await settled(store)
    assert len(requests) == 1


async def test_reads_of_other_replicas_do_not_disturb_the_lease(store: EtcdStorage, second: EtcdStorage) -> None:
    await store.create("/a", b"")
    cacher = await Cacher.open(second, "/")
    for _ in range(10):
        assert await cacher.get("/a") is not None
    await second.compact(await second.current_revision() - 1)
    assert store.known_revision() is not None
    assert second.known_revision() is None
    await cacher.close()


async def test_where_several_replicas_write_none_acquires_the_lease(
    settings: EtcdSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer_lease, "_FIRST_DELAY", 60.0)  # neither holds the lease when it sees the other's writes
    monkeypatch.setattr(writer_lease, "_YIELD_DELAY", 3600.0)
    async with opened(settings) as first, opened(settings) as second:
        written = await first.create("/a", b"")
        await second.wait_for(written)
        await first.wait_for(await second.update("/a", b"", expected=written))
        soon = asyncio.get_running_loop().time() + writer_lease._FIRST_DELAY
        assert first._lease._not_before > soon
        assert second._lease._not_before > soon


async def test_a_replica_that_yielded_the_lease_acquires_it_again_later(
    store: EtcdStorage, second: EtcdStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer_lease, "_YIELD_DELAY", 0.2)
    before = await acquired(store)
    written = await second.create("/a", b"")
    await eventually(lambda: (store.known_revision() or second.known_revision()) is not None)
    known = store.known_revision() or second.known_revision()
    assert known is not None
    assert before < written < known


async def test_a_closed_store_releases_the_lease_for_the_next_one(settings: EtcdSettings) -> None:
    async with opened(settings) as first:
        await acquired(first)
        before = await first.create("/a", b"")
    assert first.known_revision() is None
    begun = time.monotonic()
    async with opened(settings) as second:
        assert await second.update("/a", b"", expected=before) > before
        assert time.monotonic() - begun < AT_ONCE
        assert await acquired(second) > before


@pytest.mark.usefixtures("short_lease")
async def test_other_replicas_wait_for_the_lease_of_a_dead_one_to_expire(settings: EtcdSettings) -> None:
    dead = await EtcdStorage.open(settings)
    await acquired(dead)
    # As after a kill: the lease is neither renewed nor released.
    for running in dead._tasks:
        running.cancel()
    async with opened(settings) as storage:
        begun = time.monotonic()
        await storage.create("/a", b"")
        assert (
            time.monotonic() - begun
            > writer_lease._LEASE_SECONDS * (1 - writer_lease._TRUSTED_PART) - writer_lease._RENEW_SECONDS
        )
        begun = time.monotonic()
        await storage.create("/b", b"")
        assert time.monotonic() - begun < AT_ONCE
    await dead.close()


async def test_a_lease_that_is_not_released_fails_the_write_with_a_remedy(
    store: EtcdStorage, second: EtcdStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer_lease, "_PATIENCE_SECONDS", 0.2)
    monkeypatch.setattr(writer_lease, "_HANDOVER_SECONDS", 0.1)
    monkeypatch.setattr(store._lease, "observe", lambda _: None)
    with pytest.raises(StorageUnavailable, match="another replica holds the writer lease") as refused:
        await second.create("/a", b"")
    assert "try again" in refused.value.remedy
    monkeypatch.undo()
    await second.create("/a", b"")


async def test_closing_a_store_fails_its_writes_that_wait_for_a_handover(
    store: EtcdStorage, second: EtcdStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store._lease, "observe", lambda _: None)
    writing = asyncio.create_task(second.create("/a", b""))
    await eventually(lambda: second._lease._handover is not None)
    begun = time.monotonic()
    await second.close()
    with pytest.raises(StorageUnavailable):
        await writing
    assert time.monotonic() - begun < writer_lease._LEASE_SECONDS
    assert second._lease._handover is not None
    await asyncio.wait([second._lease._handover])


# What a holder must not be wrong about


@pytest.mark.usefixtures("short_lease")
async def test_a_frozen_replica_does_not_trust_a_lease_that_expired(settings: EtcdSettings) -> None:
    ready, overtaken = threading.Event(), threading.Event()
    found: list[KeyValue | None] = []

    async def freeze() -> None:
        async with opened(settings) as storage:
            cacher = await Cacher.open(storage, "/")
            revision = await cacher.create("/a", b"old")
            await acquired(storage)
            await cacher.wait_for(revision)
            found.append(cacher.get_cached("/a"))
            ready.set()
            time.sleep(writer_lease._LEASE_SECONDS + 3)  # noqa: ASYNC251 - as a process that is stopped
            overtaken.wait(60)
            found.append(cacher.get_cached("/a"))
            found.append(await cacher.get("/a"))
            await cacher.close()

    frozen = asyncio.create_task(asyncio.to_thread(asyncio.run, freeze()))
    await asyncio.to_thread(ready.wait, 30)
    assert found[0] is not None
    async with opened(settings) as storage:
        revision = await storage.update("/a", b"new", expected=found[0].revision)
        overtaken.set()
        await frozen
    assert found[1:] == [None, KeyValue("/a", b"new", revision)]


async def test_a_replica_without_a_watch_does_not_hold_the_lease(
    store: EtcdStorage, second: EtcdStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> None:
        raise StorageUnavailable("the watch broke off")

    # Its watch breaks off each time that it is opened; calls are answered, and the lease is renewed.
    monkeypatch.setattr(store._watch, "_receive_from", broken)
    await store._client.member._watches.close()
    await second.create("/a", b"")  # needs no handover request, which the other would not see
    assert store.known_revision() is None
    await asyncio.sleep(2 * writer_lease._RENEW_SECONDS)
    assert store.known_revision() is None
    monkeypatch.undo()
    monkeypatch.setattr(writer_lease, "_YIELD_DELAY", 0.0)
    await eventually(lambda: store._watch.problem == "")


async def test_a_write_without_a_response_ends_the_lease(store: EtcdStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    before = store._lease.revision
    (member,) = store._client._members
    call = member.call

    async def lost(name: str, request: Any, **named: Any) -> Any:
        answer = await call(name, request, **named)
        if name == "txn" and isinstance(request, bytes):
            raise StorageUnavailable("no answer")
        return answer

    monkeypatch.setattr(member, "call", lost)
    with pytest.raises(StorageUnavailable):
        await store.create("/a", b"")
    assert store.known_revision() is None
    monkeypatch.undo()
    assert await acquired(store) >= store._lease.revision > before
    assert await store.get("/a") is not None


async def test_a_cancelled_write_ends_the_lease(store: EtcdStorage) -> None:
    before = store._lease.revision
    writing = asyncio.create_task(store.create("/a", b""))
    await asyncio.sleep(0)
    writing.cancel()
    with suppress(asyncio.CancelledError):
        await writing
    assert store.known_revision() is None
    await acquired(store)
    assert store._lease.revision > before


async def test_a_lease_that_etcd_has_revoked_is_acquired_again(store: EtcdStorage) -> None:
    before = store._lease.revision
    await store._client.call("revoke", messages.LeaseRevokeRequest(id=store._lease._lease.id))
    writes = await fill(store, *(f"/{number}" for number in range(20)))
    await eventually(lambda: store._lease.revision > before)
    assert await acquired(store) >= writes[-1]


async def test_a_lease_that_could_not_be_released_does_not_refuse_its_own_writes(
    store: EtcdStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a restart of etcd, which restarts the lease."""
    (member,) = store._client._members
    call, before = member.call, store._lease.revision

    async def unable(name: str, request: Any, **named: Any) -> Any:
        if name == "revoke":
            raise RpcError(StatusCode.UNAVAILABLE, "no answer")
        return await call(name, request, **named)

    monkeypatch.setattr(writer_lease, "ATTEMPT_SECONDS", 0.2)
    monkeypatch.setattr(member, "call", unable)
    store._lease.abandon()
    await asyncio.sleep(0.5)
    assert store.known_revision() is None
    begun = time.monotonic()
    await store.create("/a", b"")
    assert time.monotonic() - begun < AT_ONCE
    monkeypatch.setattr(member, "call", call)
    await acquired(store)  # within a minute: no other replica has requested it
    assert store._lease.revision > before


async def test_after_an_unexpected_error_the_lease_is_acquired_again(
    store: EtcdStorage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    keep, before = store._lease._lease.keep_alive, store._lease.revision

    async def fails(**_: object) -> None:
        monkeypatch.setattr(store._lease._lease, "keep_alive", keep)
        raise ZeroDivisionError

    monkeypatch.setattr(store._lease._lease, "keep_alive", fails)
    store._lease.abandon()
    await eventually(lambda: "ZeroDivisionError" in caplog.text)
    await acquired(store)
    assert store._lease.revision > before


async def test_a_copy_of_the_lease_key_is_ignored(settings: EtcdSettings) -> None:
    """As etcdctl make-mirror leaves it: without its lease, so it would never end."""
    async with opened(settings) as storage:
        copied = messages.TxnRequest(success=[{"request_put": {"key": storage._lease._key}}])
        await storage._client.call("txn", copied)
        begun = time.monotonic()
        revision = await storage.create("/a", b"")
        with pytest.raises(KeyExists):
            await storage.create("/a", b"")
        assert time.monotonic() - begun < AT_ONCE
        assert await acquired(storage) > revision
        await storage.create("/b", b"")


# All of it at once


@dataclass(frozen=True)
class Seen:
    """A read or a write of one key: the revision of the key, and when it began and ended."""

    key: str
    revision: int
    begun: float
    ended: float


def stale(operations: list[Seen]) -> list[tuple[Seen, Seen]]:
    """Those that show less than what was shown, or answered, before they began."""
    found = []
    for key in {each.key for each in operations}:
        newest: Seen | None = None
        ended = sorted((each for each in operations if each.key == key), key=lambda each: each.ended)
        waiting = iter(ended)
        upcoming = next(waiting, None)
        for each in sorted(ended, key=lambda each: each.begun):
            while upcoming is not None and upcoming.ended < each.begun:
                if newest is None or upcoming.revision > newest.revision:
                    newest = upcoming
                upcoming = next(waiting, None)
            if newest is not None and each.revision < newest.revision:
                found.append((newest, each))
    return found


def test_what_is_stale_is_found() -> None:
    first, second = Seen("/a", 1, 0.0, 1.0), Seen("/a", 2, 2.0, 3.0)
    assert stale([first, second]) == []
    assert stale([first, second, late := Seen("/a", 1, 3.5, 4.0)]) == [(second, late)]
    assert stale([first, second, Seen("/a", 1, 2.5, 4.0), Seen("/b", 1, 3.5, 4.0)]) == []


class Users:
    """Those who read and write two keys by way of several replicas, until their time is up."""

    def __init__(self, cachers: Sequence[Cacher], *, seconds: float) -> None:
        self._cachers, self._until = cachers, time.monotonic() + seconds
        self._chance = random.Random(7)
        self.seen: list[Seen] = []
        self.certain = 0
        """Reads without a request to etcd."""

    async def work(self) -> None:
        readers = (self._keep_reading(cacher, key) for cacher in self._cachers for key in ("/a", "/b"))
        await asyncio.gather(*readers, self._keep_writing("/a"), self._keep_writing("/b"))

    async def _keep_reading(self, cacher: Cacher, key: str) -> None:
        while time.monotonic() < self._until:
            await self._note(key, self._read(cacher, key))
            await asyncio.sleep(self._chance.random() * 0.002)

    async def _keep_writing(self, key: str) -> None:
        while time.monotonic() < self._until:
            cacher = self._chance.choice(self._cachers)
            for _ in range(self._chance.choice((1, 3, 30))):
                await self._note(key, self._write(cacher, key))
            await asyncio.sleep(self._chance.random() * 0.1)

    async def _note(self, key: str, work: Awaitable[int]) -> None:
        begun = time.monotonic()
        revision = await work
        self.seen.append(Seen(key, revision, begun, time.monotonic()))

    async def _read(self, cacher: Cacher, key: str) -> int:
        found = cacher.get_cached(key)
        self.certain += found is not None
        found = found or await cacher.get(key)
        assert found is not None
        return found.revision

    async def _write(self, cacher: Cacher, key: str) -> int:
        while True:
            found = await cacher.get(key)
            assert found is not None
            with suppress(RevisionConflict):
                return await cacher.update(key, b"", expected=found.revision)


async def test_no_read_returns_less_than_was_acknowledged_before(
    settings: EtcdSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three replicas read and write, in turns and at once; the lease changes its holder many times."""
    monkeypatch.setattr(writer_lease, "_RETRY_DELAY", 0.005)
    monkeypatch.setattr(writer_lease, "_RENEW_SECONDS", 0.01)
    monkeypatch.setattr(writer_lease, "_YIELD_DELAY", 0.03)
    async with opened(settings) as one, opened(settings) as two, opened(settings) as three:
        cachers = [await Cacher.open(each, "/") for each in (one, two, three)]
        await fill(one, "/a", "/b")
        users = Users(cachers, seconds=5.0)
        await users.work()
        for cacher in cachers:
            await cacher.close()
    assert users.certain > 50
    assert len(users.seen) > 500
    assert stale(users.seen) == []
