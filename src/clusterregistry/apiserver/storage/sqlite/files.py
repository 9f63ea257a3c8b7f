"""The files of a database: the lock for one process, the inspection at a start, and the check for replaced files."""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from clusterregistry.apiserver.storage.errors import StorageUnavailable
from clusterregistry.apiserver.storage.sqlite import integrity, schema
from clusterregistry.apiserver.storage.sqlite.errors import RESTORE, translated


class FileLock:
    """The lock on a database file, held from construction to ``release``."""

    @staticmethod
    def exists(database: Path) -> bool:
        """True if the file was ever locked."""
        return Path(f"{database}.lock").exists()

    def __init__(self, database: Path) -> None:
        self._descriptor = os.open(f"{database}.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            self._acquire(database)
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        os.close(self._descriptor)

    def _acquire(self, database: Path) -> None:
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(self._descriptor, 20, 0).decode(errors="replace").strip() or "unknown"
            raise StorageUnavailable(
                f"{database} is in use by another server process (pid {holder}): an SQLite file serves one process",
                remedy="stop that process, or give this one a --data-dir of its own; nothing was changed",
            ) from None

    def write_pid(self) -> None:
        """Records the process ID, once it is certain that the file will be used: before, nothing may change."""
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, b"%d\n" % os.getpid(), 0)


_LOG_HEADER_BYTES = 32
"""The size of the header of a write-ahead log. A log that is not longer holds nothing."""


def resolve_link(path: Path) -> Path:
    """The target of a link, or the path itself. Raises StorageUnavailable for a log beside a link.

    SQLite keeps its log beside the file. A log beside the link is from before the file was moved, and holds its newest
    data.
    """
    if not path.is_symlink():
        return path
    file, log = path.resolve(), Path(f"{path}-wal")
    if file != path and schema.file_size(log) > _LOG_HEADER_BYTES:
        raise StorageUnavailable(
            f"{path} is a link to {file}, but the write-ahead log {log} beside the link holds data",
            remedy=(
                f"nothing was changed. If the file was moved without its log, move the log to {file}-wal. Otherwise "
                "move it away"
            ),
        )
    return file


def inspect(path: Path) -> None:
    """Raises StorageUnavailable if a server must not open the file. Blocks; not for the loop's thread.

    A small file is also checked for damage. A large one is checked while it is served.
    """
    with translated(path):
        if path.exists() and not path.is_file():
            raise StorageUnavailable(
                f"{path} is no regular file, but a directory, a pipe or a device",
                remedy="nothing was changed; move it away, or name another --data-dir",
            )
        check_log_has_database(path)
        # A crash while the file was created leaves a journal. SQLite rolls it back, and the file is empty again.
        if not schema.file_size(path) or schema.file_size(Path(f"{path}-journal")):
            return
        with _untouched(path) as connection:
            _inspect(connection, path)


def check_log_has_database(path: Path) -> None:
    """Raises StorageUnavailable for a log with content whose database is empty or missing: SQLite would remove it."""
    log = Path(f"{path}-wal")
    if schema.file_size(path) or schema.file_size(log) <= _LOG_HEADER_BYTES:
        return
    raise StorageUnavailable(
        f"{path} is {'empty' if path.exists() else 'missing'}, but its write-ahead log {log} holds data",
        remedy=(
            f"nothing was changed. Put {path.name} back beside its log, or restore a backup (`storage "
            "restore FILE`). To begin with an empty registry, move the log away"
        ),
    )


def _inspect(connection: sqlite3.Connection, path: Path) -> None:
    if schema.is_empty(connection):
        return
    schema.identify(connection, path)
    if not integrity.is_large(path) and (damage := integrity.damage_in(connection, path)):
        raise StorageUnavailable(damage, remedy=RESTORE)


@contextmanager
def _untouched(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection that sees the database with its log, and leaves no files behind."""
    if not schema.file_size(Path(f"{path}-wal")):
        with closing(schema.connect_immutable(path)) as connection:
            yield connection
        return
    import tempfile  # noqa: PLC0415 - only after a crash

    # SQLite creates its index of the log beside hard links of both files, and removes files only there.
    with (
        tempfile.TemporaryDirectory(prefix=f".{path.name}.", suffix=".inspection", dir=path.parent) as directory,
        closing(schema.connect_read_only(_linked(path, Path(directory)))) as connection,
    ):
        yield connection


def _linked(path: Path, directory: Path) -> Path:
    linked = directory / path.name
    try:
        for suffix in ("", "-wal"):
            os.link(f"{path}{suffix}", f"{linked}{suffix}")
    except OSError:  # a file system without hard links: the index is created beside the file itself
        return path
    return linked


_REMEDY = (
    "do not stop the server yet: it still has the data. If the file was moved, move it back. Otherwise write a backup "
    "(`storage backup FILE`), stop the server, restore that backup (`storage restore "
    "FILE`) and start the server"
)


class ServedFiles:
    """The identity of the database and its write-ahead log, taken after both were opened."""

    def __init__(self, path: Path) -> None:
        self.path = path
        # By name: opening and closing a file would release all locks that SQLite has on it.
        self._files = [(name, _identity(os.lstat(name))) for name in (str(path), f"{path}-wal")]

    def check(self) -> None:
        """Raises StorageUnavailable if a file was removed or replaced. Takes some microseconds."""
        for name, identity in self._files:
            if _current_identity(name) != identity:
                raise StorageUnavailable(f"{name} was removed or replaced while the server runs", remedy=_REMEDY)

    def problem(self) -> str:
        """The error of ``check`` for an operator; empty if there is none."""
        try:
            self.check()
        except StorageUnavailable as error:
            return f"{error}; {error.remedy}"
        return ""


def _current_identity(name: str) -> tuple[int, int] | None:
    try:
        # Not the target of a link: the next server would look for the log beside that.
        return _identity(os.lstat(name))
    except OSError:
        return None


def _identity(found: os.stat_result) -> tuple[int, int]:
    """Device and inode. No other file gets them while this file is open."""
    return found.st_dev, found.st_ino
