"""The file format: a log of all changes, and some numbers about it.

The log's only index is its primary key, so a write appends in one place. ``prev_revision`` links a row to the one it
supersedes: enough for history and compaction without an index on keys.

A server migrates a file of an older format step by step when it opens it. Readers accept every format up to this one as
it is. A newer format, or a file of another program, is refused.
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
"""In the file's header ("ClRg"): distinguishes it from the databases of other programs."""

FIRST_REVISION = 1
"""The revision of an empty store. A list must never return revision 0, which to clients means "any"."""

_BUSY_SECONDS = 5.0
_CHECKPOINT_PAGES = 100
"""Small, since a write that triggers a checkpoint waits for all of it (SQLite's default is 1000)."""

PAGE_BYTES = 8192
"""The page size of a new file. A page of SQLite's default size (4096) holds one object of 3 KB: a commit then writes
nearly twice as many pages, each with two calls. Larger pages make a single write more expensive."""

_TABLES = (
    # The value is last: a scan of the keys then does not read the overflow pages of large values.
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
    """A connection without implicit transactions. Any thread may use it, one at a time."""
    return sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)


def connect_reader(path: Path) -> sqlite3.Connection:
    """A read-only connection to a file of the registry, which a server may be writing.

    It creates no file. Raises StorageUnavailable if there is no database.
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
    """A read-only connection to any database. SQLite may create an index of the log beside it."""
    return _connect_to(f"{path.absolute().as_uri()}?mode=ro")


def connect_immutable(path: Path) -> sqlite3.Connection:
    """A connection to a file that no process changes, without its log. It creates no files."""
    return _connect_to(f"{path.absolute().as_uri()}?mode=ro&immutable=1")


def _connect_to(uri: str) -> sqlite3.Connection:
    return sqlite3.connect(uri, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False, uri=True)


def connect_writer(path: Path) -> sqlite3.Connection:
    """The connection that commits durably. Creates or migrates the file as needed."""
    is_new = not path.exists()
    # Created here and not by SQLite, for its mode, which the -wal and -shm files inherit.
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


def file_size(path: Path) -> int:
    """The size of a file in bytes; 0 if it does not exist."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _remove(path: Path) -> None:
    """Removes a new database that holds nothing yet."""
    for suffix in ("", "-journal", "-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)


def numbers(connection: sqlite3.Connection) -> dict[str, int]:
    """``version``, ``compacted`` (the oldest readable revision) and ``swept`` (up to which rows are removed)."""
    return dict(connection.execute("SELECT name, value FROM meta"))


def newest_revision(connection: sqlite3.Connection) -> int:
    """The newest revision. Compaction removes tombstones, so it may be recorded only as the compacted one."""
    (last,) = connection.execute("SELECT coalesce(max(revision), 0) FROM log").fetchone()
    return max(FIRST_REVISION, numbers(connection)["compacted"], int(last))


def probe(connection: sqlite3.Connection) -> None:
    """Changes a number without meaning, inside the caller's transaction, whose commit shows whether writes work."""
    # SQLite does not write a value that stays the same.
    connection.execute("INSERT INTO meta VALUES ('probes', 1) ON CONFLICT (name) DO UPDATE SET value = value + 1")


def identify(connection: sqlite3.Connection, path: Path) -> int:
    """The file's format. Raises StorageUnavailable for a file of another program or of a newer format."""
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
    """True if no server has ever opened this file, such as a backup.

    SQLite then needs no files beside it, which a read-only disk would refuse.
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
    numbers(connection)  # the first read creates the -shm file, and fails here if there is no space for it


def _make_durable(connection: sqlite3.Connection) -> None:
    """Writes what a crash left in the log to the database: a failed sync may be why it is only in the log.

    Another sync of the log would not be enough: after a failed sync the system considers its pages written.
    """
    try:
        connection.execute("PRAGMA wal_checkpoint(FULL)").fetchone()
    except sqlite3.Error as error:
        if primary_code(error) != sqlite3.SQLITE_FULL:  # with a full disk reads continue
            raise


def is_empty(connection: sqlite3.Connection) -> bool:
    """True if a database has no tables and belongs to no program."""
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    return not tables and _application(connection) == 0


def _is_ours(connection: sqlite3.Connection) -> bool:
    application = _application(connection)
    if application not in {0, APPLICATION_ID} or not _columns(connection, "meta") >= {"name", "value"}:
        return False
    # Format 1 had no application ID, and a file that was created from a dump has lost it.
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
    """Migrates in steps, each in its own transaction: after a crash the file has one format or the next."""
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
"""By format: the migration to the next one. A released step is never changed; a new format adds one."""
