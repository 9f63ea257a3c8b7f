"""What every store does with a write."""

import asyncio

import pytest

from clusterregistry.apiserver.storage.errors import KeyExists, KeyNotFound, RevisionConflict
from clusterregistry.apiserver.storage.interface import KeyValue, Storage
from tests.apiserver.storage.engines import settled
from tests.apiserver.storage.recording import Chronicle, keys

ODD_KEYS = [
    "/",
    "//",
    "/a b",
    "/a\nb",
    "/tab\t",
    "/nul\0inside",
    "/quote'\"%_\\*?[",
    "/../a",
    "/é",
    "/e\u0301",
    "/\uffff",
    "/\U0001f600",
    "/\U0010ffff",
    "/" + "long" * 200,
]

VALUES = (b"", b"\0", bytes(range(256)), b"\xff\xfe\xc0", b"\n\r\n", b"x" * (1 << 20))


async def test_an_empty_store_has_a_revision_and_each_write_makes_the_next_one(store: Storage) -> None:
    # Clients take 0 for "any", so no store is ever at it.
    first = await settled(store)  # of etcd, the store learns by a watch
    assert first > 0
    assert store.revision == first
    created = await store.create("/a", b"1")
    updated = await store.update("/a", b"2", expected=created)
    other = await store.create("/b", b"1")
    deleted = await store.delete("/a", expected=updated)
    assert [created, updated, other, deleted] == [first + 1, first + 2, first + 3, first + 4]
    assert await settled(store) == store.revision == deleted


async def test_a_write_that_is_refused_uses_no_revision(store: Storage) -> None:
    created = await store.create("/a", b"1")
    with pytest.raises(KeyExists):
        await store.create("/a", b"2")
    with pytest.raises(RevisionConflict):
        await store.update("/a", b"2", expected=created + 1)
    with pytest.raises(KeyNotFound):
        await store.delete("/b", expected=created)
    assert await store.current_revision() == created
    assert await store.create("/b", b"") == created + 1


async def test_a_created_key_is_read_back_at_its_revision(store: Storage) -> None:
    revision = await store.create("/a", b"1")
    assert await store.get("/a") == KeyValue("/a", b"1", revision)


async def test_a_key_that_was_never_written_is_none(store: Storage) -> None:
    await store.create("/a/b", b"1")
    for key in ("/b", "/a", "/a/", "/a/b/", "/a/b\0", "/A/B"):
        assert await store.get(key) is None


async def test_a_key_cannot_be_created_twice(store: Storage) -> None:
    revision = await store.create("/a", b"1")
    with pytest.raises(KeyExists) as caught:
        await store.create("/a", b"2")
    assert caught.value.key == "/a"
    assert await store.get("/a") == KeyValue("/a", b"1", revision)


async def test_an_update_needs_the_current_revision_and_its_error_names_it(store: Storage) -> None:
    created = await store.create("/a", b"1")
    updated = await store.update("/a", b"2", expected=created)
    for wrong in (created, updated + 1, 1):
        with pytest.raises(RevisionConflict) as caught:
            await store.update("/a", b"3", expected=wrong)
        assert (caught.value.key, caught.value.expected, caught.value.actual) == ("/a", wrong, updated)
    assert await store.get("/a") == KeyValue("/a", b"2", updated)


async def test_a_delete_needs_the_current_revision_and_its_error_names_it(store: Storage) -> None:
    created = await store.create("/a", b"1")
    updated = await store.update("/a", b"2", expected=created)
    for wrong in (created, updated + 1, 1):
        with pytest.raises(RevisionConflict) as caught:
            await store.delete("/a", expected=wrong)
        assert (caught.value.key, caught.value.expected, caught.value.actual) == ("/a", wrong, updated)
    assert await store.delete("/a", expected=updated) == updated + 1
    assert await store.get("/a") is None


async def test_the_revision_that_counts_is_the_keys_own_and_not_the_stores(store: Storage) -> None:
    created = await store.create("/a", b"1")
    later = await store.create("/b", b"1")
    with pytest.raises(RevisionConflict):
        await store.update("/a", b"2", expected=later)
    assert await store.update("/a", b"2", expected=created) == later + 1


