"""A store in an etcd that others use too: their keys, their revisions, their compactions."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from clusterregistry.apiserver.storage.cacher import Cacher
from clusterregistry.apiserver.storage.errors import (
    RevisionCompacted,
    RevisionInFuture,
    StorageUnavailable,
    ValueTooLarge,
)
from clusterregistry.apiserver.storage.etcd import messages
from clusterregistry.apiserver.storage.etcd.key_range import Range
from clusterregistry.apiserver.storage.etcd.store import EtcdStorage
from clusterregistry.apiserver.storage.etcd.watch_loop import tells_true_progress
from clusterregistry.apiserver.storage.interface import Event, KeyValue, Page
from tests.apiserver.storage.engines import settled
from tests.apiserver.storage.etcd_engine import eventually, settings_for
from tests.apiserver.storage.etcd_servers import NEEDS_ETCD, EtcdCluster, Settings
from tests.apiserver.storage.recording import fill, keys

pytestmark = NEEDS_ETCD

_numbers = count()


@pytest.fixture(scope="module")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdCluster]:
    with EtcdCluster(tmp_path_factory.mktemp("etcd")) as etcd:
        yield etcd


@pytest.fixture
def prefix() -> str:
    return f"/registry/{next(_numbers)}"


@pytest.fixture
async def store(etcd: EtcdCluster, prefix: str) -> AsyncIterator[EtcdStorage]:
    storage = await EtcdStorage.open(settings_for(etcd, prefix=prefix))
    yield storage
    await storage.close()


@pytest.fixture
async def second(etcd: EtcdCluster, prefix: str) -> AsyncIterator[EtcdStorage]:
    """The same store, opened by another replica."""
    storage = await EtcdStorage.open(settings_for(etcd, prefix=prefix))
    yield storage
    await storage.close()


@pytest.fixture
async def stranger(etcd: EtcdCluster) -> AsyncIterator[EtcdStorage]:
    """Somebody else in the same etcd."""
    storage = await EtcdStorage.open(settings_for(etcd, prefix="/elsewhere"))
    yield storage
    await storage.close()


async def go_away(store: EtcdStorage) -> None:
    """Has a store hear of nothing any longer, as when its network is gone."""
    for running in store._running:
        running.cancel()
    await asyncio.wait(store._running)


def come_back(store: EtcdStorage) -> None:
    store._running = [asyncio.create_task(store._follower.run(after=store._follower._after))]


async def test_the_changes_of_others_are_no_events_but_their_revisions_are_reached(
    store: EtcdStorage, stranger: EtcdStorage
) -> None:
    received: list[Event] = []
    store.subscribe("", received.extend)
    for _ in range(3):
        foreign = await stranger.create(f"/{next(_numbers)}", b"")
        await store.wait_for(await store.current_revision())
        assert store.revision >= foreign
    assert received == []


async def test_a_cache_answers_from_memory_though_others_have_written_last(
    store: EtcdStorage, stranger: EtcdStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    created = await store.create("/a", b"1")
    cacher = await Cacher.open(store, "/")
    monkeypatch.setattr(store, "get", None)
    monkeypatch.setattr(store, "list", None)
    foreign = await stranger.create(f"/{next(_numbers)}", b"")
    item, page = await asyncio.gather(cacher.get("/a"), cacher.list("/"))
    assert item == KeyValue("/a", b"1", created)
    assert page.revision >= foreign
    await cacher.close()


async def test_many_who_wait_because_of_others_cause_one_write_at_most(
    store: EtcdStorage, stranger: EtcdStorage
) -> None:
    foreign = await stranger.create(f"/{next(_numbers)}", b"")
    await asyncio.gather(*(store.wait_for(foreign) for _ in range(50)))
    assert await store.current_revision() <= foreign + 1


@pytest.mark.usefixtures("impatient")
async def test_waiting_for_the_future_makes_no_revision(store: EtcdStorage) -> None:
    revision = await store.current_revision()
    with pytest.raises(RevisionInFuture):
        await store.wait_for(revision + 1)
    assert await store.current_revision() == revision


async def test_history_skips_the_revisions_of_others(
    etcd: EtcdCluster, store: EtcdStorage, stranger: EtcdStorage, prefix: str
) -> None:
    start = await store.current_revision()
    expected: list[tuple[str, int]] = []
    for name in ("/a", "/b", "/c"):
        expected += [(name, revision) for revision in await fill(store, name)]
        await fill(stranger, f"/{next(_numbers)}", f"/{next(_numbers)}")
    expected.append(("/a", await store.delete("/a", expected=expected[0][1])))
    await fill(stranger, f"/{next(_numbers)}")
    reopened = await EtcdStorage.open(settings_for(etcd, prefix=prefix))
    for limit in (0, 1, 3, 4, 100):
        found = await reopened.history("/", after=start, limit=limit)
        assert [(event.key, event.revision) for event in found] == expected[: limit or None]
    last = await reopened.history("/", after=expected[-1][1] - 1)
    assert [(event.current, event.previous) for event in last] == [(None, KeyValue("/a", b"/a", expected[0][1]))]
    await reopened.close()


async def test_neighbours_whose_prefix_begins_with_ours_are_no_concern(etcd: EtcdCluster, prefix: str) -> None:
    store, neighbour = [await EtcdStorage.open(settings_for(etcd, prefix=prefix + end)) for end in ("", "-2")]
    received: list[Event] = []
    store.subscribe("", received.extend)
    await neighbour.create("/a", b"")
    await settled(store)
    assert (received, store.count(""), keys(await store.list(""))) == ([], 0, [])
    for storage in (store, neighbour):
        await storage.close()


async def test_keys_that_are_no_text_are_shown_to_nobody(store: EtcdStorage) -> None:
    received: list[Event] = []
    store.subscribe("", received.extend)
    put = {"request_put": {"key": store._range.key("/a") + b"\xff", "value": b"1"}}
    await store._endpoints.call("txn", messages.TxnRequest(success=[put]))
    (created,) = await fill(store, "/a")
    await settled(store)
    assert [event.revision for event in received] == [created]
    assert keys(await store.list("/")) == ["/a"]
    assert store.count("/") == 1


async def test_keys_of_our_own_making_count_for_nothing(store: EtcdStorage) -> None:
    # Some of these are before them in the order of the keys, and some behind.
    names = ["/!", "/-", "/..", "/.z", "/a", "/b"]
    await fill(store, *names)
    await settled(store)
    await store.compact(store.revision)
    for prefix, expected in (("/", names), ("", names), ("/.", ["/..", "/.z"])):
        for limit in range(1, 8):
            page = await store.list(prefix, limit=limit)
            assert keys(page) == expected[:limit]
            assert page.remaining == len(expected[limit:])
    assert store.count("") == len(names)
    assert list(await store.history("", after=store._newest_event - 1)) == []


async def test_a_list_in_many_parts_is_of_one_moment(store: EtcdStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clusterregistry.apiserver.storage.etcd.reader._PAGE", 3)
    revisions = await fill(store, *(f"/{number:02}" for number in range(20)))
    writes = iter([*(store.delete(f"/{n:02}", expected=revisions[n]) for n in range(20))])
    read = store._reader._read

    async def interleaved(*arguments: Any, **named: Any) -> Any:
        answer = await read(*arguments, **named)
        await next(writes)
        return answer

    monkeypatch.setattr(store._reader, "_read", interleaved)
    page = await store.list("/")
    assert keys(page) == [f"/{number:02}" for number in range(20)]
    assert (page.revision, page.remaining) == (revisions[-1], 0)
    for write in writes:
        await write


async def test_a_whole_list_is_right_whatever_is_known_of_its_keys(
    store: EtcdStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clusterregistry.apiserver.storage.etcd.reader._PAGE", 3)
    names = [f"/{letter}/{number}" for letter in "abc" for number in range(9)]
    await fill(store, *names)
    await settled(store)
    strange = {"/", "", "/0", "/b/", "/b/4\U0010ffff", "/\udc80", "/z"}
    for known in (set(names), set(), set(names[::4]), strange, strange | set(names[5:])):
        store._names = known
        for prefix in ("", "/", "/b/", "/c", "/none"):
            expected = [name for name in names if name.startswith(prefix)]
            page = await store.list(prefix)
            assert (keys(page), page.remaining) == (expected, 0)


async def test_a_deletion_at_just_the_revision_that_was_compacted_to_is_not_missed(
    store: EtcdStorage, second: EtcdStorage
) -> None:
    cacher, received = await Cacher.open(store, "/"), list[Event]()
    cacher.subscribe("/", received.extend)
    created = await store.create("/a", b"1")
    await settled(cacher)
    await go_away(store)
    deleted = await second.delete("/a", expected=created)
    await settled(second)
    await second.compact(deleted)
    assert store._follower._after == deleted - 1
    come_back(store)
    await settled(cacher)
    assert await cacher.get("/a") is None
    assert [(event.key, event.current) for event in received][1:] == [("/a", None)]
    await cacher.close()


async def test_what_a_cache_missed_and_nobody_can_tell_it_finds_out(store: EtcdStorage, second: EtcdStorage) -> None:
    cacher, received = await Cacher.open(store, "/"), list[Event]()
    revisions = dict(zip("abcde", await fill(cacher, "/a", "/b", "/c", "/d", "/e"), strict=True))
    await settled(cacher)
    cacher.subscribe("/", received.extend)
    told: list[str] = []
    cacher.subscribe("/", lambda _: told.append("events"), interrupted=lambda: told.append("interrupted"))
    await go_away(store)
    changed = await second.update("/a", b"new", expected=revisions["a"])
    await second.delete("/b", expected=revisions["b"])
    gone = await second.delete("/c", expected=revisions["c"])
    again = await second.create("/c", b"again")
    await second.delete("/e", expected=revisions["e"])
    added = await second.create("/f", b"")
    await settled(second)
    await second.compact(added)
    come_back(store)
    last = await settled(cacher)
    assert gone < again < added <= last
    assert told == ["interrupted", "events"]
    before = {name: KeyValue(f"/{name}", f"/{name}".encode(), at) for name, at in revisions.items()}
    assert {event.key: (event.previous, event.current) for event in received} == {
        "/a": (before["a"], KeyValue("/a", b"new", changed)),
        "/b": (before["b"], None),
        "/c": (before["c"], KeyValue("/c", b"again", again)),
        "/e": (before["e"], None),
        "/f": (None, KeyValue("/f", b"", added)),
    }
    assert [event.revision for event in received] == sorted(event.revision for event in received)
    assert keys(await cacher.list("/")) == ["/a", "/c", "/d", "/f"]
    assert store.count("/") == 4
    later = await cacher.update("/a", b"newer", expected=changed)
    await settled(cacher)
    assert (received[-1].revision, received[-1].previous) == (later, KeyValue("/a", b"new", changed))
    await cacher.close()


async def test_what_is_missed_while_a_cache_looks_for_what_it_missed_is_found_too(
    store: EtcdStorage, second: EtcdStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    cacher, received = await Cacher.open(store, "/"), list[Event]()
    revisions = await fill(cacher, "/a", "/b")
    await settled(cacher)
    cacher.subscribe("/", received.extend)
    read, reads = store.list, 0

    async def read_and_miss(prefix: str, **named: Any) -> Page:
        nonlocal reads
        reads += 1
        page = await read(prefix, **named)
        if reads == 1:
            await miss("/b", revisions[1])
        return page

    async def miss(key: str, revision: int) -> None:
        await go_away(store)
        deleted = await second.delete(key, expected=revision)
        await settled(second)
        await second.compact(deleted)
        come_back(store)
        await settled(store)

    monkeypatch.setattr(store, "list", read_and_miss)
    await miss("/a", revisions[0])
    await eventually(lambda: len(received) == 2)
    assert [(event.key, event.current) for event in received] == [("/a", None), ("/b", None)]
    assert keys(await cacher.list("/")) == []
    await cacher.close()


async def test_a_change_whose_past_is_forgotten_counts_as_a_gap() -> None:
    event = {"kv": {"key": b"/p/a", "create_revision": 3, "mod_revision": 7, "value": b"2"}}
    answer = messages.WatchResponse(events=[event, {**event, "type": messages.DELETE}])
    for each in answer.events:
        with pytest.raises(RevisionCompacted):
            Range("/p").events([each])
    event["kv"]["create_revision"] = 7
    (created,) = Range("/p").events(messages.WatchResponse(events=[event]).events)
    assert created == Event("/a", 7, KeyValue("/a", b"2", 7), None)


async def test_one_change_of_many_keys_is_told_whole_however_large_it_is(
    etcd: EtcdCluster, store: EtcdStorage, prefix: str
) -> None:
    received: list[Event] = []
    names = [f"/{number:02}" for number in range(60)]
    await asyncio.gather(*(store.create(name, b"x" * 100_000) for name in names))
    before = await settled(store)
    store.subscribe("/", received.extend)
    # Six megabytes of superseded values: etcd sends them in pieces.
    await asyncio.to_thread(etcd.etcdctl, "del", "--prefix", prefix + "/")
    deleted = await settled(store)
    assert sorted(event.key for event in received) == names
    assert {event.revision for event in received} == {deleted}
    assert all(event.current is None and event.previous and len(event.previous.value) == 100_000 for event in received)
    # A reader that goes on from the last revision it has got must have got all of it.
    assert sorted(event.key for event in await store.history("/", after=before, limit=1)) == names


async def test_a_large_history_is_not_held_in_one_piece(store: EtcdStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    start = await store.current_revision()
    revisions = [await store.create("/a", b"x" * 50_000)]
    for number in range(200):
        revisions.append(await store.update("/a", b"%d" % number + b"x" * 50_000, expected=revisions[-1]))
    await settled(store)
    batches: list[int] = []
    events = store._range.events

    def noted(batch: Any) -> list[Event]:
        batches.append(len(batch))
        return events(batch)

    monkeypatch.setattr(store._range, "events", noted)
    found = await store.history("/", after=start)
    assert [event.revision for event in found] == revisions
    # etcd answers with a thousand revisions at once, in fragments.
    assert max(batches) < 100


async def test_of_replicas_that_compact_at_once_one_does_it(
    store: EtcdStorage, second: EtcdStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    for storage in (store, second):
        call = storage._endpoints.call

        async def counted(name: str, request: Any, *, call: Any = call, **named: Any) -> Any:
            if name == "compact":
                asked.append(request.revision)
            return await call(name, request, **named)

        monkeypatch.setattr(storage._endpoints, "call", counted)
    for _ in range(5):
        revision = await store.create(f"/{next(_numbers)}", b"")
        await asyncio.gather(settled(store), settled(second))
        await asyncio.gather(*(storage.compact(revision) for storage in (store, second, store, second)))
        assert asked == [revision]
        with pytest.raises(RevisionCompacted) as caught:
            await second.list("/", revision=revision - 1)
        assert caught.value.compacted == revision
        asked.clear()


async def test_a_compaction_by_somebody_else_is_noticed(etcd: EtcdCluster, store: EtcdStorage) -> None:
    first, second, third = await fill(store, "/a", "/b", "/c")
    await settled(store)
    await asyncio.to_thread(etcd.etcdctl, "compact", str(second))
    for operation in (store.list("/", revision=first), store.history("/", after=first)):
        with pytest.raises(RevisionCompacted) as caught:
            await operation
        assert (caught.value.requested, caught.value.compacted) == (first, second)
    assert [event.revision for event in await store.history("/", after=second)] == [third]
    await store.compact(first)  # nothing left to do
    await store.compact(third)


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("3.4.30", False),
        ("3.4.31", True),
        ("3.5.1", False),
        ("3.5.12", False),
        ("3.5.13", True),
        ("3.5.21-rc.1", True),
        ("3.6.0", True),
        ("4.0.0", True),
        ("3.3.99", False),
        ("unknown", False),
    ],
)
def test_progress_is_trusted_from_the_release_on_that_tells_it_after_the_events(
    version: str, *, expected: bool
) -> None:
    assert tells_true_progress(version) is expected


async def test_what_is_too_large_for_etcd_is_refused_and_is_nobody_elses_problem(store: EtcdStorage) -> None:
    for size in (2_000_000, 20_000_000):
        with pytest.raises(ValueTooLarge, match=f"{size} bytes are more than the storage takes") as caught:
            await store.create("/large", b"x" * size)
        assert "--max-request-bytes" in caught.value.remedy
        assert store.problem() == ""
    await store.create("/small", b"")


async def test_a_store_opens_on_an_etcd_that_takes_no_writes(tmp_path: Path) -> None:
    with EtcdCluster(tmp_path, Settings(quota_bytes=400_000)) as etcd:
        settings = settings_for(etcd)
        before = await EtcdStorage.open(settings)
        revision = await before.create("/a", b"x" * 10_000)
        with pytest.raises(StorageUnavailable, match="quota of space"):  # noqa: PT012 - which one is etcd's affair
            for _ in range(20_000):
                revision = await before.update("/a", b"x" * 10_000, expected=revision)
        await before.close()

        store = await EtcdStorage.open(settings)
        assert keys(await store.list("/")) == ["/a"]
        now = await store.current_revision()
        with pytest.raises(StorageUnavailable, match="quota of space") as caught:
            await store.create("/b", b"")
        assert "alarm disarm" in caught.value.remedy
        assert "quota of space" in store.problem()
        assert "etcdctl alarm disarm" in store.problem()
        # Where history ends cannot be known: who resumes from before has to list anew.
        with pytest.raises(RevisionCompacted):
            await store.history("/", after=now - 1)
        assert not await store.history("/", after=now)
        # The watch is one that stays: else it would be begun anew every few seconds, and a problem each time.
        told: list[Event] = []
        store.subscribe("/", told.extend)
        for command in (["compact", str(now)], ["defrag"], ["alarm", "disarm"]):
            await asyncio.to_thread(etcd.etcdctl, *command)
        await eventually(lambda: not store.problem())
        made = await store.create("/b", b"")
        await eventually(lambda: [event.revision for event in told] == [made])
        assert [event.revision for event in await store.history("/", after=now)] == [made]
        await store.close()


async def test_above_its_quota_etcd_is_read_on_and_written_again_when_there_is_room(tmp_path: Path) -> None:
    with EtcdCluster(tmp_path, Settings(quota_bytes=400_000)) as etcd:
        store = await EtcdStorage.open(settings_for(etcd))
        revision = await store.create("/a", b"x" * 10_000)
        with pytest.raises(StorageUnavailable, match="quota of space") as caught:  # noqa: PT012 - which one is etcd's affair
            for _ in range(20_000):  # etcd looks at its size only when it writes to its file, ten times a second
                revision = await store.update("/a", b"x" * 10_000, expected=revision)
        assert "alarm disarm" in caught.value.remedy
        assert "not known" in str(caught.value)
        item = await store.get("/a")
        assert item is not None
        # The write that exceeds the quota may have been done all the same: etcd then answers that error besides.
        assert item.revision >= revision
        revision = item.revision
        await settled(store)
        assert "quota of space" in store.problem()
        for command in (["compact", str(revision)], ["defrag"], ["alarm", "disarm"]):
            await asyncio.to_thread(etcd.etcdctl, *command)
        await eventually(lambda: not store.problem())
        assert await store.update("/a", b"", expected=revision) > revision
        await store.close()
