"""What every store does for those who use it at the same time: in one process, and in several."""

import asyncio
import random
from contextlib import suppress

import pytest

from clusterregistry.apiserver.storage.errors import KeyExists, KeyNotFound, RevisionCompacted, RevisionConflict
from clusterregistry.apiserver.storage.interface import Event, KeyValue, Storage
from tests.apiserver.storage.engines import SharedEngine, settled
from tests.apiserver.storage.recording import Chronicle, Watch, histories, keys

Pair = tuple[Storage, Storage]


async def increment(store: Storage, key: str, *, times: int) -> list[int]:
    """Adds to a counter as a client does that retries on conflict; returns the revisions of its writes."""
    revisions: list[int] = []
    while len(revisions) < times:
        item = await store.get(key)
        assert item is not None
        with suppress(RevisionConflict):
            revisions.append(await store.update(key, b"%d" % (int(item.value) + 1), expected=item.revision))
    return revisions


async def test_of_simultaneous_creates_of_one_key_one_wins(store: Storage) -> None:
    outcomes = await asyncio.gather(*(store.create("/a", b"%d" % n) for n in range(20)), return_exceptions=True)
    ((winner, revision),) = [(n, outcome) for n, outcome in enumerate(outcomes) if isinstance(outcome, int)]
    assert sum(isinstance(outcome, KeyExists) for outcome in outcomes) == 19
    assert await store.get("/a") == KeyValue("/a", b"%d" % winner, revision)
    assert await store.current_revision() == revision


async def test_of_simultaneous_updates_from_one_revision_one_wins(store: Storage) -> None:
    created = await store.create("/a", b"")
    outcomes = await asyncio.gather(
        *(store.update("/a", b"%d" % n, expected=created) for n in range(20)), return_exceptions=True
    )
    (winner,) = [n for n, outcome in enumerate(outcomes) if isinstance(outcome, int)]
    assert await store.get("/a") == KeyValue("/a", b"%d" % winner, created + 1)
    # The error of the loser names the winner's revision.
    assert {outcome.actual for outcome in outcomes if isinstance(outcome, RevisionConflict)} == {created + 1}


async def test_of_simultaneous_deletes_one_wins(store: Storage) -> None:
    created = await store.create("/a", b"")
    outcomes = await asyncio.gather(*(store.delete("/a", expected=created) for _ in range(10)), return_exceptions=True)
    assert [outcome for outcome in outcomes if isinstance(outcome, int)] == [created + 1]
    assert sum(isinstance(outcome, KeyNotFound) for outcome in outcomes) == 9


async def test_of_an_update_and_a_delete_at_once_one_wins(store: Storage) -> None:
    for turn in range(10):
        created = await store.create(f"/{turn}", b"")
        updated, deleted = await asyncio.gather(
            store.update(f"/{turn}", b"new", expected=created),
            store.delete(f"/{turn}", expected=created),
            return_exceptions=True,
        )
        assert isinstance(updated, int) != isinstance(deleted, int)
        assert (await store.get(f"/{turn}") is None) == isinstance(deleted, int)


async def test_writers_that_retry_on_conflict_lose_no_increment(store: Storage) -> None:
    start = await store.create("/counter", b"0")
    done = await asyncio.gather(*(increment(store, "/counter", times=10) for _ in range(8)))
    revisions = sorted(revision for each in done for revision in each)
    assert len(set(revisions)) == 80
    assert revisions[0] > start
    assert await store.get("/counter") == KeyValue("/counter", b"80", revisions[-1])


async def test_writers_of_several_keys_do_not_hinder_each_other(store: Storage) -> None:
    created = [await store.create(f"/{counter}", b"0") for counter in range(5)]
    done = await asyncio.gather(*(increment(store, f"/{n % 5}", times=8) for n in range(10)))
    assert [item.value for item in (await store.list("/")).items] == [b"16"] * 5
    revisions = sorted(revision for each in done for revision in each)
    assert len(set(revisions)) == 80
    await settled(store)
    assert [event.revision for event in await store.history("/", after=created[-1])] == revisions


async def test_writes_from_one_caller_get_strictly_increasing_revisions(store: Storage) -> None:
    revisions = [await store.create(f"/{n}", b"") for n in range(50)]
    assert revisions == sorted(set(revisions))


async def test_concurrent_writes_of_a_sole_writer_keep_their_order(sole_store: Storage) -> None:
    start = sole_store.revision
    created, updated, deleted = await asyncio.gather(
        sole_store.create("/a", b"1"),
        sole_store.update("/a", b"2", expected=start + 1),
        sole_store.delete("/a", expected=start + 2),
    )
    assert (created, updated, deleted) == (start + 1, start + 2, start + 3)
    assert await sole_store.get("/a") is None


