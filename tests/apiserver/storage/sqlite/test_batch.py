"""How the writer thread of SQLite puts writes together, and what it keeps of them."""

import asyncio
import tracemalloc
from collections.abc import Sequence

import orjson
import pytest

from clusterregistry.apiserver.storage.errors import KeyExists
from clusterregistry.apiserver.storage.interface import Event, KeyValue
from clusterregistry.apiserver.storage.sqlite import SQLiteStorage, writer
from clusterregistry.apiserver.storage.sqlite.batch import MOST_ROWS


def batches_of(storage: SQLiteStorage) -> list[Sequence[Event]]:
    """The commits from now on: each is told once."""
    batches: list[Sequence[Event]] = []
    storage.subscribe("", batches.append)
    return batches


async def test_writes_of_one_turn_of_the_loop_share_a_commit(sqlite: SQLiteStorage) -> None:
    batches = batches_of(sqlite)
    await asyncio.gather(*(sqlite.create(f"/{n}", b"") for n in range(50)))
    assert [len(batch) for batch in batches] == [50]


async def test_writes_that_keep_coming_share_a_commit(sqlite: SQLiteStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each begins a turn of the loop later than the one before it, as requests of clients do."""
    monkeypatch.setattr(writer, "_PATIENCE", 60.0)
    batches = batches_of(sqlite)

    async def later(turns: int) -> None:
        for _ in range(turns):
            await asyncio.sleep(0)
        await sqlite.create(f"/{turns}", b"")

    await asyncio.gather(*map(later, range(5)))
    assert [len(batch) for batch in batches] == [5]


@pytest.mark.parametrize(("patience", "waiting"), [(60.0, [1, 2, 3, 4, 5]), (-1.0, [1, 1, 1, 1, 1])])
async def test_a_write_waits_for_others_only_for_so_long(
    sqlite: SQLiteStorage, monkeypatch: pytest.MonkeyPatch, patience: float, waiting: list[int]
) -> None:
    monkeypatch.setattr(writer, "_PATIENCE", patience)
    seen, writes = [], []
    for number in range(5):
        writes.append(sqlite._writer.write(f"/{number}", b"", expected=None))
        seen.append(len(sqlite._writer._collected))
        await asyncio.sleep(0)
    await asyncio.gather(*writes)
    assert seen == waiting


async def test_a_commit_has_an_end_and_the_other_writes_follow_in_their_order(sqlite: SQLiteStorage) -> None:
    batches = batches_of(sqlite)
    revisions = await asyncio.gather(*(sqlite.create(f"/{n}", b"%d" % n) for n in range(2 * MOST_ROWS + 1)))
    assert [len(batch) for batch in batches] == [MOST_ROWS, MOST_ROWS, 1]
    assert list(revisions) == list(range(2, 2 * MOST_ROWS + 3))
    assert all(item.value == item.key.encode()[1:] for item in (await sqlite.list("/")).items)


async def test_writes_that_nobody_has_taken_yet_are_done_before_a_store_closes(sqlite: SQLiteStorage) -> None:
    writes = [asyncio.ensure_future(sqlite.create(key, b"")) for key in ("/a", "/b", "/a")]
    await asyncio.sleep(0)  # they have begun, and are collected
    await sqlite.close()
    first, second, refused = await asyncio.gather(*writes, return_exceptions=True)
    assert (first, second) == (2, 3)
    assert isinstance(refused, KeyExists)


@pytest.mark.parametrize("delete", [False, True])
async def test_what_the_writer_of_a_change_knows_is_told_with_it(sqlite: SQLiteStorage, *, delete: bool) -> None:
    created = await sqlite.create("/a", b"old")
    batches, known = batches_of(sqlite), KeyValue("/a", b"old", created)
    if delete:
        await sqlite.delete("/a", expected=created, known=known)
    else:
        await sqlite.update("/a", b"new", expected=created, known=known)
    assert batches[0][0].previous is known


async def test_what_somebody_knows_of_another_revision_counts_for_nothing(sqlite: SQLiteStorage) -> None:
    created = await sqlite.create("/a", b"1")
    updated = await sqlite.update("/a", b"2", expected=created)
    batches = batches_of(sqlite)
    await sqlite.update("/a", b"3", expected=updated, known=KeyValue("/a", b"1", created))
    assert batches[0][0].previous == KeyValue("/a", b"2", updated)


async def test_a_kept_value_takes_no_more_memory_than_it_needs(sqlite: SQLiteStorage) -> None:
    count, size = 50, 3000
    batches = batches_of(sqlite)
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for n in range(count):
            await sqlite.create(f"/{n}", orjson.dumps("x" * size))
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(batches) == count
    assert after - before < 2 * count * size
