"""The file format: a log of all changes, and a few numbers about it.

The log's only index is its primary key, so a write appends to one place. ``prev_revision`` links a row
to the one it supersedes: enough for history and compaction without an index on keys.
"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from clusterregistry.storage.errors import StorageUnavailable

VERSION = 1
FIRST_REVISION = 1
"""That of an empty store. A list must never answer revision 0, which clients take for "any"."""

_BUSY_SECONDS = 5.0
_CHECKPOINT_PAGES = 100
"""Small, since a write that meets a checkpoint waits for all of it (SQLite's default is 1000)."""

_TABLES = (
    # The value comes last: a scan over keys then need not read the overflow pages of large values.
    """CREATE TABLE log (
        revision INTEGER PRIMARY KEY,      -- of the whole store: each write makes one
        key TEXT NOT NULL,
        prev_revision INTEGER NOT NULL,    -- the row of this key that this one supersedes; 0: created
        value BLOB                         -- NULL: deleted
    )""",
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID",
)


def connect(path: Path) -> sqlite3.Connection:
    """A connection without implicit transactions. It may change threads, but serves one at a time."""
    return sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)


def connect_writer(path: Path) -> sqlite3.Connection:
    """The connection that commits durably, to a file of the right format that is made where there is none."""
    # Made here and not by SQLite for its mode, which the -wal and -shm files inherit.
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    connection = connect(path)
    try:
        _prepare(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def numbers(connection: sqlite3.Connection) -> dict[str, int]:
    """``version``, ``compacted`` (the oldest readable revision) and ``swept`` (how far rows are removed)."""
    return dict(connection.execute("SELECT name, value FROM meta"))


def probe(connection: sqlite3.Connection) -> None:
    """Writes something that changes nothing, inside the caller's transaction: its commit tells if writes work."""
    connection.execute("UPDATE meta SET value = value WHERE name = 'version'")


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    _check_version(connection, path)
    (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
    if mode != "wal":
        raise StorageUnavailable(f"{path}: its file system cannot hold a write-ahead log; use a local disk")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")


def _check_version(connection: sqlite3.Connection, path: Path) -> None:
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    if not tables:
        _create(connection)
    elif not {"log", "meta"} <= tables or not {"version", "compacted", "swept"} <= numbers(connection).keys():
        raise StorageUnavailable(f"{path} is another program's SQLite database; name another file")
    found = numbers(connection)["version"]
    if found > VERSION:
        raise StorageUnavailable(
            f"{path} has format {found} of a newer version of this program; this one reads up to format {VERSION}. "
            "Start that newer version, or restore a backup from before the upgrade"
        )


def _create(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")
    for table in _TABLES:
        connection.execute(table)
    initial = {"version": VERSION, "compacted": 0, "swept": 0}
    connection.executemany("INSERT INTO meta (name, value) VALUES (?, ?)", initial.items())
    connection.execute("COMMIT")
