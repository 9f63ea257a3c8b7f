"""Backups of a file that is being written to, and a backup in the place of a file."""

import asyncio
import os
import shutil
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from clusterregistry.apiserver.storage.errors import RevisionCompacted, StorageUnavailable
from clusterregistry.apiserver.storage.interface import KeyValue
from clusterregistry.apiserver.storage.sqlite import SQLiteStorage, integrity, schema, stats
from clusterregistry.apiserver.storage.sqlite import backup as backing_up
from clusterregistry.apiserver.storage.sqlite import restore as restoring
from clusterregistry.apiserver.storage.sqlite.backup import back_up
from clusterregistry.apiserver.storage.sqlite.restore import LEAP, Restored

NOW = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)


def ignore(_: int, __: int) -> None:
    pass


def take(path: Path, target: Path, *, overwrite: bool = False) -> None:
    back_up(path, target, overwrite=overwrite, progress=ignore)


def restore(backup: Path, path: Path) -> Restored:
    check = partial(integrity.problems, full=True, value_problem=lambda _, __: "", progress=ignore)
    return restoring.restore(backup, path, now=NOW, check=check, progress=ignore)


async def contents(path: Path) -> list[KeyValue]:
    storage = await SQLiteStorage.open(path)
    try:
        return list((await storage.list("/")).items)
    finally:
        await storage.close()


@pytest.fixture
async def database(tmp_path: Path) -> Path:
    """One that no server uses: /a was changed once, /b deleted."""
    path = tmp_path / "registry.db"
    storage = await SQLiteStorage.open(path)
    await storage.create("/a", b"1")
    await storage.create("/b", b"1")
    await storage.update("/a", b"2", expected=2)
    await storage.delete("/b", expected=3)
    await storage.close()
    return path


@pytest.fixture
def backup(database: Path, tmp_path: Path) -> Path:
    take(database, tmp_path / "backup.db")
    return tmp_path / "backup.db"


# Backing up


async def test_a_backup_holds_what_was_committed_while_the_store_goes_on(sqlite: SQLiteStorage, tmp_path: Path) -> None:
    await sqlite.create("/a", b"1")
    take(tmp_path / "registry.db", tmp_path / "backup.db")
    await sqlite.create("/b", b"1")
    assert await contents(tmp_path / "backup.db") == [KeyValue("/a", b"1", 2)]
    assert [item.key for item in (await sqlite.list("/")).items] == ["/a", "/b"]


async def test_writes_during_a_backup_neither_wait_nor_make_it_begin_anew(
    sqlite: SQLiteStorage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backing_up, "_PAGES", 1)
    await sqlite.create("/a", b"x" * 100_000)
    loop, seen = asyncio.get_running_loop(), []

    def write_meanwhile(done: int, total: int) -> None:
        seen.append((done, total))
        asyncio.run_coroutine_threadsafe(sqlite.create(f"/during/{done}", b"x" * 5000), loop).result(10)

    target = tmp_path / "backup.db"
    await asyncio.to_thread(back_up, tmp_path / "registry.db", target, overwrite=False, progress=write_meanwhile)
    assert len(seen) > 10
    assert seen == [(number, seen[0][1]) for number in range(1, len(seen) + 1)]
    assert [item.key for item in await contents(target)] == ["/a"]
    assert sqlite.count("/during/") == len(seen)


def test_a_backup_is_one_file_that_only_its_owner_can_read(backup: Path, tmp_path: Path) -> None:
    assert sorted(each.name for each in tmp_path.glob("backup*")) == ["backup.db"]
    assert backup.stat().st_mode & 0o777 == 0o600
    with closing(sqlite3.connect(f"{backup.as_uri()}?mode=ro", uri=True)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)


def test_no_half_file_is_left_by_an_interrupted_backup(database: Path, tmp_path: Path) -> None:
    def interrupt(_: int, __: int) -> None:
        raise KeyboardInterrupt

    before = set(tmp_path.iterdir())
    with pytest.raises(KeyboardInterrupt):
        back_up(database, tmp_path / "backup.db", overwrite=False, progress=interrupt)
    beside = {database.with_name("registry.db-wal"), database.with_name("registry.db-shm")}
    assert set(tmp_path.iterdir()) - beside == before


