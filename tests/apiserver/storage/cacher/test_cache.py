"""What the cache adds to the interface: memory, waiting, bounds and shared instances."""

import asyncio
import random
from collections.abc import Sequence

import pytest

from clusterregistry.apiserver.storage.cacher import Cacher
from clusterregistry.apiserver.storage.errors import RevisionCompacted, RevisionInFuture, StorageUnavailable
from clusterregistry.apiserver.storage.interface import (
    Event,
    Guard,
    Interrupted,
    KeyValue,
    Page,
    Sink,
    Subscription,
)
from clusterregistry.apiserver.storage.sqlite import SQLiteStorage
from clusterregistry.apiserver.storage.subscriptions import WAIT_SECONDS, RevisionWaiter


class Spy:
    """A store that counts what goes past the cache, and can withhold its events as a remote one would."""

    def __init__(self, inner: SQLiteStorage, *, sole_writer: bool = True) -> None:
        self.inner, self.sole_writer = inner, sole_writer
        self.reads: list[str] = []
        self.withheld: list[Event] | None = None
        self.listed = asyncio.Event()
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self._feed: Sink = lambda _: None
        self._seen = RevisionWaiter(inner.revision)
        self._newest = inner.revision
        inner.subscribe("", self._note)

    @property
    def revision(self) -> int:
        return self._seen.value

    async def current_revision(self) -> int:
        return await self.inner.current_revision()

    def known_revision(self) -> int | None:
        return self.inner.known_revision() if self.sole_writer else None

    def get_cached(self, key: str) -> KeyValue | None:
        return self.inner.get_cached(key)

    def get_stale(self, key: str) -> KeyValue | None:
        return self.inner.get_stale(key)

    async def get(self, key: str) -> KeyValue | None:
        self.reads.append("get")
        return await self.inner.get(key)

    async def list(self, prefix: str, *, revision: int = 0, after: str = "", limit: int = 0) -> Page:
        self.reads.append("list")
        page = await self.inner.list(prefix, revision=revision, after=after, limit=limit)
        self.listed.set()
        await self.may_answer.wait()
        return page

    async def history(self, prefix: str, *, after: int, limit: int = 0) -> Sequence[Event]:
        self.reads.append("history")
        return await self.inner.history(prefix, after=after, limit=limit)

    async def create(self, key: str, value: bytes, *, guards: Sequence[Guard] = ()) -> int:
        return await self.inner.create(key, value, guards=guards)

    async def update(
        self, key: str, value: bytes, *, expected: int, known: KeyValue | None = None, guards: Sequence[Guard] = ()
    ) -> int:
        return await self.inner.update(key, value, expected=expected, known=known, guards=guards)

    async def delete(self, key: str, *, expected: int, known: KeyValue | None = None) -> int:
        return await self.inner.delete(key, expected=expected, known=known)

    async def compact(self, revision: int) -> None:
        await self.inner.compact(revision)

    async def close(self) -> None:
        await self.inner.close()

    async def wait_for(self, revision: int) -> None:
        await self._seen.reach(revision, seconds=WAIT_SECONDS)

    def count(self, prefix: str) -> int:
        self.reads.append("count")
        return self.inner.count(prefix)

    def problem(self) -> str:
        return self.inner.problem()

    def subscribe(
        self,
        prefix: str,
        sink: Sink,
        *,
        interrupted: Interrupted | None = None,
    ) -> Subscription:
        self._feed = sink
        return self.inner.subscribe(prefix, self._pass_on, interrupted=interrupted)

    def release(self) -> None:
        events, self.withheld = self.withheld or [], None
        self._pass_on(events)
        self._seen.advance(self._newest)

    def _note(self, events: Sequence[Event]) -> None:
        self._newest = events[-1].revision
        if self.withheld is None:
            self._seen.advance(self._newest)

    def _pass_on(self, events: Sequence[Event]) -> None:
        if self.withheld is not None:
            self.withheld.extend(events)
        else:
            self._feed(events)


@pytest.fixture
def spy(sqlite: SQLiteStorage) -> Spy:
    return Spy(sqlite)


