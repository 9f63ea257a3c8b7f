"""What every store does with a list."""

import asyncio

import pytest

from clusterregistry.storage.errors import RevisionInFuture, StorageUnavailable
from clusterregistry.storage.interface import Page, Storage


def keys(page: Page) -> list[str]:
    return [item.key for item in page.items]


async def fill(store: Storage, *names: str) -> int:
    for name in names:
        await store.create(name, name.encode())
    return store.revision


async def test_a_list_of_nothing_is_empty_and_has_a_revision(store: Storage) -> None:
    assert await store.list("/") == Page([], 1, 0)


async def test_a_list_is_in_the_order_of_the_keys(store: Storage) -> None:
    revision = await fill(store, "/b", "/a", "/c", "/B", "/a-b", "/a.b", "/a0", "/é", "/\U0001f600", "/\uffff")
    page = await store.list("/")
    assert keys(page) == sorted(keys(page), key=str.encode)
    assert (len(page.items), page.revision, page.remaining) == (10, revision, 0)


async def test_a_list_holds_only_keys_with_the_prefix(store: Storage) -> None:
    await fill(store, "/a/1", "/a/2", "/ab/1", "/b/1", "/a")
    assert keys(await store.list("/a/")) == ["/a/1", "/a/2"]
    assert keys(await store.list("/a")) == ["/a", "/a/1", "/a/2", "/ab/1"]
    assert keys(await store.list("/c/")) == []


async def test_a_list_holds_values_and_the_revisions_of_their_last_change(store: Storage) -> None:
    await fill(store, "/a", "/b")
    updated = await store.update("/a", b"new", expected=2)
    page = await store.list("/")
    assert [(item.key, item.value, item.revision) for item in page.items] == [
        ("/a", b"new", updated),
        ("/b", b"/b", 3),
    ]


async def test_the_revision_of_a_list_is_that_of_the_whole_store(store: Storage) -> None:
    await fill(store, "/a/1")
    other = await fill(store, "/b/1")
    assert (await store.list("/a/")).revision == other


async def test_a_limit_says_how_many_remain(store: Storage) -> None:
    await fill(store, "/a", "/b", "/c", "/d")
    page = await store.list("/", limit=3)
    assert (keys(page), page.remaining) == (["/a", "/b", "/c"], 1)
    assert (await store.list("/", limit=4)).remaining == 0
    assert len((await store.list("/", limit=9)).items) == 4


async def test_after_goes_on_behind_a_key_whether_it_exists_or_not(store: Storage) -> None:
    await fill(store, "/a", "/b", "/c", "/d")
    page = await store.list("/", after="/b", limit=1)
    assert (keys(page), page.remaining) == (["/c"], 1)
    assert keys(await store.list("/", after="/bb")) == ["/c", "/d"]
    assert keys(await store.list("/", after="/z")) == []
    assert keys(await store.list("/b", after="/a")) == ["/b"]
    assert keys(await store.list("/a", after="/b")) == []


async def test_after_excludes_a_key_that_equals_the_prefix(store: Storage) -> None:
    await fill(store, "/a", "/a/1")
    assert keys(await store.list("/a", after="/a")) == ["/a/1"]


async def test_a_past_revision_shows_what_was_then(store: Storage) -> None:
    revision = await fill(store, "/a", "/b", "/c")
    await store.update("/a", b"new", expected=2)
    await store.delete("/b", expected=3)
    await store.create("/bb", b"")
    page = await store.list("/", revision=revision)
    assert [(item.key, item.value, item.revision) for item in page.items] == [
        ("/a", b"/a", 2),
        ("/b", b"/b", 3),
        ("/c", b"/c", 4),
    ]
    assert (page.revision, page.remaining) == (revision, 0)


async def test_a_past_revision_shows_a_key_that_has_been_deleted_and_made_again(store: Storage) -> None:
    await fill(store, "/a")
    deleted = await store.delete("/a", expected=2)
    await store.create("/a", b"second")
    assert [item.value for item in (await store.list("/", revision=2)).items] == [b"/a"]
    assert keys(await store.list("/", revision=deleted)) == []
    assert keys(await store.list("/", revision=1)) == []


async def test_pages_at_one_revision_are_the_list_at_that_revision(store: Storage) -> None:
    revision = await fill(store, *(f"/{n:02}" for n in range(25)))
    whole = await store.list("/")
    pages: list[Page] = []
    after = ""
    while not pages or pages[-1].remaining:
        pages.append(await store.list("/", revision=revision, after=after, limit=4))
        after = pages[-1].items[-1].key
        # Every page is followed by changes before and behind the place where the next one begins.
        turn = len(pages)
        await store.create(f"/{turn:02}-new", b"")
        await store.create(f"/{24 - turn:02}-new", b"")
        await store.delete(f"/{turn - 1:02}", expected=turn + 1)
        await store.update(f"/{24 - turn:02}", b"", expected=26 - turn)
    assert [item for page in pages for item in page.items] == whole.items
    assert [page.remaining for page in pages] == [21, 17, 13, 9, 5, 1, 0]


async def test_every_past_revision_stays_as_it_was_while_writes_go_on(store: Storage) -> None:
    expected: dict[int, dict[str, bytes]] = {1: {}}
    state: dict[str, bytes] = {}

    async def write() -> None:
        for turn in range(40):
            key = f"/{turn * 7 % 5}"
            item = await store.get(key)
            value = b"%d" % turn
            if item is None:
                revision = await store.create(key, value)
                state[key] = value
            elif turn % 3:
                revision = await store.update(key, value, expected=item.revision)
                state[key] = value
            else:
                revision = await store.delete(key, expected=item.revision)
                del state[key]
            expected[revision] = dict(state)

    async def read() -> None:
        while len(expected) < 40:
            for revision, known in list(expected.items())[-3:]:
                page = await store.list("/", revision=revision)
                assert {item.key: item.value for item in page.items} == known
            await asyncio.sleep(0)

    await asyncio.gather(write(), read())
    for revision, known in expected.items():
        page = await store.list("/", revision=revision)
        assert {item.key: item.value for item in page.items} == known


async def test_keys_are_counted_by_prefix(store: Storage) -> None:
    await fill(store, "/a/1", "/a/2", "/ab/1", "/b/1")
    await store.delete("/a/2", expected=3)
    assert [store.count(prefix) for prefix in ("/a/", "/a", "/", "/c/")] == [1, 2, 3, 0]


async def test_waiting_for_a_revision_ends_when_it_is_seen(store: Storage) -> None:
    await store.wait_for(1)
    waiting = asyncio.ensure_future(store.wait_for(3))
    await fill(store, "/a")
    await asyncio.sleep(0)
    assert not waiting.done()
    await fill(store, "/b")
    await waiting
    assert store.revision == 3


async def test_waiting_for_a_revision_ends_when_the_store_is_closed(store: Storage) -> None:
    waiting = asyncio.ensure_future(store.wait_for(3))
    await asyncio.sleep(0)
    await store.close()
    with pytest.raises(StorageUnavailable):
        await waiting


@pytest.mark.parametrize("revision", [3, 2**63, 2**80])
async def test_a_revision_that_has_not_happened_is_in_the_future(store: Storage, revision: int) -> None:
    await fill(store, "/a")
    with pytest.raises(RevisionInFuture) as caught:
        await store.list("/", revision=revision)
    assert (caught.value.requested, caught.value.current) == (revision, 2)