def test_a_file_is_overwritten_only_when_told_so(database: Path, tmp_path: Path) -> None:
    target = tmp_path / "backup.db"
    target.write_bytes(b"precious")
    with pytest.raises(StorageUnavailable, match="exists") as refused:
        take(database, target)
    assert "--force" in refused.value.remedy
    assert target.read_bytes() == b"precious"
    take(database, target, overwrite=True)
    assert stats.measure(target).revision == 5


@pytest.mark.parametrize("name", ["registry.db", "registry.db-wal", "registry.db.lock", "link.db"])
def test_the_database_itself_is_never_the_target(database: Path, name: str) -> None:
    (database.parent / "link.db").symlink_to(database)
    with pytest.raises(StorageUnavailable, match="belongs to the database itself"):
        take(database, database.parent / name, overwrite=True)


@pytest.mark.parametrize(
    ("name", "message", "remedy"),
    [("", "is a directory", "name a file in it"), ("nowhere/backup.db", "there is no directory", "make it first")],
)
def test_a_target_that_cannot_be_is_refused_with_advice(database: Path, name: str, message: str, remedy: str) -> None:
    with pytest.raises(StorageUnavailable, match=message) as refused:
        take(database, database.parent / name)
    assert remedy in refused.value.remedy


def test_a_damaged_database_gives_no_backup(database: Path, tmp_path: Path) -> None:
    damage(database)
    with pytest.raises(StorageUnavailable, match="damaged"):
        take(database, tmp_path / "backup.db")
    assert not (tmp_path / "backup.db").exists()


def test_damage_that_does_not_hinder_the_copying_is_found_all_the_same(database: Path, tmp_path: Path) -> None:
    with database.open("r+b") as file:
        file.seek(schema.PAGE_BYTES + 7)  # how many bytes in the middle of the page are fragments
        file.write(b"\x09")
    with pytest.raises(StorageUnavailable, match=r"is damaged: Fragmentation of \d+ bytes") as refused:
        take(database, tmp_path / "backup.db")
    assert "nothing was written" in refused.value.remedy
    assert not (tmp_path / "backup.db").exists()


def test_a_database_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(StorageUnavailable, match="there is no database at") as refused:
        take(tmp_path / "registry.db", tmp_path / "backup.db")
    assert "--data-dir" in refused.value.remedy
    assert list(tmp_path.iterdir()) == []


def bytes_of(path: Path) -> bytes:
    return path.read_bytes()


def damage(path: Path) -> None:
    """Overwrites the page of the log's rows."""
    with path.open("r+b") as file:
        file.seek(schema.PAGE_BYTES)
        file.write(b"\xff" * schema.PAGE_BYTES)


# Restoring


async def test_a_restored_database_holds_what_the_backup_did(backup: Path, tmp_path: Path) -> None:
    path = tmp_path / "new" / "registry.db"
    restored = restore(backup, path)
    assert restored == Restored(kept=None, revision=5 + LEAP)
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert await contents(path) == [KeyValue("/a", b"2", 4)]


async def test_a_restored_store_goes_on_behind_every_revision_that_was_seen(backup: Path, database: Path) -> None:
    storage = await SQLiteStorage.open(database)
    for number in range(10):
        await storage.create(f"/later/{number}", b"")
    await storage.close()
    assert restore(backup, database).revision == 15 + LEAP
    storage = await SQLiteStorage.open(database)
    with pytest.raises(RevisionCompacted):
        await storage.history("/", after=15)
    assert (await storage.list("/")).revision == 15 + LEAP
    assert await storage.create("/c", b"") == 16 + LEAP
    await storage.compact(16 + LEAP)
    assert [item.key for item in (await storage.list("/")).items] == ["/a", "/c"]
    await storage.close()


