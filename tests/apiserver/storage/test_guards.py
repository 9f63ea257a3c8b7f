"""What every store does with the guards of a write."""

import asyncio
from collections.abc import Sequence

import pytest

from clusterregistry.apiserver.storage.errors import GuardConflict, KeyExists, KeyNotFound, RevisionConflict
from clusterregistry.apiserver.storage.interface import Event, Guard, KeyValue, Storage
from tests.apiserver.storage.engines import settled
from tests.apiserver.storage.recording import keys

RACERS = 100


def guard(revision: int, name: str = "g") -> Sequence[Guard]:
    return [Guard(name, revision)]


async def test_a_guarded_write_after_the_last_one_is_done(store: Storage) -> None:
    first = await store.create("/a", b"1", guards=guard(store.revision))
    second = await store.create("/b", b"1", guards=guard(first))
    third = await store.update("/a", b"2", expected=first, guards=guard(second))
    assert await store.get("/a") == KeyValue("/a", b"2", third)


async def test_a_guarded_write_that_was_decided_before_another_one_is_refused_and_does_nothing(store: Storage) -> None:
    begun = await store.current_revision()
    first = await store.create("/a", b"1", guards=guard(begun))
    for write in (
        store.create("/b", b"1", guards=guard(begun)),
        store.update("/a", b"2", expected=first, guards=guard(first - 1)),
    ):
        with pytest.raises(GuardConflict) as refused:
            await write
        assert (refused.value.name, refused.value.revision) == ("g", first)
    assert await store.current_revision() == first
    assert await store.get("/b") is None
    assert await store.get("/a") == KeyValue("/a", b"1", first)


async def test_other_guards_and_writes_without_one_do_not_matter(store: Storage) -> None:
    begun = await store.current_revision()
    created = await store.create("/a", b"1", guards=guard(begun))
    updated = await store.update("/a", b"2", expected=created)
    await store.delete("/a", expected=updated)
    await store.create("/b", b"1", guards=guard(begun, "other"))
    await store.create("/c", b"1", guards=guard(created))


async def test_of_several_guards_each_has_to_hold(store: Storage) -> None:
    begun = await store.current_revision()
    first = await store.create("/a", b"1", guards=[*guard(begun, "one"), *guard(begun, "two")])
    with pytest.raises(GuardConflict) as refused:
        await store.create("/b", b"1", guards=[*guard(first, "one"), *guard(begun, "two")])
    assert refused.value.revision == first
    await store.create("/b", b"1", guards=[*guard(first, "one"), *guard(first, "two")])


async def test_what_is_wrong_with_the_key_itself_comes_first(store: Storage) -> None:
    begun = await store.current_revision()
    first = await store.create("/a", b"1", guards=guard(begun))
    with pytest.raises(KeyExists):
        await store.create("/a", b"1", guards=guard(begun))
    with pytest.raises(RevisionConflict):
        await store.update("/a", b"2", expected=first - 1, guards=guard(begun))
    with pytest.raises(KeyNotFound):
        await store.update("/b", b"2", expected=first, guards=guard(begun))


async def test_a_guard_is_no_key_and_takes_no_revision_of_its_own(store: Storage) -> None:
    begun = await store.current_revision()
    seen: list[Event] = []
    store.subscribe("/", seen.extend)
    created = await store.create("/a", b"1", guards=guard(begun))
    assert created == begun + 1
    assert await settled(store) == created
    page = await store.list("/")
    assert keys(page) == ["/a"]
    assert (page.revision, page.remaining, store.count("/")) == (created, 0, 1)
    first = await store.list("/", limit=1)
    assert (keys(first), first.remaining) == (["/a"], 0)
    assert [event.key for event in await store.history("/", after=begun)] == ["/a"]
    assert [event.key for event in seen] == ["/a"]


async def test_of_many_guarded_writes_at_once_one_is_done(store: Storage) -> None:
    revision = await store.current_revision()
    writes = [store.create(f"/{number}", b"1", guards=guard(revision)) for number in range(RACERS)]
    outcomes = await asyncio.gather(*writes, return_exceptions=True)
    assert sum(isinstance(each, int) for each in outcomes) == 1
    assert sum(isinstance(each, GuardConflict) for each in outcomes) == RACERS - 1


async def test_replicas_have_the_same_guards(pair: tuple[Storage, Storage]) -> None:
    revision = await pair[0].current_revision()
    writes = [pair[number % 2].create(f"/{number}", b"1", guards=guard(revision)) for number in range(RACERS)]
    outcomes = await asyncio.gather(*writes, return_exceptions=True)
    (done,) = [each for each in outcomes if isinstance(each, int)]
    assert {each.revision for each in outcomes if isinstance(each, GuardConflict)} == {done}
    assert keys(await pair[1].list("/")) == keys(await pair[0].list("/"))
