"""What every store does with a list that is read in pages: all of them as of one revision."""

import asyncio
import random
from collections.abc import AsyncIterator

import pytest

from clusterregistry.apiserver.storage.errors import RevisionCompacted
from clusterregistry.apiserver.storage.interface import KeyValue, Page, Storage
from tests.apiserver.storage.engines import settled
from tests.apiserver.storage.recording import Chronicle, fill, keys


async def pages(store: Storage, prefix: str, *, limit: int) -> AsyncIterator[Page]:
    """All of a list as a client reads it: the first page tells the revision of the others."""
    page = await store.list(prefix, limit=limit)
    yield page
    while page.remaining:
        page = await store.list(prefix, revision=page.revision, after=page.items[-1].key, limit=limit)
        yield page


async def test_a_limit_says_how_many_remain(store: Storage) -> None:
    await fill(store, "/a", "/b", "/c", "/d")
    page = await store.list("/", limit=3)
    assert (keys(page), page.remaining) == (["/a", "/b", "/c"], 1)
    for limit in (4, 9):
        page = await store.list("/", limit=limit)
        assert (len(page.items), page.remaining) == (4, 0)


async def test_what_remains_is_counted_within_the_prefix(store: Storage) -> None:
    await fill(store, "/a/1", "/a/2", "/a/3", "/ab", "/b")
    page = await store.list("/a/", limit=1)
    assert (keys(page), page.remaining) == (["/a/1"], 2)


async def test_after_goes_on_behind_a_key_whether_it_exists_or_not(store: Storage) -> None:
    await fill(store, "/a", "/b", "/c", "/d")
    page = await store.list("/", after="/b", limit=1)
    assert (keys(page), page.remaining) == (["/c"], 1)
    assert keys(await store.list("/", after="/bb")) == ["/c", "/d"]
    assert keys(await store.list("/", after="/z")) == []
    assert keys(await store.list("/b", after="/a")) == ["/b"]
    assert keys(await store.list("/a", after="/b")) == []


async def test_after_leaves_out_the_key_itself_and_nothing_else(store: Storage) -> None:
    await fill(store, "/a", "/a\0", "/a\0\0", "/a/1", "/\U0010ffff", "/\U0010ffff\0")
    assert keys(await store.list("/a", after="/a")) == ["/a\0", "/a\0\0", "/a/1"]
    assert keys(await store.list("/", after="/a/1")) == ["/\U0010ffff", "/\U0010ffff\0"]
    assert keys(await store.list("/", after="/\U0010ffff")) == ["/\U0010ffff\0"]


async def test_pages_of_any_size_are_the_whole_list(store: Storage) -> None:
    await fill(store, "/0", *(f"/a/{n:02}" for n in range(25)), "/b")
    whole = list((await store.list("/a/")).items)
    for limit in (1, 2, 3, 7, 24, 25, 26):
        read = [page async for page in pages(store, "/a/", limit=limit)]
        assert [item for page in read for item in page.items] == whole
        assert [page.remaining for page in read] == [max(25 - limit * (n + 1), 0) for n in range(len(read))]


async def test_a_list_that_is_written_to_between_its_pages_stays_as_it_was(store: Storage) -> None:
    written = await Chronicle.of(store)
    for n in range(25):
        await written.put(store, f"/{n:02}", b"old")
    revision = written.last
    read: list[Page] = []
    async for page in pages(store, "/", limit=4):
        read.append(page)
        # Changes before and behind the place where the next page begins, and of the very key that it follows.
        turn = len(read)
        await written.put(store, f"/{turn:02}-new")
        await written.put(store, f"/{24 - turn:02}-new")
        await written.put(store, f"/{24 - turn:02}", b"changed")
        await written.put(store, page.items[0].key, b"changed")
        await written.delete(store, page.items[-1].key)
    assert [item for page in read for item in page.items] == written.state(revision)
    assert [page.remaining for page in read] == [21, 17, 13, 9, 5, 1, 0]
    assert {page.revision for page in read} == {revision}


async def test_pages_of_many_keys_stay_as_they_were_while_writers_are_at_work(store: Storage) -> None:
    names = [f"/{number:04}" for number in range(1000)]
    await asyncio.gather(*(store.create(name, b"old") for name in names))
    items = {item.key: item for item in (await store.list("/")).items}
    done = asyncio.Event()

    async def write(mine: list[str]) -> None:
        for name in mine:
            await store.delete(name, expected=items[name].revision)
            await store.create(name + "-new", b"new")
            if done.is_set():
                break

    writing = asyncio.gather(*(write(names[n::4]) for n in range(4)))
    read = [item async for page in pages(store, "/", limit=100) for item in page.items]
    done.set()
    await writing
    shown = {item.key: item.value for item in read}
    # The first page tells which revision it is; each writer had then made some of its changes, in their order.
    for n in range(4):
        gone = [name not in shown for name in names[n::4]]
        made = [name + "-new" in shown for name in names[n::4]]
        assert gone == sorted(gone, reverse=True)
        assert sum(gone) - sum(made) in {0, 1}
    assert [item.key for item in read] == sorted(shown)


@pytest.mark.parametrize("seed", range(3))
async def test_any_page_of_any_revision_is_that_part_of_the_state(store: Storage, seed: int) -> None:
    chance = random.Random(seed)
    written = await Chronicle.of(store)
    await written.scribble(store, writes=60, chance=chance)
    for revision in written.revisions[::3]:
        for _ in range(5):
            prefix, after = chance.choice(["/", "/a", "/b/"]), f"/{chance.choice('ab')}/{chance.randrange(6)}"
            limit = chance.randrange(5)
            found = await store.list(prefix, revision=revision, after=after, limit=limit)
            assert found == written.page(revision, prefix=prefix, after=after, limit=limit)


async def test_the_next_page_of_a_compacted_list_is_refused_with_the_oldest_revision_kept(store: Storage) -> None:
    revisions = await fill(store, "/a", "/b", "/c", "/d")
    page = await store.list("/", limit=2)
    kept = await store.update("/d", b"new", expected=revisions[-1])
    await settled(store)
    await store.compact(kept)
    with pytest.raises(RevisionCompacted) as caught:
        await store.list("/", revision=page.revision, after="/b", limit=2)
    assert (caught.value.requested, caught.value.compacted) == (page.revision, kept)


async def test_a_compacted_list_can_be_continued_at_the_present(store: Storage) -> None:
    # This is how a server answers with an inconsistent continue token: what is behind the last key, as of now.
    revisions = await fill(store, "/a", "/b", "/c", "/d")
    await store.delete("/a", expected=revisions[0])
    kept = await store.create("/bb", b"new")
    await store.compact(kept)
    page = await store.list("/", after="/b", limit=2)
    assert (page.items[0], page.remaining) == (KeyValue("/bb", b"new", kept), 1)
    rest = await store.list("/", revision=page.revision, after=page.items[-1].key)
    assert (keys(page), keys(rest)) == (["/bb", "/c"], ["/d"])


async def test_pages_go_on_at_the_very_revision_that_was_compacted_to(store: Storage) -> None:
    await fill(store, "/a", "/b", "/c", "/d")
    read: list[str] = []
    async for page in pages(store, "/", limit=1):
        read += keys(page)
        last = page.items[-1]
        await store.delete(last.key, expected=last.revision)
        await store.compact(page.revision)
    assert read == ["/a", "/b", "/c", "/d"]
    assert keys(await store.list("/")) == []