async def test_the_replaced_database_is_kept_with_all_that_a_crash_left_in_its_log(
    backup: Path, sqlite: SQLiteStorage, tmp_path: Path
) -> None:
    await sqlite.create("/newest", b"1")
    crashed = tmp_path / "crashed"
    crashed.mkdir()
    for name in ("registry.db", "registry.db-wal"):
        shutil.copy(tmp_path / name, crashed / name)
    kept = restore(backup, crashed / "registry.db").kept
    assert kept == crashed / "registry.db.replaced-20300102T030405Z"
    assert [item.key for item in await contents(kept)] == ["/a", "/newest"]
    assert await contents(crashed / "registry.db") == [KeyValue("/a", b"2", 4)]


async def test_a_log_without_its_database_does_not_get_into_the_restored_one(
    backup: Path, sqlite: SQLiteStorage, tmp_path: Path
) -> None:
    await sqlite.create("/newest", b"1")
    target = tmp_path / "new"
    target.mkdir()
    shutil.copy(tmp_path / "registry.db-wal", target / "registry.db-wal")
    assert restore(backup, target / "registry.db").kept is None
    assert await contents(target / "registry.db") == [KeyValue("/a", b"2", 4)]


def test_a_file_that_cannot_be_read_is_kept_together_with_its_log(backup: Path, tmp_path: Path) -> None:
    path = tmp_path / "broken" / "registry.db"
    path.parent.mkdir()
    path.write_bytes(b"this is a text and no database" * 100)
    Path(f"{path}-wal").write_bytes(b"its log")
    kept = restore(backup, path).kept
    assert kept is not None
    assert bytes_of(kept).startswith(b"this is a text")
    assert bytes_of(Path(f"{kept}-wal")) == b"its log"
    assert stats.measure(path).revision == 5 + LEAP


async def test_a_damaged_database_can_be_replaced_and_is_kept_as_it_is(backup: Path, database: Path) -> None:
    damage(database)
    before = bytes_of(database)
    kept = restore(backup, database).kept
    assert kept is not None
    assert bytes_of(kept) == before
    assert await contents(database) == [KeyValue("/a", b"2", 4)]


async def test_a_database_in_use_is_not_replaced(backup: Path, database: Path) -> None:
    storage = await SQLiteStorage.open(database)
    await storage.create("/c", b"")
    with pytest.raises(StorageUnavailable, match=f"in use by another server process .pid {os.getpid()}.") as refused:
        restore(backup, database)
    assert "stop that server" in refused.value.remedy
    assert (await storage.get("/c")) is not None
    await storage.close()


def test_a_lock_is_not_kept_after_a_restore(backup: Path, database: Path) -> None:
    restore(backup, database)
    with pytest.raises(StorageUnavailable, match="no database"):
        restore(backup.with_name("nothing.db"), database)
    database.unlink()
    assert restore(backup, database).kept is None


def break_link(connection: sqlite3.Connection) -> None:
    connection.execute("UPDATE log SET prev_revision = 3 WHERE revision = 4")


def make_newer(connection: sqlite3.Connection) -> None:
    connection.execute("UPDATE meta SET value = 99 WHERE name = 'version'")


