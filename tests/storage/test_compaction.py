"""What every store does with a compaction."""

import asyncio

import pytest

from clusterregistry.storage.errors import RevisionCompacted, RevisionInFuture
from clusterregistry.storage.interface import KeyValue, Storage
from tests.storage.engines import Engine


async def history_of_ten(store: Storage) -> None:
    """Revisions 2 to 6 create /0 to /4, 7 and 8 change /0, 9 deletes /1, 10 deletes /2, 11 makes /1 again."""
    for n in range(5):
        await store.create(f"/{n}", b"%d" % n)
    await store.update("/0", b"0a", expected=2)
    await store.update("/0", b"0b", expected=7)
    await store.delete("/1", expected=3)
    await store.delete("/2", expected=4)
    await store.create("/1", b"1a")


async def state(store: Storage, revision: int) -> dict[str, bytes]:
    return {item.key: item.value for item in (await store.list("/", revision=revision)).items}


async def test_reads_below_the_compacted_revision_are_refused(store: Storage) -> None:
    await history_of_ten(store)
    await store.compact(9)
    for revision in (1, 2, 8, -1):
        with pytest.raises(RevisionCompacted) as caught:
            await store.list("/", revision=revision)
        assert (caught.value.requested, caught.value.compacted) == (revision, 9)
        with pytest.raises(RevisionCompacted):
            await store.history("/", after=revision)


@pytest.mark.parametrize("compacted", range(2, 12))
async def test_the_compacted_revision_and_all_later_ones_stay_as_they_were(store: Storage, compacted: int) -> None:
    await history_of_ten(store)
    before = {revision: await state(store, revision) for revision in range(compacted, 12)}
    events = list(await store.history("/", after=compacted))
    await store.compact(compacted)
    assert {revision: await state(store, revision) for revision in range(compacted, 12)} == before
    assert list(await store.history("/", after=compacted)) == events
    assert await store.get("/0") == KeyValue("/0", b"0b", 8)


async def test_compacting_in_steps_equals_compacting_at_once(store: Storage) -> None:
    await history_of_ten(store)
    before = await state(store, 11)
    for revision in range(2, 12):
        await store.compact(revision)
    assert await state(store, 11) == before
    assert await state(store, 0) == before


async def test_compacting_again_or_to_less_changes_nothing(store: Storage) -> None:
    await history_of_ten(store)
    await store.compact(9)
    await store.compact(9)
    await store.compact(3)
    await store.compact(0)
    with pytest.raises(RevisionCompacted) as caught:
        await store.list("/", revision=8)
    assert caught.value.compacted == 9
    assert len(await state(store, 9)) == 4


async def test_the_future_cannot_be_compacted(store: Storage) -> None:
    await history_of_ten(store)
    with pytest.raises(RevisionInFuture):
        await store.compact(12)
    assert len(await store.history("/", after=1)) == 10


async def test_revisions_do_not_go_back_when_everything_is_deleted_compacted_and_reopened(engine: Engine) -> None:
    store = await engine.open()
    created = await store.create("/a", b"")
    deleted = await store.delete("/a", expected=created)
    await store.compact(deleted)
    await engine.close()
    store = await engine.open()
    assert (await store.list("/")).revision == store.revision == deleted
    assert await store.create("/a", b"") == deleted + 1


async def test_a_compaction_outlives_a_restart(engine: Engine) -> None:
    store = await engine.open()
    await history_of_ten(store)
    await store.compact(9)
    await engine.close()
    store = await engine.open()
    with pytest.raises(RevisionCompacted):
        await store.list("/", revision=8)
    assert await state(store, 9) == {"/0": b"0b", "/2": b"2", "/3": b"3", "/4": b"4"}


async def test_writes_and_reads_go_on_during_a_long_compaction(store: Storage) -> None:
    await store.create("/a", b"")
    for _ in range(15):
        revision = store.revision
        await asyncio.gather(*(store.update("/a", b"", expected=revision + n) for n in range(200)))
    target = store.revision
    compaction = asyncio.ensure_future(store.compact(target))
    writes = 0
    while not compaction.done():
        await store.update("/a", b"%d" % writes, expected=store.revision)
        assert len(await state(store, target)) == 1
        writes += 1
    await compaction
    assert writes > 1
    assert [event.revision for event in await store.history("/", after=target)] == list(
        range(target + 1, target + writes + 1)
    )
