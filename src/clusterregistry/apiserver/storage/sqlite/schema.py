"""The file format: a log of all changes, and a few numbers about it.

The log's only index is its primary key, so a write appends to one place. ``prev_revision`` links a row
to the one it supersedes: enough for history and compaction without an index on keys.

A file of an older format becomes one of this format when a server opens it, step by step. Who only
reads takes every format up to this one as it is. A newer one, or another program's file, is refused.
"""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Callable, Mapping
from pathlib import Path

from clusterregistry.apiserver.storage.errors import StorageUnavailable
from clusterregistry.apiserver.storage.sqlite.errors import primary_code

_log = logging.getLogger(__name__)

VERSION = 2
APPLICATION_ID = 0x436C5267
"""Stands in the file's header ("ClRg"), so that nobody takes another program's tables for ours."""

FIRST_REVISION = 1
"""That of an empty store. A list must never answer revision 0, which clients take for "any"."""

_BUSY_SECONDS = 5.0
_CHECKPOINT_PAGES = 100
"""Small, since a write that meets a checkpoint waits for all of it (SQLite's default is 1000)."""

PAGE_BYTES = 8192
"""Of a new file. A page of SQLite's default size (4096) holds one object of 3 KB: a commit then writes nearly twice as
many of them, each with two calls. Larger ones make a lone write dearer."""

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
_LOG_COLUMNS = {"revision", "key", "prev_revision", "value"}
_NUMBERS = {"version": VERSION, "compacted": 0, "swept": 0}


def connect(path: Path) -> sqlite3.Connection:
    """A connection without implicit transactions. It may change threads, but serves one at a time."""
    return sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)


