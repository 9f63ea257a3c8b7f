"""What goes wrong with a file: always StorageUnavailable, with a message that says what to do."""

import ast
import asyncio
import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path

import pytest

import clusterregistry
from clusterregistry.apiserver.storage.errors import StorageUnavailable
from clusterregistry.apiserver.storage.interface import Event, KeyValue
from clusterregistry.apiserver.storage.sqlite import SQLiteStorage, schema

OPEN = """
import asyncio, pathlib, sys
from clusterregistry.apiserver.storage.errors import StorageUnavailable
from clusterregistry.apiserver.storage.sqlite import SQLiteStorage
try:
    asyncio.run(SQLiteStorage.open(pathlib.Path(sys.argv[1])))
except StorageUnavailable as error:
    print(error, error.remedy)
"""


async def fill_the_disk(storage: SQLiteStorage) -> None:
    """From now on the file may not grow."""
    await storage._writer.transact(lambda connection: connection.execute("PRAGMA max_page_count = 1").fetchall())


async def free_the_disk(storage: SQLiteStorage) -> None:
    await storage._writer.transact(lambda connection: connection.execute("PRAGMA max_page_count = 1000000").fetchall())


async def test_a_second_process_is_refused_and_told_what_to_do(sqlite: SQLiteStorage, tmp_path: Path) -> None:
    path = str(tmp_path / "registry.db")
    second = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", OPEN, path], capture_output=True, text=True, check=True
    )
    assert f"in use by another server process (pid {os.getpid()})" in second.stdout
    assert "stop that process, or give this one a --data-dir of its own" in second.stdout
    assert await sqlite.create("/a", b"") == 2


async def test_a_second_store_in_the_same_process_is_refused(sqlite: SQLiteStorage, tmp_path: Path) -> None:
    with pytest.raises(StorageUnavailable, match="in use"):
        await SQLiteStorage.open(tmp_path / "registry.db")
    assert await sqlite.create("/a", b"") == 2


async def test_a_failed_open_does_not_keep_the_lock(tmp_path: Path) -> None:
    path = tmp_path / "registry.db"
    path.write_bytes(b"this is a text and no database" * 100)
    for _ in range(2):
        with pytest.raises(StorageUnavailable, match="not an SQLite database"):
            await SQLiteStorage.open(path)
    path.unlink()
    await (await SQLiteStorage.open(path)).close()


async def test_a_newer_format_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "registry.db"
    await (await SQLiteStorage.open(path)).close()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE meta SET value = 99 WHERE name = 'version'")
    with pytest.raises(StorageUnavailable, match=r"format 99 of a newer version.*Start that newer version"):
        await SQLiteStorage.open(path)


async def test_a_database_of_another_program_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "registry.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE bookmarks (url TEXT)")
    before = path.read_bytes()
    with pytest.raises(StorageUnavailable, match="another program's"):
        await SQLiteStorage.open(path)
    assert path.read_bytes() == before


async def test_a_directory_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(StorageUnavailable, match=r"nowhere/registry\.db: it cannot be opened") as refused:
        await SQLiteStorage.open(tmp_path / "nowhere" / "registry.db")
    assert "check that its directory exists" in refused.value.remedy


async def test_only_its_owner_can_read_the_file(sqlite: SQLiteStorage, tmp_path: Path) -> None:
    await sqlite.create("/a", b"")
    modes = {entry.name: entry.stat().st_mode & 0o777 for entry in os.scandir(tmp_path)}
    assert modes == dict.fromkeys(["registry.db", "registry.db-wal", "registry.db-shm", "registry.db.lock"], 0o600)


async def test_a_full_disk_fails_the_write_changes_nothing_and_is_gone_when_there_is_space(
    sqlite: SQLiteStorage,
) -> None:
    received: list[Event] = []
    await sqlite.create("/a", b"1")
    sqlite.subscribe("/", received.extend)
    await fill_the_disk(sqlite)
    with pytest.raises(StorageUnavailable, match="the disk is full") as refused:
        await sqlite.create("/b", b"x" * 10_000)
    assert "free some space" in refused.value.remedy
    assert (received, sqlite.revision, await sqlite.get("/b")) == ([], 2, None)
    assert (await sqlite.list("/")).items == [KeyValue("/a", b"1", 2)]
    await free_the_disk(sqlite)
    assert await sqlite.create("/b", b"x" * 10_000) == 3


async def test_a_problem_is_told_while_writes_fail_and_ends_without_a_write(sqlite: SQLiteStorage) -> None:
    assert sqlite.problem() == ""
    await fill_the_disk(sqlite)
    with pytest.raises(StorageUnavailable):
        await sqlite.create("/b", b"x" * 10_000)
    assert "the disk is full" in sqlite.problem()
    assert "free some space" in sqlite.problem()
    await sqlite._writer.transact(schema.probe)
    assert sqlite.problem() == ""


async def test_a_write_that_succeeds_ends_the_problem(sqlite: SQLiteStorage) -> None:
    await fill_the_disk(sqlite)
    with pytest.raises(StorageUnavailable):
        await sqlite.create("/b", b"x" * 10_000)
    await sqlite.create("/c", b"small enough")
    assert sqlite.problem() == ""