async def test_the_present_is_read_from_memory_alone(spy: Spy) -> None:
    await spy.create("/a/1", b"")
    cacher = await Cacher.open(spy, "/a/")
    spy.reads.clear()
    await cacher.create("/a/2", b"")
    assert await cacher.get("/a/1") == KeyValue("/a/1", b"", 2)
    assert await cacher.get("/a/3") is None
    assert len((await cacher.list("/a/", limit=5)).items) == 2
    assert cacher.count("/a/") == 2
    assert cacher.get_stale("/a/2") == KeyValue("/a/2", b"", 3)
    assert cacher.get_cached("/a/2") is cacher.get_stale("/a/2")
    assert spy.reads == []
    await cacher.close()
    assert cacher.get_cached("/a/2") is None


async def test_the_recent_past_is_read_from_memory_alone(spy: Spy) -> None:
    cacher = await Cacher.open(spy, "/")
    spy.reads.clear()
    await cacher.create("/a", b"")
    await cacher.create("/b", b"")
    assert [item.key for item in (await cacher.list("/", revision=2)).items] == ["/a"]
    assert [event.key for event in await cacher.history("/", after=1)] == ["/a", "/b"]
    assert spy.reads == []


async def test_what_is_older_than_memory_comes_from_the_store(spy: Spy) -> None:
    await spy.create("/a", b"")
    await spy.create("/b", b"")
    cacher = await Cacher.open(spy, "/")
    spy.reads.clear()
    assert [item.key for item in (await cacher.list("/", revision=2)).items] == ["/a"]
    assert [event.key for event in await cacher.history("/", after=1)] == ["/a", "/b"]
    assert spy.reads == ["list", "history"]


async def test_any_page_of_any_recent_revision_equals_the_one_that_the_store_itself_reads(spy: Spy) -> None:
    chance = random.Random(7)
    cacher = await Cacher.open(spy, "/")
    for turn in range(80):
        key = f"/{chance.choice('ab')}/{chance.randrange(8)}"
        item = cacher.get_stale(key)
        if item is None:
            await cacher.create(key, b"%d" % turn)
        elif chance.random() < 0.5:
            await cacher.update(key, b"%d" % turn, expected=item.revision)
        else:
            await cacher.delete(key, expected=item.revision)
    for revision in range(1, cacher.revision + 1):
        for prefix, after, limit in [("/", "", 0), ("/", "/a/3", 3), ("/b", "/a/9", 2), ("/a/", "/a/55", 0)]:
            found = await cacher.list(prefix, revision=revision, after=after, limit=limit)
            assert found == await spy.inner.list(prefix, revision=revision, after=after, limit=limit)
    assert spy.reads == ["list"]  # that of the load


async def test_other_prefixes_are_left_to_the_store(spy: Spy) -> None:
    cacher = await Cacher.open(spy, "/a/")
    received: list[Event] = []
    cacher.subscribe("/b/", received.extend)
    await cacher.create("/b/1", b"")
    assert await cacher.get("/b/1") == KeyValue("/b/1", b"", 2)
    assert len((await cacher.list("/")).items) == 1
    assert len(await cacher.history("/", after=1)) == 1
    assert len(received) == 1
    assert cacher.get_stale("/b/1") is None


async def test_the_revision_follows_the_whole_store(spy: Spy) -> None:
    cacher = await Cacher.open(spy, "/a/")
    assert await cacher.create("/b/1", b"") == 2
    assert cacher.revision == 2
    assert (await cacher.list("/a/")).revision == 2


async def test_the_number_of_kept_events_is_bounded(spy: Spy) -> None:
    cacher = await Cacher.open(spy, "/", most_events=10)
    for n in range(25):
        await cacher.create(f"/{n}", b"")
    assert len(cacher._recent) == 10
    spy.reads.clear()
    assert len(await cacher.history("/", after=16)) == 10
    assert spy.reads == []
    assert len(await cacher.history("/", after=15)) == 11
    assert spy.reads == ["history"]


async def test_the_memory_of_kept_events_is_bounded(spy: Spy) -> None:
    cacher = await Cacher.open(spy, "/", most_bytes=50_000)
    revision = await cacher.create("/a", b"x" * 9_000)
    for _ in range(20):
        revision = await cacher.update("/a", b"x" * 9_000, expected=revision)
    assert len(cacher._recent) == 5
    assert len(await cacher.history("/", after=1)) == 21


