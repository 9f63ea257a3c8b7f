"""What every store does with a write."""

import asyncio

import pytest

from clusterregistry.storage.errors import KeyExists, KeyNotFound, RevisionConflict, StorageUnavailable
from clusterregistry.storage.interface import KeyValue, Storage


async def test_an_empty_store_is_at_revision_one_and_the_first_write_makes_two(store: Storage) -> None:
    assert (store.revision, await store.current_revision()) == (1, 1)
    assert await store.create("/a", b"1") == 2
    assert (store.revision, await store.current_revision()) == (2, 2)


async def test_a_created_key_is_read_back_at_its_revision(store: Storage) -> None:
    revision = await store.create("/a", b"1")
    assert await store.get("/a") == KeyValue("/a", b"1", revision)


async def test_a_key_that_was_never_written_is_none(store: Storage) -> None:
    await store.create("/a", b"1")
    assert await store.get("/b") is None


async def test_a_key_cannot_be_created_twice(store: Storage) -> None:
    revision = await store.create("/a", b"1")
    with pytest.raises(KeyExists) as caught:
        await store.create("/a", b"2")
    assert caught.value.key == "/a"
    assert await store.get("/a") == KeyValue("/a", b"1", revision)
    assert store.revision == revision


async def test_an_update_needs_the_current_revision(store: Storage) -> None:
    created = await store.create("/a", b"1")
    updated = await store.update("/a", b"2", expected=created)
    with pytest.raises(RevisionConflict) as caught:
        await store.update("/a", b"3", expected=created)
    assert (caught.value.expected, caught.value.actual) == (created, updated)
    assert await store.get("/a") == KeyValue("/a", b"2", updated)


async def test_an_update_that_expects_no_revision_is_a_conflict_not_a_create(store: Storage) -> None:
    await store.create("/a", b"1")
    with pytest.raises(RevisionConflict):
        await store.update("/a", b"2", expected=0)
    with pytest.raises(KeyNotFound):
        await store.update("/b", b"2", expected=0)


async def test_a_missing_key_can_be_neither_updated_nor_deleted(store: Storage) -> None:
    with pytest.raises(KeyNotFound):
        await store.update("/a", b"1", expected=1)
    with pytest.raises(KeyNotFound):
        await store.delete("/a", expected=1)
    assert store.revision == 1


async def test_a_delete_needs_the_current_revision(store: Storage) -> None:
    created = await store.create("/a", b"1")
    updated = await store.update("/a", b"2", expected=created)
    with pytest.raises(RevisionConflict):
        await store.delete("/a", expected=created)
    assert await store.delete("/a", expected=updated) == updated + 1
    assert await store.get("/a") is None


async def test_a_deleted_key_can_be_created_again_at_a_higher_revision(store: Storage) -> None:
    created = await store.create("/a", b"1")
    deleted = await store.delete("/a", expected=created)
    assert await store.create("/a", b"2") == deleted + 1
    with pytest.raises(RevisionConflict):
        await store.update("/a", b"3", expected=created)


async def test_values_are_any_bytes(store: Storage) -> None:
    for name, value in {"/empty": b"", "/zeros": b"\0\0", "/large": b"x" * 3_000_000}.items():
        await store.create(name, value)
        found = await store.get(name)
        assert found is not None
        assert found.value == value


async def test_an_empty_value_is_not_a_deletion(store: Storage) -> None:
    created = await store.create("/a", b"1")
    updated = await store.update("/a", b"", expected=created)
    (event,) = await store.history("/", after=created)
    assert event.current == KeyValue("/a", b"", updated)


async def test_a_key_without_utf8_form_is_a_value_error_and_harms_no_other_write(store: Storage) -> None:
    outcomes = await asyncio.gather(
        store.create("/a", b"1"), store.create("/\udc80", b"1"), store.create("/b", b"1"), return_exceptions=True
    )
    assert [type(outcome) for outcome in outcomes] == [int, UnicodeEncodeError, int]
    assert await store.get("/\udc80") is None


async def test_of_simultaneous_creates_of_one_key_one_wins(store: Storage) -> None:
    outcomes = await asyncio.gather(*(store.create("/a", b"%d" % n) for n in range(20)), return_exceptions=True)
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["KeyExists"] * 19 + ["int"]
    assert store.revision == 2


async def test_of_simultaneous_updates_from_one_revision_one_wins(store: Storage) -> None:
    created = await store.create("/a", b"")
    outcomes = await asyncio.gather(
        *(store.update("/a", b"%d" % n, expected=created) for n in range(20)), return_exceptions=True
    )
    winners = [n for n, outcome in enumerate(outcomes) if isinstance(outcome, int)]
    assert len(winners) == 1
    assert await store.get("/a") == KeyValue("/a", b"%d" % winners[0], created + 1)


async def test_writers_that_retry_on_conflict_lose_no_increment(store: Storage) -> None:
    await store.create("/counter", b"0")
    revisions: list[int] = []

    async def increment() -> None:
        for _ in range(10):
            while True:
                item = await store.get("/counter")
                assert item is not None
                try:
                    new = await store.update("/counter", b"%d" % (int(item.value) + 1), expected=item.revision)
                except RevisionConflict:
                    continue
                revisions.append(new)
                break

    await asyncio.gather(*(increment() for _ in range(8)))
    final = await store.get("/counter")
    assert final == KeyValue("/counter", b"80", store.revision)
    assert sorted(revisions) == list(range(3, 83))


async def test_writes_from_one_caller_get_strictly_increasing_revisions(store: Storage) -> None:
    revisions = [await store.create(f"/{n}", b"") for n in range(50)]
    assert revisions == sorted(set(revisions))


async def test_writes_submitted_together_keep_their_order(store: Storage) -> None:
    created, updated, deleted = await asyncio.gather(
        store.create("/a", b"1"), store.update("/a", b"2", expected=2), store.delete("/a", expected=3)
    )
    assert (created, updated, deleted) == (2, 3, 4)
    assert await store.get("/a") is None


async def test_an_answered_write_is_read_by_everyone(store: Storage) -> None:
    async def write(n: int) -> None:
        revision = await store.create(f"/{n}", b"")
        assert store.revision >= revision
        item = await store.get(f"/{n}")
        assert item is not None
        assert item.revision == revision
        assert f"/{n}" in {listed.key for listed in (await store.list("/")).items}

    await asyncio.gather(*(write(n) for n in range(30)))


async def test_a_cancelled_write_does_not_disturb_the_others(store: Storage) -> None:
    cancelled = asyncio.ensure_future(store.create("/a", b"1"))
    other = asyncio.ensure_future(store.create("/b", b"1"))
    await asyncio.sleep(0)
    cancelled.cancel()
    assert await other in {2, 3}
    with pytest.raises(asyncio.CancelledError):
        await cancelled


async def test_a_closed_store_says_so(store: Storage) -> None:
    await store.create("/a", b"1")
    await store.close()
    await store.close()
    attempts = [
        store.get("/a"),
        store.list("/"),
        store.history("/", after=1),
        store.create("/b", b""),
        store.update("/a", b"", expected=2),
        store.delete("/a", expected=2),
        store.compact(2),
        store.current_revision(),
        store.wait_for(2),
    ]
    for attempt in attempts:
        with pytest.raises(StorageUnavailable, match="closed"):
            await attempt
    assert "closed" in store.problem()
