"""Damage is found, and what is whole is left in peace."""

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from clusterregistry.apiserver.storage.errors import StorageUnavailable
from clusterregistry.apiserver.storage.sqlite import SQLiteStorage, integrity, stats
from clusterregistry.apiserver.storage.sqlite.files import inspect
from clusterregistry.apiserver.storage.sqlite.integrity import check_at_start
from clusterregistry.apiserver.storage.sqlite.schema import PAGE_BYTES


def ignore(_: int, __: int) -> None:
    pass


def no_problem(_: str, __: bytes) -> str:
    return ""


def found(path: Path, *, full: bool = False) -> list[str]:
    return list(integrity.problems(path, full=full, value_problem=no_problem, progress=ignore))


def change(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def overwrite_a_page(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(PAGE_BYTES)
        file.write(b"\xff" * PAGE_BYTES)


@pytest.fixture
async def database(tmp_path: Path) -> Path:
    """Revisions 2 to 5: /a and /b created, /a changed, /b deleted; compacted up to 2. Then /c as 6."""
    path = tmp_path / "registry.db"
    storage = await SQLiteStorage.open(path)
    await storage.create("/a", b"1")
    await storage.create("/b", b"1")
    await storage.compact(2)
    await storage.update("/a", b"2", expected=2)
    await storage.delete("/b", expected=3)
    await storage.create("/c", b"1")
    await storage.close()
    return path


@pytest.mark.parametrize("full", [False, True])
def test_a_good_file_has_no_problems(database: Path, *, full: bool) -> None:
    assert found(database, full=full) == []


@pytest.mark.parametrize("compacted", [2, 3, 4, 5, 6])
async def test_a_file_is_good_however_far_it_is_compacted(database: Path, compacted: int) -> None:
    storage = await SQLiteStorage.open(database)
    await storage.compact(compacted)
    await storage.close()
    assert found(database, full=True) == []


async def test_a_file_can_be_checked_while_it_is_served(sqlite: SQLiteStorage, tmp_path: Path) -> None:
    await sqlite.create("/a", b"1")
    writing = asyncio.create_task(_write_on(sqlite))
    for _ in range(20):
        assert await asyncio.to_thread(found, tmp_path / "registry.db", full=True) == []
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing


async def _write_on(storage: SQLiteStorage) -> None:
    revision = await storage.create("/busy", b"0")
    while True:
        revision = await storage.update("/busy", b"1", expected=revision)
        await storage.compact(revision - 3)


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        (
            "UPDATE log SET prev_revision = 3 WHERE revision = 4",
            "revision 4 of /a: it says that it supersedes revision 3, but it supersedes revision 2",
        ),
        (
            "UPDATE log SET prev_revision = 2 WHERE revision = 6",
            "revision 6 of /c: it says that it supersedes revision 2, but it supersedes nothing",
        ),
        (
            "DELETE FROM log WHERE revision = 2",
            "revision 4 of /a: it says that it supersedes revision 2, but it supersedes nothing",
        ),
        (
            "INSERT INTO log VALUES (7, '/d', 0, NULL)",
            "revision 7 of /d: it deletes a key that did not exist",
        ),
        (
            "INSERT INTO log VALUES (1, '/d', 0, x'00')",
            "revision 1 of /d: revisions begin behind 1",
        ),
        ("INSERT INTO log VALUES (7, 'd', 0, x'00')", "revision 7: 'd' is no key"),
        ("INSERT INTO log VALUES (7, x'2f64', 0, x'00')", "revision 7: b'/d' is no key"),
        ("UPDATE log SET value = 'text' WHERE revision = 6", "revision 6 of /c: its value is not bytes"),
        (
            "UPDATE meta SET value = 9 WHERE name = 'swept'",
            "rows are removed up to revision 9, beyond the compacted revision 2",
        ),
    ],
)
def test_what_cannot_be_is_told(database: Path, statement: str, problem: str) -> None:
    change(database, statement)
    assert found(database)[0] == problem


async def test_rows_that_compaction_should_have_removed_are_told(database: Path) -> None:
    storage = await SQLiteStorage.open(database)
    await storage.compact(6)
    await storage.close()
    change(database, "INSERT INTO log VALUES (2, '/a', 0, x'00')", "INSERT INTO log VALUES (5, '/b', 3, NULL)")
    assert found(database) == [
        "revision 4 of /a: compaction up to revision 6 has left over revision 2 too",
        "revision 5 of /b: compaction up to revision 6 has left over this deletion",
    ]


def test_every_value_is_looked_at_and_each_problem_is_one_more(database: Path) -> None:
    def suspicious(key: str, value: bytes) -> str:
        return f"{key} is {value.decode()}"

    told = list(integrity.problems(database, full=False, value_problem=suspicious, progress=ignore))
    assert told == [
        "revision 2 of /a: /a is 1",
        "revision 3 of /b: /b is 1",
        "revision 4 of /a: /a is 2",
        "revision 6 of /c: /c is 1",
    ]


def test_a_key_that_is_no_text_is_told_and_does_not_end_the_check(database: Path) -> None:
    change(
        database,
        "INSERT INTO log VALUES (7, CAST(x'2fff' AS TEXT), 0, x'00')",
        "INSERT INTO log VALUES (8, 'd', 0, x'00')",
    )
    assert found(database) == ["revision 8: 'd' is no key"]


