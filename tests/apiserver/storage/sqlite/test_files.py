"""What a server finds out about a file before it opens it; a start that is refused leaves everything as it was."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from clusterregistry.apiserver.storage.errors import StorageUnavailable
from clusterregistry.apiserver.storage.interface import KeyValue
from clusterregistry.apiserver.storage.sqlite import SQLiteStorage, schema
from clusterregistry.apiserver.storage.sqlite.files import inspect

Change = Callable[[sqlite3.Connection], object]


@pytest.fixture
async def crashed(tmp_path: Path) -> Path:
    """A database as ``kill -9`` leaves it: what was written last is in its log alone."""
    served = tmp_path / "served" / "registry.db"
    served.parent.mkdir()
    storage = await SQLiteStorage.open(served)
    for number in range(20):
        await storage.create(f"/{number}", b"x" * 2000)
    path = left_behind(served, tmp_path / "crashed")
    await storage.close()
    return path


def left_behind(served: Path, directory: Path) -> Path:
    directory.mkdir()
    for suffix in ("", "-wal"):
        shutil.copyfile(f"{served}{suffix}", directory / f"registry.db{suffix}")
    assert (directory / "registry.db-wal").stat().st_size > 0
    return directory / "registry.db"


def state(directory: Path) -> dict[str, tuple[int, int, bytes]]:
    """Everything in a directory: names, times, inodes and bytes."""
    return {
        entry.name: (entry.stat().st_mtime_ns, entry.stat().st_ino, Path(entry).read_bytes())
        for entry in os.scandir(directory)
    }


def lose(path: Path) -> None:
    path.unlink()


def put(path: Path | str, content: bytes) -> None:
    Path(path).write_bytes(content)


def damage(path: Path) -> None:
    """Harms the file itself, with all of its log played into it before."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("SELECT count(*) FROM log").fetchone()
    damaged = bytearray(path.read_bytes())
    damaged[24_000:28_000] = b"\xff" * 4000
    path.write_bytes(damaged)


async def refused(path: Path, match: str) -> str:
    """What an operator is told to do about a start that is refused, and that has changed nothing."""
    before = state(path.parent)
    with pytest.raises(StorageUnavailable, match=match) as refusal:
        await SQLiteStorage.open(path)
    assert state(path.parent) == before
    return refusal.value.remedy


async def test_a_log_without_its_database_is_not_thrown_away(crashed: Path) -> None:
    lose(crashed)
    remedy = await refused(crashed, r"registry\.db is missing, but its write-ahead log .*registry\.db-wal holds data")
    assert "Put registry.db back" in remedy
    assert "storage restore FILE" in remedy


async def test_a_log_beside_an_empty_database_is_not_thrown_away(crashed: Path) -> None:
    put(crashed, b"")
    assert "Put registry.db back" in await refused(crashed, r"registry\.db is empty, but its write-ahead log")


async def test_a_lock_that_was_there_stays_as_it_was(crashed: Path) -> None:
    put(f"{crashed}.lock", b"4711\n")
    lose(crashed)
    await refused(crashed, "is missing")


@pytest.mark.parametrize("log", [b"", b"\0" * 32])
async def test_a_log_that_holds_nothing_needs_no_database(tmp_path: Path, log: bytes) -> None:
    path = tmp_path / "registry.db"
    put(f"{path}-wal", log)
    storage = await SQLiteStorage.open(path)
    assert await storage.create("/a", b"") == 2
    await storage.close()


async def test_an_empty_file_becomes_a_database(tmp_path: Path) -> None:
    path = tmp_path / "registry.db"
    path.write_bytes(b"")
    await (await SQLiteStorage.open(path)).close()
    inspect(path)
    assert path.stat().st_size > 0


async def changed(tmp_path: Path, change: Change) -> Path:
    """A database that another program has changed, with the change in the log alone."""
    served = tmp_path / "served.db"
    with closing(schema.connect_writer(served)) as connection:
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        change(connection)
        return left_behind(served, tmp_path / "changed")


def of_another_program(connection: sqlite3.Connection) -> None:
    connection.execute("DROP TABLE meta")


def of_a_newer_version(connection: sqlite3.Connection) -> None:
    connection.execute("UPDATE meta SET value = 99 WHERE name = 'version'")


@pytest.mark.parametrize(
    ("change", "message"), [(of_another_program, "another program's"), (of_a_newer_version, "format 99")]
)
async def test_what_a_file_is_can_be_told_with_its_log_and_without_touching_either(
    tmp_path: Path, change: Change, message: str
) -> None:
    await refused(await changed(tmp_path, change), message)


async def test_damage_is_found_without_touching_the_file_or_its_log(crashed: Path) -> None:
    damage(crashed)
    put(f"{crashed}-wal", b"left over" * 10)
    assert "storage restore FILE" in await refused(crashed, "damaged")


async def test_a_file_that_is_no_database_is_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "registry.db"
    path.write_bytes(b"this is a text and no database" * 100)
    await refused(path, "not an SQLite database")


async def test_a_good_file_is_served_with_all_that_a_crash_left_in_its_log(crashed: Path) -> None:
    storage = await SQLiteStorage.open(crashed)
    assert await storage.get("/19") == KeyValue("/19", b"x" * 2000, 21)
    await storage.close()
    assert sorted(state(crashed.parent)) == ["registry.db", "registry.db.lock"]


async def test_a_file_system_without_second_names_will_do(crashed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "link", refuse)
    storage = await SQLiteStorage.open(crashed)
    assert (await storage.list("/")).revision == 21
    await storage.close()
