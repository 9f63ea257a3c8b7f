"""What every store does with a compaction."""

import asyncio
import random

import pytest

from clusterregistry.apiserver.storage.errors import RevisionCompacted, RevisionInFuture
from clusterregistry.apiserver.storage.interface import Event, KeyValue, Page, Storage
from tests.apiserver.storage.engines import settled
from tests.apiserver.storage.recording import Chronicle, Watch, histories, refusals


async def history_of_ten(store: Storage) -> Chronicle:
    """Writes 1 to 5 create /0 to /4, 6 and 7 change /0, 8 deletes /1, 9 deletes /2, 10 makes /1 again."""
    written = await Chronicle.of(store)
    for n in range(5):
        await written.put(store, f"/{n}", b"%d" % n)
    await written.put(store, "/0", b"0a")
    await written.put(store, "/0", b"0b")
    await written.delete(store, "/1")
    await written.delete(store, "/2")
    await written.put(store, "/1", b"1a")
    await settled(store)
    return written


async def compact(store: Storage, revision: int) -> None:
    await store.compact(revision)
    await settled(store)


async def test_reads_below_the_compacted_revision_are_refused_with_the_oldest_kept(store: Storage) -> None:
    written = await history_of_ten(store)
    kept = written.revisions[8]
    await compact(store, kept)
    old = [*written.revisions[:8], -1]
    expected = [(revision, kept) for revision in old]
    assert await refusals(store.list("/", revision=revision) for revision in old) == expected
    assert await refusals(store.history("/", after=revision) for revision in old) == expected
    assert await refusals([store.history("/", after=0)]) == [(0, kept)]


async def test_a_compacted_revision_is_refused_whatever_else_is_asked_for(store: Storage) -> None:
    written = await history_of_ten(store)
    await compact(store, written.revisions[8])
    old = written.revisions[7]
    for prefix in ("/none", "/4"):
        with pytest.raises(RevisionCompacted):
            await store.list(prefix, revision=old)
        with pytest.raises(RevisionCompacted):
            await store.list(prefix, revision=old, after="/z", limit=1)
        with pytest.raises(RevisionCompacted):
            await store.history(prefix, after=old, limit=1)


async def test_the_compacted_revision_and_all_later_ones_stay_as_they_were(store: Storage) -> None:
    written = await history_of_ten(store)
    for write in (1, 4, 6, 8, 9, 10):
        await compact(store, written.revisions[write])
        kept = written.revisions[write:]
        for revision in kept:
            assert await store.list("/", revision=revision) == Page(written.state(revision), revision, 0)
        assert await histories(store, kept) == written.histories(kept)
        assert list((await store.list("/")).items) == written.state(written.last)


async def test_an_event_behind_the_compacted_revision_still_has_its_previous_value(store: Storage) -> None:
    created = await store.create("/a", b"1")
    other = await store.create("/b", b"")
    updated = await store.update("/a", b"2", expected=created)
    await settled(store)
    await compact(store, other)
    (event,) = await store.history("/", after=other)
    assert event == Event("/a", updated, KeyValue("/a", b"2", updated), KeyValue("/a", b"1", created))


@pytest.mark.parametrize("seed", range(3))
async def test_after_random_writes_compaction_changes_nothing_it_keeps(store: Storage, seed: int) -> None:
    chance = random.Random(seed)
    written = await Chronicle.of(store)
    await written.scribble(store, writes=60, chance=chance)
    await settled(store)
    compacted = 0
    for target in sorted(chance.sample(written.revisions[1:], 3)):
        await compact(store, target)
        compacted = target
    kept = [revision for revision in written.revisions if revision >= compacted]
    for revision in kept:
        assert list((await store.list("/", revision=revision)).items) == written.state(revision)
    assert await histories(store, kept) == written.histories(kept)
    old = [revision for revision in written.revisions if revision < compacted]
    expected = [(revision, compacted) for revision in old]
    assert await refusals(store.list("/", revision=revision) for revision in old) == expected
    assert await refusals(store.history("/", after=revision) for revision in old) == expected