async def test_a_write_that_expects_no_revision_is_a_conflict_not_a_create(store: Storage) -> None:
    created = await store.create("/a", b"1")
    for write in (store.update("/a", b"2", expected=0), store.delete("/a", expected=0)):
        with pytest.raises(RevisionConflict) as caught:
            await write
        assert caught.value.actual == created
    with pytest.raises(KeyNotFound):
        await store.update("/b", b"2", expected=0)
    assert await store.get("/b") is None


async def test_a_missing_key_can_be_neither_updated_nor_deleted(store: Storage) -> None:
    for write in (store.update("/a", b"1", expected=1), store.delete("/a", expected=1)):
        with pytest.raises(KeyNotFound) as caught:
            await write
        assert caught.value.key == "/a"


async def test_a_deleted_key_can_be_neither_updated_nor_deleted_again(store: Storage) -> None:
    created = await store.create("/a", b"1")
    deleted = await store.delete("/a", expected=created)
    for expected in (created, deleted):
        with pytest.raises(KeyNotFound):
            await store.update("/a", b"2", expected=expected)
        with pytest.raises(KeyNotFound):
            await store.delete("/a", expected=expected)


async def test_a_deleted_key_can_be_created_again_and_is_another_one_then(store: Storage) -> None:
    created = await store.create("/a", b"1")
    deleted = await store.delete("/a", expected=created)
    again = await store.create("/a", b"2")
    assert again == deleted + 1
    with pytest.raises(RevisionConflict) as caught:
        await store.update("/a", b"3", expected=created)
    assert caught.value.actual == again
    assert await store.get("/a") == KeyValue("/a", b"2", again)


async def test_an_update_to_the_same_value_is_a_change_too(store: Storage) -> None:
    created = await store.create("/a", b"1")
    updated = await store.update("/a", b"1", expected=created)
    assert updated > created
    await settled(store)
    (event,) = await store.history("/", after=created)
    assert (event.previous, event.current) == (KeyValue("/a", b"1", created), KeyValue("/a", b"1", updated))


async def test_values_are_any_bytes_however_they_are_read(store: Storage) -> None:
    for value in VALUES:
        created = await store.create("/a", b"before")
        updated = await store.update("/a", value, expected=created)
        expected = KeyValue("/a", value, updated)
        await settled(store)
        assert await store.get("/a") == expected
        assert (await store.list("/")).items == [expected]
        assert (await store.list("/", revision=updated)).items == [expected]
        await store.delete("/a", expected=updated)
        await settled(store)
        changed, deleted = await store.history("/", after=created)
        assert (changed.current, deleted.previous) == (expected, expected)


async def test_an_empty_value_is_not_a_deletion(store: Storage) -> None:
    created = await store.create("/a", b"1")
    updated = await store.update("/a", b"", expected=created)
    assert keys(await store.list("/")) == ["/a"]
    await settled(store)
    (event,) = await store.history("/", after=created)
    assert event.current == KeyValue("/a", b"", updated)


async def test_keys_are_any_text_and_none_is_taken_for_another(store: Storage) -> None:
    written = await Chronicle.of(store)
    for key in ODD_KEYS:
        await written.put(store, key, key.encode())
    assert keys(await store.list("/")) == sorted(ODD_KEYS)
    for item in written.state(written.last):
        assert await store.get(item.key) == item
    for key in ODD_KEYS[::2]:
        await written.delete(store, key)
    await settled(store)
    assert (await store.list("/")).items == written.state(written.last)
    assert list(await store.history("/", after=written.start)) == written.events


async def test_a_key_without_utf8_form_is_a_value_error_and_harms_no_other_write(store: Storage) -> None:
    outcomes = await asyncio.gather(
        store.create("/a", b"1"), store.create("/\udc80", b"1"), store.create("/b", b"1"), return_exceptions=True
    )
    assert [type(outcome) for outcome in outcomes] == [int, UnicodeEncodeError, int]
    assert await store.get("/\udc80") is None
    assert keys(await store.list("/")) == ["/a", "/b"]
    assert keys(await store.list("/\udc80")) == []
    with pytest.raises(KeyNotFound):
        await store.delete("/\udc80", expected=1)
