"""What every store does with a list, now and in the past, and with waiting for a revision."""

import asyncio
import random

import pytest

from clusterregistry.apiserver.storage.errors import RevisionInFuture, StorageUnavailable
from clusterregistry.apiserver.storage.interface import KeyValue, Page, Storage
from tests.apiserver.storage.engines import settled
from tests.apiserver.storage.recording import Chronicle, fill, keys


async def test_a_list_of_nothing_is_empty_and_has_a_revision(store: Storage) -> None:
    assert await store.list("/") == Page([], await store.current_revision(), 0)


async def test_a_list_is_in_the_order_of_the_keys(store: Storage) -> None:
    names = ["/b", "/a", "/c", "/B", "/a-b", "/a.b", "/a0", "/a/", "/é", "/\U0001f600", "/\uffff", "/a\0"]
    revisions = await fill(store, *names)
    page = await store.list("/")
    assert keys(page) == sorted(names, key=str.encode)
    assert (page.revision, page.remaining) == (revisions[-1], 0)


async def test_a_list_holds_only_keys_with_the_prefix(store: Storage) -> None:
    await fill(store, "/a/1", "/a/2", "/ab/1", "/b/1", "/a", "/a0")
    assert keys(await store.list("/a/")) == ["/a/1", "/a/2"]
    assert keys(await store.list("/a")) == ["/a", "/a/1", "/a/2", "/a0", "/ab/1"]
    assert keys(await store.list("/a/1")) == ["/a/1"]
    assert keys(await store.list("/c/")) == []
    assert keys(await store.list("/a/1/")) == []


async def test_a_prefix_ends_where_no_longer_key_begins_with_it(store: Storage) -> None:
    # With each prefix also what is next to it in the order of the keys, whichever way an end is computed.
    prefixes = ["/a", "/a\0", "/é", "/\x7f", "/\ud7ff", "/\uffff", "/\U0010ffff", "/%", "/_", "/*"]
    beside = ["/", "/Z", "/b", "/ê", "/\x80", "/\ue000", "/\U00010000", "/&", "/`", "/+"]
    inside = [prefix + end for prefix in prefixes for end in ("\0", "z", "\uffff", "\U0010ffff\U0010ffff")]
    names = sorted({*prefixes, *beside, *inside})
    await fill(store, *names)
    await settled(store)
    for prefix in (*prefixes, *beside):
        expected = [name for name in names if name.startswith(prefix)]
        assert keys(await store.list(prefix)) == expected
        assert store.count(prefix) == len(expected)


async def test_a_list_holds_values_and_the_revisions_of_their_last_change(store: Storage) -> None:
    first, second = await fill(store, "/a", "/b")
    updated = await store.update("/a", b"new", expected=first)
    assert (await store.list("/")).items == [KeyValue("/a", b"new", updated), KeyValue("/b", b"/b", second)]


async def test_the_revision_of_a_list_is_that_of_the_whole_store(store: Storage) -> None:
    _, other = await fill(store, "/a/1", "/b/1")
    assert (await store.list("/a/")).revision == other
    deleted = await store.delete("/b/1", expected=other)
    assert (await store.list("/a/")).revision == deleted


async def test_a_past_revision_shows_what_was_then(store: Storage) -> None:
    first, second, third = await fill(store, "/a", "/b", "/c")
    await store.update("/a", b"new", expected=first)
    await store.delete("/b", expected=second)
    await store.create("/bb", b"")
    page = await store.list("/", revision=third)
    assert page.items == [KeyValue("/a", b"/a", first), KeyValue("/b", b"/b", second), KeyValue("/c", b"/c", third)]
    assert (page.revision, page.remaining) == (third, 0)


async def test_a_past_revision_shows_a_key_that_has_been_deleted_and_made_again(store: Storage) -> None:
    before = await store.current_revision()
    (created,) = await fill(store, "/a")
    deleted = await store.delete("/a", expected=created)
    again = await store.create("/a", b"second")
    assert [item.value for item in (await store.list("/", revision=created)).items] == [b"/a"]
    assert keys(await store.list("/", revision=deleted)) == []
    assert keys(await store.list("/", revision=before)) == []
    assert [item.value for item in (await store.list("/", revision=again)).items] == [b"second"]


async def test_a_revision_made_by_another_key_shows_the_state_at_that_moment(store: Storage) -> None:
    (created,) = await fill(store, "/a/1")
    (other,) = await fill(store, "/b/1")
    updated = await store.update("/a/1", b"new", expected=created)
    page = await store.list("/a/", revision=other)
    assert page == Page([KeyValue("/a/1", b"/a/1", created)], other, 0)
    assert (await store.list("/b/", revision=updated)).items == [KeyValue("/b/1", b"/b/1", other)]