def connect_reader(path: Path) -> sqlite3.Connection:
    """A connection to a file of ours that cannot change it; a server may be writing to it meanwhile.

    No file is made: who asks about a database that is not there gets StorageUnavailable.
    """
    if not path.is_file():
        raise _missing(path)
    if not path.stat().st_size:  # SQLite would remove the log of an empty database
        raise StorageUnavailable(f"{path} is empty", remedy="nothing was changed; name another file")
    connection = connect_immutable(path) if _is_at_rest(path) else connect_read_only(path)
    try:
        identify(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def connect_read_only(path: Path) -> sqlite3.Connection:
    """A connection that changes nothing in a database, whatever it is. It may make an index of the log beside it."""
    return _connect_to(f"{path.absolute().as_uri()}?mode=ro")


def connect_immutable(path: Path) -> sqlite3.Connection:
    """A connection to a file that nothing changes meanwhile, as it is without its log. It makes no files."""
    return _connect_to(f"{path.absolute().as_uri()}?mode=ro&immutable=1")


def _connect_to(uri: str) -> sqlite3.Connection:
    return sqlite3.connect(uri, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False, uri=True)


def connect_writer(path: Path) -> sqlite3.Connection:
    """The connection that commits durably, to a file of the right format that is made where there is none."""
    is_new = not path.exists()
    # Made here and not by SQLite for its mode, which the -wal and -shm files inherit.
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    connection = connect(path)
    try:
        _prepare(connection, path)
    except BaseException:
        connection.close()
        if is_new:  # such as on a full disk
            _remove(path)
        raise
    return connection


def _remove(path: Path) -> None:
    """Removes a database that was begun and holds nothing yet."""
    for suffix in ("", "-journal", "-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)


def numbers(connection: sqlite3.Connection) -> dict[str, int]:
    """``version``, ``compacted`` (the oldest readable revision) and ``swept`` (how far rows are removed)."""
    return dict(connection.execute("SELECT name, value FROM meta"))


def probe(connection: sqlite3.Connection) -> None:
    """Changes a number that means nothing, inside the caller's transaction: its commit tells if writes work."""
    # One that stays the same SQLite would not write.
    connection.execute("INSERT INTO meta VALUES ('probes', 1) ON CONFLICT (name) DO UPDATE SET value = value + 1")


def identify(connection: sqlite3.Connection, path: Path) -> int:
    """The file's format. Raises StorageUnavailable when it is not one of ours, or a newer one."""
    if is_empty(connection):
        raise StorageUnavailable(
            f"{path} is an SQLite database without any tables", remedy="nothing was changed; name another file"
        )
    if not _is_ours(connection):
        raise StorageUnavailable(
            f"{path} is another program's SQLite database; name another file",
            remedy="nothing was changed; move that file away, or name the right one",
        )
    found = numbers(connection)["version"]
    if found > VERSION:
        raise StorageUnavailable(
            f"{path} has format {found} of a newer version of this program; this one reads up to format {VERSION}. "
            "Start that newer version, or restore a backup from before the upgrade",
            remedy="nothing was changed; `storage restore FILE` puts a backup in its place",
        )
    return found


def _is_at_rest(path: Path) -> bool:
    """Whether no server has ever had this very file, such as a backup.

    SQLite then need not make files beside it, which a read-only disk would not take.
    """
    return not any(Path(f"{path}{suffix}").exists() for suffix in ("-wal", ".lock"))


def _missing(path: Path) -> StorageUnavailable:
    if path.is_dir():
        return StorageUnavailable(f"{path} is a directory, not a database", remedy="name a file in it")
    return StorageUnavailable(
        f"there is no database at {path}",
        remedy="name the file, or with --data-dir the directory that the server uses",
    )


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    if is_empty(connection):
        _create(connection)
    found = identify(connection, path)
    (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
    if mode != "wal":
        raise StorageUnavailable(f"{path}: its file system cannot hold a write-ahead log; use a local disk")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
    _make_durable(connection)
    _migrate(connection, path, found)
    numbers(connection)  # the first read makes the -shm file: where there is no room for it, that is found out here


def _make_durable(connection: sqlite3.Connection) -> None:
    """Has the disk take what a crash left in the log: a sync that failed before it may be why it is only there.

    Syncing the log once more would not do. After a failed sync the system takes its pages for written.
    """
    try:
        connection.execute("PRAGMA wal_checkpoint(FULL)").fetchone()
    except sqlite3.Error as error:
        if primary_code(error) != sqlite3.SQLITE_FULL:  # reads are to go on when the disk is full
            raise


def is_empty(connection: sqlite3.Connection) -> bool:
    """Whether a database is nobody's yet."""
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    return not tables and _application(connection) == 0


def _is_ours(connection: sqlite3.Connection) -> bool:
    application = _application(connection)
    if application not in {0, APPLICATION_ID} or not _columns(connection, "meta") >= {"name", "value"}:
        return False
    # Format 1 had no mark, and a file that was made anew from a dump has lost it.
    if application == 0 and not _columns(connection, "log") >= _LOG_COLUMNS:
        return False
    found = numbers(connection)
    return all(isinstance(found.get(name), int) for name in _NUMBERS) and found["version"] > 0


def _application(connection: sqlite3.Connection) -> int:
    (found,) = connection.execute("PRAGMA application_id").fetchone()
    return int(found)


def _columns(connection: sqlite3.Connection, table: str) -> set[str]:
    return {name for (name,) in connection.execute("SELECT name FROM pragma_table_info(?)", (table,))}


def _create(connection: sqlite3.Connection) -> None:
    connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
    connection.execute("BEGIN IMMEDIATE")
    for table in _TABLES:
        connection.execute(table)
    connection.executemany("INSERT INTO meta (name, value) VALUES (?, ?)", _NUMBERS.items())
    _mark(connection)
    connection.execute("COMMIT")


def _migrate(connection: sqlite3.Connection, path: Path, found: int) -> None:
    """Each step is a transaction of its own: whatever ends it, the file has one format or the next."""
    for version in range(found, VERSION):
        connection.execute("BEGIN IMMEDIATE")
        _STEPS[version](connection)
        connection.execute("UPDATE meta SET value = ? WHERE name = 'version'", (version + 1,))
        connection.execute("COMMIT")
        _log.info("%s: changed from format %d to format %d", path, version, version + 1)


def _mark(connection: sqlite3.Connection) -> None:
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")


_STEPS: Mapping[int, Callable[[sqlite3.Connection], None]] = {
    1: _mark,
}
"""By format: what makes the next one of it. A step that was released is never changed; a new format adds one."""