def make_anothers(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA application_id = 77")


@pytest.mark.parametrize(
    ("change", "message"),
    [(break_link, "damaged: revision 4 of /a"), (make_newer, "format 99"), (make_anothers, "another program's")],
)
def test_a_backup_that_is_not_good_changes_nothing(backup: Path, database: Path, change: object, message: str) -> None:
    assert callable(change)
    with closing(sqlite3.connect(backup)) as connection, connection:
        change(connection)
    before = database.read_bytes()
    with pytest.raises(StorageUnavailable, match=message) as refused:
        restore(backup, database)
    assert "nothing was changed" in refused.value.remedy
    assert database.read_bytes() == before
    assert list(database.parent.glob("*.replaced-*")) == []
    assert list(database.parent.glob(".*.partial")) == []


def test_a_file_that_is_no_database_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(b"this is a text and no database" * 100)
    with pytest.raises(StorageUnavailable, match="not an SQLite database"):
        restore(tmp_path / "text", tmp_path / "new" / "registry.db")
    assert not (tmp_path / "new").exists()


def test_the_database_is_not_restored_from_itself(database: Path) -> None:
    with pytest.raises(StorageUnavailable, match="is the database itself"):
        restore(database, database)


async def test_a_backup_of_an_older_format_is_restored_and_served(backup: Path, database: Path) -> None:
    to_format_1(backup)
    restore(backup, database)
    assert await contents(database) == [KeyValue("/a", b"2", 4)]


# Formats


def to_format_1(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE meta SET value = 1 WHERE name = 'version'")
        connection.execute("PRAGMA application_id = 0")


def format_of(path: Path) -> tuple[int, int]:
    with closing(sqlite3.connect(path)) as connection:
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        return application, schema.numbers(connection)["version"]


async def test_a_file_of_format_1_becomes_one_of_today_and_loses_nothing(database: Path) -> None:
    to_format_1(database)
    assert await contents(database) == [KeyValue("/a", b"2", 4)]
    assert format_of(database) == (schema.APPLICATION_ID, schema.VERSION)


def test_reading_a_file_of_format_1_does_not_change_it(database: Path) -> None:
    to_format_1(database)
    assert stats.measure(database).format == 1
    assert format_of(database) == (0, 1)


async def test_a_step_that_fails_leaves_the_file_as_it_was(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(connection: sqlite3.Connection) -> None:
        connection.execute("DELETE FROM log")
        connection.execute("no such statement")

    to_format_1(database)
    with monkeypatch.context() as patched:
        patched.setattr(schema, "_STEPS", {1: fails})
        with pytest.raises(StorageUnavailable, match="syntax error"):
            await SQLiteStorage.open(database)
    assert format_of(database) == (0, 1)
    assert await contents(database) == [KeyValue("/a", b"2", 4)]


def test_a_new_file_is_marked_as_ours(database: Path) -> None:
    assert format_of(database) == (schema.APPLICATION_ID, schema.VERSION)


def test_every_older_format_has_a_step() -> None:
    assert list(schema._STEPS) == list(range(1, schema.VERSION))


@pytest.mark.parametrize(
    "statement",
    [
        "PRAGMA application_id = 77",
        "UPDATE meta SET value = 0 WHERE name = 'version'",
        "DELETE FROM meta WHERE name = 'swept'",
        "ALTER TABLE meta RENAME COLUMN name TO title",
    ],
)
async def test_a_file_that_only_looks_like_ours_is_refused_and_left_alone(database: Path, statement: str) -> None:
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute(statement)
    before = bytes_of(database)
    with pytest.raises(StorageUnavailable, match="another program's"):
        await SQLiteStorage.open(database)
    with pytest.raises(StorageUnavailable, match="another program's"):
        stats.measure(database)
    assert bytes_of(database) == before


async def test_a_file_made_anew_from_a_dump_is_still_ours(database: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(database)) as old, closing(sqlite3.connect(tmp_path / "anew.db")) as anew:
        anew.executescript("\n".join(old.iterdump()))
    assert await contents(tmp_path / "anew.db") == [KeyValue("/a", b"2", 4)]


def test_a_backup_can_be_read_without_making_files_beside_it(backup: Path) -> None:
    with closing(sqlite3.connect(backup)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")  # as the backups of the sqlite3 shell
    stats.measure(backup)
    assert sorted(each.name for each in backup.parent.glob("backup*")) == ["backup.db"]


def test_measures_tell_what_is_there(database: Path) -> None:
    measures = stats.measure(database)
    assert (dict(measures.objects), measures.object_bytes) == ({"/": 1}, 1)
    assert (measures.revision, measures.oldest_revision, measures.rows) == (5, 1, 4)
    assert measures.file_bytes == database.stat().st_size
    assert (measures.format, measures.free_bytes) == (schema.VERSION, 0)


async def test_measures_follow_compaction_and_the_log(sqlite: SQLiteStorage, tmp_path: Path) -> None:
    for number in range(3):
        await sqlite.create(f"/group/things/{number}", b"12345")
    await sqlite.delete("/group/things/0", expected=2)
    await sqlite.compact(5)
    measures = stats.measure(tmp_path / "registry.db")
    assert (dict(measures.objects), measures.object_bytes) == ({"/group/things/": 2}, 10)
    assert (measures.revision, measures.oldest_revision, measures.rows) == (5, 5, 2)
    assert measures.wal_bytes == (tmp_path / "registry.db-wal").stat().st_size > 0
