"""What compaction leaves in the file."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from clusterregistry.apiserver.storage.sqlite import SQLiteStorage, writer


def rows(path: Path) -> list[int]:
    with closing(sqlite3.connect(path)) as connection:
        return [revision for (revision,) in connection.execute("SELECT revision FROM log ORDER BY revision")]


async def test_superseded_rows_and_tombstones_are_removed(sqlite: SQLiteStorage, tmp_path: Path) -> None:
    await sqlite.create("/a", b"")
    await sqlite.create("/b", b"")
    await sqlite.update("/a", b"", expected=2)
    await sqlite.delete("/b", expected=3)
    await sqlite.update("/a", b"", expected=4)
    await sqlite.compact(5)
    assert rows(tmp_path / "registry.db") == [4, 6]


async def test_a_tombstone_above_the_compacted_revision_stays_with_what_it_deleted(
    sqlite: SQLiteStorage, tmp_path: Path
) -> None:
    await sqlite.create("/a", b"")
    await sqlite.create("/b", b"")
    await sqlite.delete("/a", expected=2)
    await sqlite.compact(3)
    assert rows(tmp_path / "registry.db") == [2, 3, 4]


async def test_a_compaction_that_was_cut_short_goes_on_at_the_next(
    sqlite: SQLiteStorage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "SLICE_ROWS", 3)
    await sqlite.create("/a", b"")
    for revision in range(2, 12):
        await sqlite.update("/a", b"", expected=revision)
    done = await sqlite._writer.transact(lambda connection: writer.sweep(connection, revision=12))
    assert not done
    assert rows(tmp_path / "registry.db") == list(range(4, 13))
    await sqlite.close()
    reopened = await SQLiteStorage.open(tmp_path / "registry.db")
    await reopened.compact(1)
    assert rows(tmp_path / "registry.db") == [12]
    await reopened.close()