async def test_an_answered_write_is_read_by_everyone(store: Storage) -> None:
    async def write(n: int) -> None:
        revision = await store.create(f"/{n}", b"")
        assert await store.get(f"/{n}") == KeyValue(f"/{n}", b"", revision)
        page = await store.list("/")
        assert f"/{n}" in keys(page)
        assert page.revision >= revision
        assert f"/{n}" in keys(await store.list("/", revision=revision))
        assert await store.current_revision() >= revision

    await asyncio.gather(*(write(n) for n in range(30)))


async def test_an_acknowledged_write_of_a_sole_writer_is_visible(sole_store: Storage) -> None:
    async def write(n: int) -> None:
        revision = await sole_store.create(f"/{n}", b"")
        assert sole_store.revision >= revision
        assert revision in {event.revision for event in await sole_store.history(f"/{n}", after=revision - 1)}

    await asyncio.gather(*(write(n) for n in range(30)))
    assert sole_store.count("/") == 30


async def test_a_list_is_one_moment_and_moments_do_not_go_back(store: Storage) -> None:
    # /x is always written before /y: no moment has them further apart than one.
    revisions = {key: await store.create(key, b"0") for key in ("/x", "/y")}

    async def write() -> None:
        for turn in range(1, 60):
            for key, revision in tuple(revisions.items()):
                revisions[key] = await store.update(key, b"%d" % turn, expected=revision)

    writing = asyncio.ensure_future(write())
    newest = (0, 0)
    lists = 0
    while not writing.done():
        page = await store.list("/")
        x, y = (int(item.value) for item in page.items)
        assert x - y in {0, 1}
        assert (page.revision, x) >= newest
        newest = (page.revision, x)
        lists += 1
        await asyncio.wait([writing], timeout=0.001)
    await writing
    assert lists > 1


async def test_a_cancelled_write_happened_or_not_and_disturbs_no_other(store: Storage) -> None:
    start = await store.current_revision()
    cancelled = [asyncio.ensure_future(store.create(f"/cancelled/{n}", b"")) for n in range(10)]
    others = [asyncio.ensure_future(store.create(f"/other/{n}", b"")) for n in range(10)]
    await asyncio.sleep(0)
    for number, write in enumerate(cancelled):
        write.cancel()
        if number % 3 == 0:
            await asyncio.sleep(0)
    revisions = await asyncio.gather(*others)
    outcomes = await asyncio.gather(*cancelled, return_exceptions=True)
    assert any(isinstance(outcome, asyncio.CancelledError) for outcome in outcomes)
    # The last word: whatever becomes of the cancelled ones has been decided before this write.
    last = await store.create("/last", b"")
    await settled(store)
    events = await store.history("/", after=start)
    assert {event.revision for event in events} >= {*revisions, last}
    listed = await store.list("/cancelled/")
    assert keys(listed) == sorted(event.key for event in events if event.key.startswith("/cancelled/"))


async def test_cancelled_updates_leave_the_key_usable(store: Storage) -> None:
    await store.create("/counter", b"0")
    for _ in range(10):
        item = await store.get("/counter")
        assert item is not None
        write = asyncio.ensure_future(store.update("/counter", b"1000", expected=item.revision))
        await asyncio.sleep(0)
        write.cancel()
        await asyncio.gather(write, return_exceptions=True)
        await increment(store, "/counter", times=1)
    item = await store.get("/counter")
    assert item is not None
    assert item.revision == await store.current_revision()


async def test_cancelled_reads_and_compactions_leave_the_store_usable(store: Storage) -> None:
    written = await Chronicle.of(store)
    await written.scribble(store, writes=30, chance=random.Random(8))
    await settled(store)
    for _ in range(5):
        work = [
            asyncio.ensure_future(store.list("/", revision=written.revisions[20])),
            asyncio.ensure_future(store.get("/a/1")),
            asyncio.ensure_future(store.history("/", after=written.revisions[20])),
            asyncio.ensure_future(store.compact(written.revisions[10])),
            asyncio.ensure_future(store.current_revision()),
        ]
        await asyncio.sleep(0)
        for each in work:
            each.cancel()
        await asyncio.gather(*work, return_exceptions=True)
    await store.compact(written.revisions[10])
    await written.put(store, "/last")
    await settled(store)
    assert list((await store.list("/")).items) == written.state(written.last)
    assert list(await store.history("/", after=written.revisions[10])) == written.events[10:]