@pytest.mark.parametrize("seed", range(3))
async def test_every_list_of_every_past_revision_is_the_state_at_that_revision(store: Storage, seed: int) -> None:
    written = await Chronicle.of(store)
    await written.scribble(store, writes=60, chance=random.Random(seed))
    for revision in written.revisions:
        for prefix in ("/", "/a/", "/b", "/a/3"):
            assert await store.list(prefix, revision=revision) == Page(written.state(revision, prefix), revision, 0)


async def test_every_past_revision_stays_as_it_was_while_writes_go_on(store: Storage) -> None:
    written, chance = await Chronicle.of(store), random.Random(1)
    for _ in range(60):
        recent = written.revisions[-4:]
        lists = asyncio.gather(*(store.list("/", revision=revision) for revision in recent))
        await written.scribble(store, writes=1, chance=chance)
        for revision, page in zip(recent, await lists, strict=True):
            assert page == Page(written.state(revision), revision, 0)


async def test_five_thousand_keys_are_listed_whole(store: Storage) -> None:
    names = [f"/{number:05}" for number in range(5000)]
    for start in range(0, len(names), 500):
        await asyncio.gather(*(store.create(name, name.encode()) for name in names[start : start + 500]))
    revision = await settled(store)
    removed = (await store.list("/", limit=1)).items[0]
    await store.delete(removed.key, expected=removed.revision)
    await settled(store)
    past, now = await store.list("/", revision=revision), await store.list("/")
    assert (keys(past), past.remaining) == (names, 0)
    assert all(item.value == item.key.encode() for item in past.items)
    assert (keys(now), now.remaining) == (names[1:], 0)
    assert store.count("/") == 4999


async def test_keys_are_counted_by_prefix(store: Storage) -> None:
    _, second, _, _ = await fill(store, "/a/1", "/a/2", "/ab/1", "/b/1")
    await store.delete("/a/2", expected=second)
    await settled(store)
    assert [store.count(prefix) for prefix in ("/a/", "/a", "/", "/c/")] == [1, 2, 3, 0]


async def test_waiting_for_a_revision_ends_when_it_is_seen(store: Storage) -> None:
    start = await store.current_revision()
    await store.wait_for(0)
    await store.wait_for(start)
    waiting = asyncio.ensure_future(store.wait_for(start + 2))
    await fill(store, "/a")
    await store.wait_for(start + 1)
    assert not waiting.done()
    await fill(store, "/b")
    await waiting
    assert store.revision == start + 2


async def test_what_was_waited_for_can_be_read(store: Storage) -> None:
    start = await store.current_revision()

    async def wait_and_read(number: int) -> int:
        await store.wait_for(start + number)
        assert store.revision >= start + number
        return len((await store.list("/", revision=start + number)).items)

    waiting = asyncio.gather(*(wait_and_read(number) for number in range(1, 21)))
    await asyncio.gather(*(store.create(f"/{number}", b"") for number in range(20)))
    assert await waiting == list(range(1, 21))


@pytest.mark.usefixtures("impatient")
async def test_waiting_for_a_revision_that_does_not_come_ends_with_an_error(store: Storage) -> None:
    (created,) = await fill(store, "/a")
    await settled(store)
    with pytest.raises(RevisionInFuture) as caught:
        await store.wait_for(created + 1)
    assert (caught.value.requested, caught.value.current) == (created + 1, created)
    await fill(store, "/b")
    await store.wait_for(created + 1)


async def test_waiting_for_a_revision_can_be_given_up(store: Storage) -> None:
    start = await store.current_revision()
    abandoned, other = (asyncio.ensure_future(store.wait_for(start + 1)) for _ in range(2))
    await asyncio.sleep(0)
    abandoned.cancel()
    await fill(store, "/a")
    await other
    with pytest.raises(asyncio.CancelledError):
        await abandoned


async def test_waiting_for_a_revision_ends_when_the_store_is_closed(store: Storage) -> None:
    waiting = asyncio.ensure_future(store.wait_for(await store.current_revision() + 1))
    await asyncio.sleep(0)
    await store.close()
    with pytest.raises(StorageUnavailable):
        await waiting


@pytest.mark.usefixtures("impatient")
async def test_a_revision_that_has_not_happened_is_in_the_future(store: Storage) -> None:
    (created,) = await fill(store, "/a")
    await settled(store)
    for ahead in (1, 1000, 2**62, 2**63, 2**80):
        with pytest.raises(RevisionInFuture) as caught:
            await store.list("/", revision=created + ahead)
        assert (caught.value.requested, caught.value.current) == (created + ahead, created)