def test_what_sqlite_finds_is_told(database: Path) -> None:
    with database.open("r+b") as file:
        file.seek(PAGE_BYTES + 7)  # how many bytes in the middle of the page are fragments
        file.write(b"\x09")
    (told,) = found(database)
    assert told.startswith("Fragmentation of ")
    assert told.endswith(" reported as 9 on page 2")


def test_a_check_that_gets_no_further_says_so(database: Path) -> None:
    overwrite_a_page(database)
    assert found(database)[-1] == "the file cannot be read any further: database disk image is malformed"


def test_whoever_meets_damage_is_told_how_to_look_closer_and_what_to_do(database: Path) -> None:
    overwrite_a_page(database)
    with pytest.raises(StorageUnavailable, match="the file is damaged") as refused:
        stats.measure(database)
    assert "`storage check" in refused.value.remedy
    assert "`storage restore" in refused.value.remedy


def test_only_a_full_check_looks_into_indexes(database: Path) -> None:
    change(database, "CREATE INDEX extra ON log (key)")
    change(
        database,
        "PRAGMA writable_schema = 1",
        "UPDATE sqlite_schema SET sql = 'CREATE INDEX extra ON log (prev_revision)' WHERE name = 'extra'",
    )
    assert found(database) == []
    assert "missing from index extra" in found(database, full=True)[0]


def test_progress_is_told(database: Path) -> None:
    told: list[tuple[int, int]] = []
    list(
        integrity.problems(
            database, full=False, value_problem=no_problem, progress=lambda done, total: told.append((done, total))
        )
    )
    assert told == [(0, 5)]


def test_what_cannot_be_read_is_no_problem_of_the_file(tmp_path: Path) -> None:
    with pytest.raises(StorageUnavailable, match="no database"):
        found(tmp_path / "registry.db")


def test_a_file_that_is_no_database_is_a_problem(tmp_path: Path) -> None:
    path = tmp_path / "registry.db"
    path.write_bytes(b"this is a text and no database" * 100)
    assert found(path) == ["the file cannot be read any further: file is not a database"]


# At the start of a server


def must_not_report(damage: str) -> None:
    raise AssertionError(f"reported: {damage!r}")


def test_a_small_file_is_checked_at_once(database: Path) -> None:
    inspect(database)
    check_at_start(database, report=must_not_report)()
    overwrite_a_page(database)
    with pytest.raises(StorageUnavailable, match="is damaged") as refused:
        inspect(database)
    assert "`storage restore FILE" in refused.value.remedy


@pytest.mark.parametrize("damaged", [False, True])
def test_a_large_file_is_checked_in_the_background(
    database: Path, monkeypatch: pytest.MonkeyPatch, *, damaged: bool
) -> None:
    monkeypatch.setattr(integrity, "LARGE_FILE", 1)
    monkeypatch.setattr(integrity, "PAUSE_SECONDS", 0.0)
    if damaged:
        overwrite_a_page(database)
    told: list[str] = []
    done = threading.Event()

    def report(damage: str) -> None:
        told.append(damage)
        done.set()

    stop = check_at_start(database, report=report)
    assert done.wait(30)
    stop()
    stop()
    assert [text != "" for text in told] == [damaged]
    assert all(f"{database}: the file is damaged" in text for text in told if text)


def test_a_check_in_the_background_can_be_ended(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = threading.Event()

    def endless(connection: sqlite3.Connection) -> list[str]:
        begun.set()
        connection.execute("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n")
        raise AssertionError("it has an end")

    monkeypatch.setattr(integrity, "LARGE_FILE", 1)
    monkeypatch.setattr(integrity, "PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(integrity, "engine_problems", endless)
    stop = check_at_start(database, report=must_not_report)
    assert begun.wait(30)
    stopping = threading.Thread(target=stop, daemon=True)
    stopping.start()
    stopping.join(30)
    assert not stopping.is_alive()


def test_a_check_that_waits_for_the_server_to_get_ready_can_be_ended(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(integrity, "LARGE_FILE", 1)
    monkeypatch.setattr(integrity, "PAUSE_SECONDS", 3600.0)
    overwrite_a_page(database)
    check_at_start(database, report=must_not_report)()


async def test_a_damaged_file_is_not_served(tmp_path: Path) -> None:
    path = tmp_path / "registry.db"
    storage = await SQLiteStorage.open(path)
    for number in range(200):
        await storage.create(f"/{number}", b"x" * 2000)
    await storage.close()
    damaged = bytearray(path.read_bytes())
    damaged[40_000:44_000] = b"\xff" * 4000
    path.write_bytes(damaged)
    with pytest.raises(StorageUnavailable, match="damaged"):
        await SQLiteStorage.open(path)


async def test_damage_that_is_found_while_serving_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def check(_: Path, *, report: Callable[[str], None]) -> Callable[[], None]:
        report("page 7 is damaged")
        return lambda: None

    monkeypatch.setattr("clusterregistry.apiserver.storage.sqlite.store.check_at_start", check)
    storage = await SQLiteStorage.open(tmp_path / "registry.db")
    await asyncio.sleep(0)
    assert storage.problem() == "page 7 is damaged"
    await storage.close()