async def test_what_one_wrote_another_reads_at_once(pair: Pair) -> None:
    first, second = pair
    for turn in range(10):
        writer, reader = (first, second) if turn % 2 else (second, first)
        key = f"/{turn}"
        revision = await writer.create(key, b"1")
        assert await reader.current_revision() >= revision
        assert await reader.get(key) == KeyValue(key, b"1", revision)
        assert key in keys(await reader.list("/"))
        assert key in keys(await reader.list("/", revision=revision))
        deleted = await reader.delete(key, expected=revision)
        assert await writer.get(key) is None
        assert keys(await writer.list("/", revision=deleted)) == []


async def test_what_one_wrote_another_can_wait_for(pair: Pair) -> None:
    first, second = pair
    revision = await first.create("/a", b"1")
    await second.wait_for(revision)
    assert second.revision >= revision
    assert second.count("/") == 1
    assert [event.revision for event in await second.history("/", after=revision - 1)] == [revision]


async def test_a_write_on_a_changed_key_conflicts(pair: Pair) -> None:
    first, second = pair
    created = await first.create("/a", b"1")
    updated = await second.update("/a", b"2", expected=created)
    with pytest.raises(RevisionConflict) as caught:
        await first.update("/a", b"3", expected=created)
    assert caught.value.actual == updated
    with pytest.raises(KeyExists):
        await first.create("/a", b"")
    await first.delete("/a", expected=updated)
    with pytest.raises(KeyNotFound):
        await second.update("/a", b"", expected=updated)


async def test_two_writers_that_retry_on_conflict_lose_no_increment(pair: Pair) -> None:
    await pair[0].create("/counter", b"0")
    done = await asyncio.gather(*(increment(pair[n % 2], "/counter", times=10) for n in range(6)))
    revisions = sorted(revision for each in done for revision in each)
    assert len(set(revisions)) == 60
    for store in pair:
        assert await store.get("/counter") == KeyValue("/counter", b"60", revisions[-1])


async def test_subscribers_of_both_see_the_same_log(pair: Pair) -> None:
    first, second = pair
    written = await Chronicle.of(first)
    received: list[list[Event]] = [[], []]
    for store, events in zip(pair, received, strict=True):
        store.subscribe("/", events.extend)
    await written.scribble(first, second, writes=80, chance=random.Random(9))
    for store in pair:
        await settled(store)
    for events in received:
        assert [event for event in events if event.revision > written.start] == written.events


async def test_a_store_opened_during_writes_has_those_before_and_gets_those_after(shared_engine: SharedEngine) -> None:
    first = await shared_engine.open()
    written = await Chronicle.of(first)
    writing = asyncio.ensure_future(written.scribble(first, writes=120, chance=random.Random(12)))
    joined: list[tuple[Storage, int, list[Event]]] = []
    while not writing.done():
        store, received = await shared_engine.open_second(), list[Event]()
        joined.append((store, store.revision, received))
        store.subscribe("/", received.extend)
        await asyncio.wait([writing], timeout=0.01)
    await writing
    for store, revision, received in joined:
        await settled(store)
        assert list((await store.list("/")).items) == written.state(written.last)
        # What it found when it was opened is not delivered again, however late the events arrive.
        assert received == written.history(after=revision)


async def test_a_watch_goes_on_with_the_other_without_a_gap(pair: Pair) -> None:
    written, chance = await Chronicle.of(pair[0]), random.Random(10)
    seen: list[Event] = []
    after = written.start
    for turn in range(10):
        watch = Watch()
        subscription = await watch.start(pair[turn % 2], after=after)
        await written.scribble(*pair, writes=7, chance=chance)
        await pair[turn % 2].wait_for(written.revisions[-3])  # now and then it leaves before it has seen the last
        subscription.close()
        seen += watch.events
        after = seen[-1].revision
    watch = Watch()
    await settled(pair[0])
    await watch.start(pair[0], after=after)
    assert [*seen, *watch.events] == written.events


async def test_history_compacted_by_another_store_is_exact_or_refused(pair: Pair) -> None:
    first, second = pair
    written = await Chronicle.of(first)
    await written.scribble(first, second, writes=40, chance=random.Random(11))
    await settled(first)
    await first.compact(written.revisions[30])
    for revision in written.revisions:
        try:
            page = await second.list("/", revision=revision)
        except RevisionCompacted:
            assert revision < written.revisions[30]
        else:
            assert list(page.items) == written.state(revision)
    await settled(second)
    assert await histories(second, written.revisions[30:]) == written.histories(written.revisions[30:])
    await second.compact(written.revisions[20])
    await second.compact(written.revisions[35])
    assert list((await first.list("/")).items) == written.state(written.last)
