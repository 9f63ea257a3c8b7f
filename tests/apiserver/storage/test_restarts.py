"""What every store still has when it is closed and opened again, as by a restart of the server."""

import asyncio
import random

import pytest

from clusterregistry.apiserver.storage.errors import KeyExists, StorageUnavailable
from clusterregistry.apiserver.storage.interface import Event, KeyValue, Page, Storage
from tests.apiserver.storage.engines import Engine, settled
from tests.apiserver.storage.recording import Chronicle, Watch, histories, refusals


async def reopened(engine: Engine) -> Storage:
    await engine.close()
    return await engine.open()


async def test_an_empty_store_is_empty_again_and_its_revision_does_not_go_back(engine: Engine) -> None:
    before = await (await engine.open()).current_revision()
    store = await reopened(engine)
    page = await store.list("/")
    assert (list(page.items), page.remaining) == ([], 0)
    assert page.revision >= before


async def test_keys_values_and_revisions_are_still_there(engine: Engine) -> None:
    store = await engine.open()
    first, second = await store.create("/a", b"1"), await store.create("/b", b"1")
    updated = await store.update("/a", b"2", expected=first)
    deleted = await store.delete("/b", expected=second)
    store = await reopened(engine)
    assert list((await store.list("/")).items) == [KeyValue("/a", b"2", updated)]
    assert await store.get("/a") == KeyValue("/a", b"2", updated)
    assert store.count("/") == 1
    current = await settled(store)
    assert current >= deleted
    # Where others write too, the event of a newer revision may arrive at any time.
    assert store.revision == current if store.sole_writer else store.revision >= current
    with pytest.raises(KeyExists):
        await store.create("/a", b"")
    assert await store.update("/a", b"3", expected=updated) > deleted


@pytest.mark.parametrize("seed", range(2))
async def test_every_revision_and_all_history_are_still_there(engine: Engine, seed: int) -> None:
    chance = random.Random(seed)
    store = await engine.open()
    written = await Chronicle.of(store)
    for _ in range(3):
        await written.scribble(store, writes=20, chance=chance)
        store = await reopened(engine)
    for revision in written.revisions:
        assert await store.list("/", revision=revision) == Page(written.state(revision), revision, 0)
    assert await histories(store, written.revisions) == written.histories(written.revisions)


async def test_revisions_do_not_go_back_when_everything_is_deleted_and_compacted(engine: Engine) -> None:
    store = await engine.open()
    created = await store.create("/a", b"")
    deleted = await store.delete("/a", expected=created)
    await settled(store)
    await store.compact(deleted)
    store = await reopened(engine)
    page = await store.list("/")
    assert page.revision == await store.current_revision()
    assert page.revision >= deleted
    assert await store.create("/a", b"") > page.revision


async def test_a_compaction_is_still_in_force(engine: Engine) -> None:
    store = await engine.open()
    written = await Chronicle.of(store)
    await written.scribble(store, writes=30, chance=random.Random(3))
    await settled(store)
    compacted = written.revisions[20]
    await store.compact(compacted)
    store = await reopened(engine)
    expected = [(revision, compacted) for revision in written.revisions[:20]]
    assert await refusals(store.list("/", revision=revision) for revision, _ in expected) == expected
    assert await refusals(store.history("/", after=revision) for revision, _ in expected) == expected
    for revision in written.revisions[20:]:
        assert list((await store.list("/", revision=revision)).items) == written.state(revision)
    assert await histories(store, written.revisions[20:]) == written.histories(written.revisions[20:])


async def test_a_watch_resumes_exactly_where_it_was(engine: Engine) -> None:
    seen: list[Event] = []
    store = await engine.open()
    written, chance = await Chronicle.of(store), random.Random(2)
    for _ in range(3):
        watch = Watch()
        await watch.start(store, after=seen[-1].revision if seen else written.start)
        await written.scribble(store, writes=6, chance=chance)
        await settled(store)
        seen += watch.events
        # These happen while nobody watches.
        await written.scribble(store, writes=6, chance=chance)
        store = await reopened(engine)
    watch = Watch()
    await watch.start(store, after=seen[-1].revision)
    assert [*seen, *watch.events] == written.events


async def test_subscribers_of_the_closed_store_hear_nothing_of_the_new_one(engine: Engine) -> None:
    store = await engine.open()
    received: list[Event] = []
    subscription = store.subscribe("/", received.extend)
    await store.create("/a", b"")
    await settled(store)
    store = await reopened(engine)
    await store.create("/b", b"")
    await settled(store)
    subscription.close()
    assert [event.key for event in received] == ["/a"]


async def test_what_was_under_way_at_the_end_is_there_if_it_was_answered(engine: Engine) -> None:
    store = await engine.open()
    writes = [asyncio.ensure_future(store.create(f"/{n:03}", b"")) for n in range(200)]
    await asyncio.wait(writes, return_when=asyncio.FIRST_COMPLETED)
    await engine.close()
    outcomes = await asyncio.gather(*writes, return_exceptions=True)
    store = await engine.open()
    found = {item.key: item.revision for item in (await store.list("/")).items}
    for number, outcome in enumerate(outcomes):
        if isinstance(outcome, StorageUnavailable):
            continue  # it may have happened or not
        assert found[f"/{number:03}"] == outcome
    assert any(isinstance(outcome, int) for outcome in outcomes)


async def test_a_store_can_be_opened_and_closed_again_and_again(engine: Engine) -> None:
    revisions: list[int] = []
    for turn in range(5):
        store = await engine.open()
        revisions.append(await store.create(f"/{turn}", b""))
        await engine.close()
    assert revisions == sorted(set(revisions))
    store = await engine.open()
    assert [item.revision for item in (await store.list("/")).items] == revisions