async def test_compacting_in_steps_equals_compacting_at_once(store: Storage) -> None:
    written = await history_of_ten(store)
    for revision in written.revisions[1:]:
        await compact(store, revision)
    for revision in (written.last, 0):
        assert list((await store.list("/", revision=revision)).items) == written.state(written.last)


async def test_compacting_again_or_to_less_changes_nothing(store: Storage) -> None:
    written = await history_of_ten(store)
    kept = written.revisions[8]
    for revision in (kept, kept, written.revisions[2], 1, 0):
        await compact(store, revision)
    with pytest.raises(RevisionCompacted) as caught:
        await store.list("/", revision=kept - 1)
    assert caught.value.compacted == kept
    assert list((await store.list("/", revision=kept)).items) == written.state(kept)


async def test_the_future_cannot_be_compacted(store: Storage) -> None:
    written = await history_of_ten(store)
    for ahead in (1, 1000, 2**63, 2**80):
        with pytest.raises(RevisionInFuture) as caught:
            await store.compact(written.last + ahead)
        assert (caught.value.requested, caught.value.current) == (written.last + ahead, written.last)
    assert list(await store.history("/", after=written.start)) == written.events


async def test_writes_go_on_from_the_same_keys_after_a_compaction(store: Storage) -> None:
    written = await history_of_ten(store)
    await compact(store, written.last)
    changed = await written.put(store, "/0", b"0c")
    await written.delete(store, "/3")
    again = await written.put(store, "/2", b"2a")
    await settled(store)
    assert changed > written.revisions[10]
    assert list((await store.list("/")).items) == written.state(again)
    assert list(await store.history("/", after=written.revisions[10])) == written.events[10:]


async def test_watchers_notice_nothing_of_a_compaction(store: Storage) -> None:
    written = await history_of_ten(store)
    watch = Watch()
    await watch.start(store, after=written.revisions[4])
    await compact(store, written.last)
    await written.put(store, "/0", b"0c")
    await settled(store)
    assert list(watch.events) == written.history(after=written.revisions[4])


async def test_a_compaction_is_no_key_of_anybodys(store: Storage) -> None:
    # An engine may keep internal keys; they are neither listed, nor counted, nor published.
    written = await history_of_ten(store)
    received: list[Event] = []
    store.subscribe("", received.extend)
    await compact(store, written.last)
    assert list((await store.list("")).items) == written.state(written.last)
    assert store.count("") == len(written.state(written.last))
    assert received == []
    assert list(await store.history("", after=written.last)) == []


async def test_writes_and_reads_go_on_during_a_long_compaction(store: Storage) -> None:
    names = [f"/{number:02}" for number in range(30)]

    async def change(name: str) -> int:
        revision = await store.create(name, b"")
        for _ in range(99):
            revision = await store.update(name, b"", expected=revision)
        return revision

    revisions = dict(zip(names, await asyncio.gather(*map(change, names)), strict=True))
    target = await settled(store)
    compaction = asyncio.ensure_future(store.compact(target))
    written: list[int] = []
    read = 0

    async def keep_writing() -> None:
        while not compaction.done() or not written:
            name = names[len(written) % len(names)]
            revisions[name] = await store.update(name, b"during", expected=revisions[name])
            written.append(revisions[name])

    async def keep_reading() -> None:
        nonlocal read
        while not compaction.done() or not read:
            assert [item.value for item in (await store.list("/", revision=target)).items] == [b""] * len(names)
            read += 1
            await asyncio.sleep(0)  # reads from memory do not yield to the event loop

    await asyncio.gather(compaction, keep_writing(), keep_reading())
    await settled(store)
    # An engine that has others do the work may be done at once; one that does it itself must not do it at one go.
    assert len(written) > 1 or not store.sole_writer
    assert [event.revision for event in await store.history("/", after=target)] == written