async def test_asking_for_the_problem_has_the_writer_try_again(sqlite: SQLiteStorage) -> None:
    await fill_the_disk(sqlite)
    with pytest.raises(StorageUnavailable):
        await sqlite.create("/b", b"x" * 10_000)
    assert sqlite.problem() != ""
    assert sqlite._writer._probe is not None
    await sqlite._writer._probe
    assert sqlite.problem() == ""


async def test_a_failed_commit_fails_all_of_its_batch(sqlite: SQLiteStorage) -> None:
    await sqlite.create("/a", b"1")
    await fill_the_disk(sqlite)
    gate = threading.Event()
    busy = sqlite._writer.transact(lambda _: gate.wait())
    writes = asyncio.gather(
        sqlite.create("/small", b""),
        sqlite.update("/a", b"2", expected=2),
        sqlite.create("/large", b"x" * 100_000),
        sqlite.create("/small", b"refused, but by a write that fails too"),
        return_exceptions=True,
    )
    await asyncio.sleep(0)  # now all of them wait behind the busy writer, as one batch
    gate.set()
    await busy
    assert [type(outcome) for outcome in await writes] == [StorageUnavailable] * 4
    assert (await sqlite.list("/")).items == [KeyValue("/a", b"1", 2)]
    assert sqlite.revision == 2
    await free_the_disk(sqlite)
    assert await sqlite.create("/large", b"x" * 100_000) == 3
    assert await sqlite.update("/a", b"2", expected=2) == 4


async def test_closing_finishes_the_writes_under_way(tmp_path: Path) -> None:
    storage = await SQLiteStorage.open(tmp_path / "registry.db")
    writes = asyncio.gather(*(storage.create(f"/{n}", b"") for n in range(300)))
    await asyncio.sleep(0)
    await storage.close()
    assert writes.done()
    assert await writes == list(range(2, 302))


async def test_a_file_locked_by_another_program_is_waited_for(sqlite: SQLiteStorage, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "registry.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        write = asyncio.ensure_future(sqlite.create("/a", b""))
        await asyncio.wait([write], timeout=0.1)
        assert not write.done()
        other.execute("ROLLBACK")
    assert await write == 2


async def test_a_backup_can_be_taken_while_it_serves(sqlite: SQLiteStorage, tmp_path: Path) -> None:
    await sqlite.create("/a", b"1")
    with (
        closing(sqlite3.connect(tmp_path / "registry.db")) as live,
        closing(sqlite3.connect(tmp_path / "backup.db")) as copy,
    ):
        live.backup(copy)
    await sqlite.create("/b", b"1")
    restored = await SQLiteStorage.open(tmp_path / "backup.db")
    assert (await restored.list("/")).items == [KeyValue("/a", b"1", 2)]
    await restored.close()


OPERATIONS: dict[str, Callable[[SQLiteStorage], Awaitable[object]]] = {
    "get": lambda storage: storage.get("/a"),
    "list": lambda storage: storage.list("/"),
    "list in the past": lambda storage: storage.list("/", revision=1),
    "history": lambda storage: storage.history("/", after=1),
    "create": lambda storage: storage.create("/b", b""),
    "update": lambda storage: storage.update("/a", b"", expected=2),
    "delete": lambda storage: storage.delete("/a", expected=2),
    "compact": lambda storage: storage.compact(2),
}


@pytest.mark.parametrize("operation", OPERATIONS)
async def test_no_engine_exception_leaves_when_the_tables_are_gone(
    sqlite: SQLiteStorage, tmp_path: Path, operation: str
) -> None:
    await sqlite.create("/a", b"")
    with closing(sqlite3.connect(tmp_path / "registry.db")) as other, other:
        other.execute("DROP TABLE log")
        other.execute("DROP TABLE meta")
    with pytest.raises(StorageUnavailable, match=r"registry\.db: no such table"):
        await OPERATIONS[operation](sqlite)


@pytest.mark.parametrize("operation", ["get", "list", "update", "delete"])
async def test_no_other_exception_leaves_when_rows_are_missing(
    sqlite: SQLiteStorage, tmp_path: Path, operation: str
) -> None:
    await sqlite.create("/a", b"")
    with closing(sqlite3.connect(tmp_path / "registry.db")) as other, other:
        other.execute("DELETE FROM log")
    with pytest.raises(StorageUnavailable, match="damaged"):
        await OPERATIONS[operation](sqlite)


async def test_the_writer_survives_a_bug(sqlite: SQLiteStorage, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(StorageUnavailable, match="internal error"):
        await sqlite._writer.transact(lambda _: 1 // 0)
    assert "ZeroDivisionError" in caplog.text
    assert await sqlite.create("/a", b"") == 2


def test_only_the_sqlite_package_knows_sqlite() -> None:
    root = Path(clusterregistry.__file__).parent
    importing = [
        file.relative_to(root)
        for file in root.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if (isinstance(node, ast.Import) and any(name.name.split(".")[0] == "sqlite3" for name in node.names))
        or (isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "sqlite3")
    ]
    assert importing
    assert all(file.is_relative_to("apiserver/storage/sqlite") for file in importing)