async def test_an_event_larger_than_the_bound_is_not_kept_at_all(spy: Spy) -> None:
    cacher = await Cacher.open(spy, "/", most_bytes=5_000)
    await cacher.create("/a", b"x" * 9_000)
    await cacher.delete("/a", expected=2)
    assert len(cacher._recent) == 0
    assert len(await cacher.history("/", after=1)) == 2


async def test_what_is_written_while_it_loads_is_neither_missed_nor_applied_twice(spy: Spy) -> None:
    await spy.create("/a", b"1")
    spy.may_answer.clear()
    opening = asyncio.ensure_future(Cacher.open(spy, "/"))
    await spy.listed.wait()
    await spy.create("/b", b"1")
    await spy.delete("/a", expected=2)
    spy.may_answer.set()
    cacher = await opening
    assert (await cacher.list("/")).items == [KeyValue("/b", b"1", 3)]
    assert cacher.revision == 4
    assert [event.revision for event in await cacher.history("/", after=1)] == [2, 3, 4]


async def test_an_event_that_the_load_already_holds_is_skipped(spy: Spy) -> None:
    await spy.create("/a", b"1")
    spy.may_answer.clear()
    opening = asyncio.ensure_future(Cacher.open(spy, "/"))
    await spy.listed.wait()
    # The load saw a commit whose event was still on its way to the loop.
    spy._pass_on(await spy.history("/", after=1))
    spy.may_answer.set()
    cacher = await opening
    assert (await cacher.list("/")).items == [KeyValue("/a", b"1", 2)]
    assert len(cacher._recent) == 0
    assert cacher.revision == 2


async def test_one_instance_is_handed_out_for_a_key_at_a_revision(spy: Spy) -> None:
    await spy.create("/a", b"1")
    cacher = await Cacher.open(spy, "/")
    received: list[Event] = []
    cacher.subscribe("/", received.extend)
    loaded = await cacher.get("/a")
    assert loaded is not None
    loaded.memo = "derived"
    await cacher.update("/a", b"2", expected=2)
    changed = cacher.get_stale("/a")
    await cacher.delete("/a", expected=3)
    assert received[0].previous is loaded
    assert received[0].current is changed
    assert received[1].previous is changed
    assert (await cacher.list("/", revision=2)).items[0] is loaded
    assert (await cacher.list("/", revision=3)).items[0] is changed
    assert (await cacher.history("/", after=2))[0].previous is loaded


async def test_memory_already_has_an_event_when_it_is_handed_out(spy: Spy) -> None:
    cacher = await Cacher.open(spy, "/")
    found: list[tuple[KeyValue | None, int]] = []
    cacher.subscribe("/", lambda _: found.append((cacher.get_stale("/a"), cacher.revision)))
    await cacher.create("/a", b"1")
    assert found == [(KeyValue("/a", b"1", 2), 2)]


async def test_waiting_for_a_revision_that_is_there_takes_no_time(spy: Spy) -> None:
    cacher = await Cacher.open(spy, "/")
    await cacher.wait_for(1, timeout=0)


async def test_waiting_ends_when_the_revision_comes_whatever_its_prefix(spy: Spy) -> None:
    cacher = await Cacher.open(spy, "/a/")
    waiting = asyncio.ensure_future(cacher.wait_for(3))
    await cacher.create("/a/1", b"")
    await asyncio.sleep(0)
    assert not waiting.done()
    await cacher.create("/b/1", b"")
    await waiting


async def test_waiting_in_vain_ends_with_an_error(spy: Spy) -> None:
    cacher = await Cacher.open(spy, "/")
    with pytest.raises(RevisionInFuture) as caught:
        await cacher.wait_for(9, timeout=0.01)
    assert (caught.value.requested, caught.value.current) == (9, 1)
    assert cacher._waiting == set()


async def test_closing_ends_all_waiting_and_leaves_the_store_open(spy: Spy) -> None:
    cacher = await Cacher.open(spy, "/")
    waiting = asyncio.ensure_future(cacher.wait_for(9))
    await asyncio.sleep(0)
    await cacher.close()
    with pytest.raises(StorageUnavailable):
        await waiting
    assert await spy.create("/a", b"") == 2
    assert cacher.revision == 1


async def test_around_a_shared_store_a_read_waits_for_what_was_written_before_it(sqlite: SQLiteStorage) -> None:
    spy = Spy(sqlite, sole_writer=False)
    cacher = await Cacher.open(spy, "/")
    assert not cacher.sole_writer
    spy.withheld = []
    await spy.create("/a", b"1")  # as another replica would
    assert cacher.get_stale("/a") is None
    reads = asyncio.gather(cacher.get("/a"), cacher.list("/"), cacher.list("/", revision=2))
    await asyncio.sleep(0)
    assert not reads.done()
    spy.release()
    item, page, past = await reads
    assert item == KeyValue("/a", b"1", 2)
    assert (len(page.items), len(past.items)) == (1, 1)
    assert cacher.get_cached("/a") is None  # another replica may have changed it meanwhile


async def test_history_ends_at_the_last_event_received_and_subscribers_get_the_rest(sqlite: SQLiteStorage) -> None:
    spy = Spy(sqlite, sole_writer=False)
    cacher = await Cacher.open(spy, "/")
    spy.withheld = []
    await spy.create("/a", b"1")
    received: list[Event] = []
    cacher.subscribe("/", received.extend)
    assert await cacher.history("/", after=1) == []
    spy.release()
    assert [event.revision for event in received] == [2]
    assert list(await cacher.history("/", after=1)) == received


async def test_history_has_all_of_a_revision_or_nothing(sqlite: SQLiteStorage) -> None:
    """Others may change several keys in one revision, and who reads page by page goes on behind the last one."""
    spy = Spy(sqlite, sole_writer=False)
    cacher = await Cacher.open(spy, "/")
    for keys, revision in ((["/x/a", "/y", "/x/b", "/x/c"], 2), (["/x/d"], 3)):
        spy._pass_on([Event(key, revision, KeyValue(key, b"", revision), None) for key in keys])
    for limit, found in ((1, "abc"), (3, "abc"), (4, "abcd"), (5, "abcd"), (0, "abcd")):
        assert [event.key for event in await cacher.history("/x/", after=1, limit=limit)] == [f"/x/{n}" for n in found]


async def test_events_that_come_late_do_not_bring_back_what_was_compacted(sqlite: SQLiteStorage) -> None:
    spy = Spy(sqlite, sole_writer=False)
    cacher = await Cacher.open(spy, "/", most_events=1)
    spy.withheld = []
    for n in range(4):
        await spy.create(f"/{n}", b"")
    await cacher.compact(5)
    spy.release()
    with pytest.raises(RevisionCompacted):
        await cacher.list("/", revision=4)
    assert len((await cacher.list("/", revision=5)).items) == 4


async def test_around_a_shared_store_that_sends_no_events_reads_go_to_the_store(
    sqlite: SQLiteStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Cacher.wait_for, "__defaults__", (0.01,))
    spy = Spy(sqlite, sole_writer=False)
    cacher = await Cacher.open(spy, "/")
    spy.withheld = []
    await spy.create("/a", b"1")
    spy.reads.clear()
    assert await cacher.get("/a") == KeyValue("/a", b"1", 2)
    assert len((await cacher.list("/")).items) == 1
    assert spy.reads == ["get", "list"]


async def test_a_load_that_fails_leaves_no_subscription(sqlite: SQLiteStorage) -> None:
    await sqlite.close()
    with pytest.raises(StorageUnavailable):
        await Cacher.open(sqlite, "/")
    assert sqlite._subscriptions._groups == {}


async def test_a_thousand_subscribers_come_and_go(spy: Spy) -> None:
    cacher = await Cacher.open(spy, "/")
    counts = [0] * 1000

    def sink(n: int) -> Sink:
        def count(events: Sequence[Event]) -> None:
            counts[n] += len(events)

        return count

    subscriptions = [cacher.subscribe("/", sink(n)) for n in range(1000)]
    await cacher.create("/a", b"")
    for subscription in subscriptions[::2]:
        subscription.close()
    await cacher.create("/b", b"")
    assert counts == [1, 2] * 500
    for subscription in subscriptions:
        subscription.close()
    assert cacher._subscriptions._groups == {}
