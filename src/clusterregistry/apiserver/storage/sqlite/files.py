"""The files of a database: locked for one process, checked before they are opened, compared with their names later."""

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
    """A claim on a database file, held from construction to ``release``."""

    @staticmethod
    def exists(database: Path) -> bool:
        """Whether there ever was a claim."""
        return Path(f"{database}.lock").exists()

    def __init__(self, database: Path) -> None:
        self._descriptor = os.open(f"{database}.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            self._claim(database)
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        os.close(self._descriptor)

    def _claim(self, database: Path) -> None:
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(self._descriptor, 20, 0).decode(errors="replace").strip() or "unknown"
            raise StorageUnavailable(
                f"{database} is in use by another server process (pid {holder}): an SQLite file serves one process",
                remedy="stop that process, or give this one a --data-dir of its own; nothing was changed",
            ) from None

    def sign(self) -> None:
        """Says who has the claim: once it is certain that the file will be used, for else nothing is to be touched."""
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, b"%d\n" % os.getpid(), 0)


_LOG_HEADER_BYTES = 32
"""Of a write-ahead log. One that is not longer holds nothing."""


def behind_link(path: Path) -> Path:
    """The file that a link stands for, or the path itself. Raises StorageUnavailable for a log beside a link.

    SQLite has its log beside the file. One beside the link is from before the file was moved, and has its newest data.
    """
    if not path.is_symlink():
        return path
    file, log = path.resolve(), Path(f"{path}-wal")
    if file != path and _size(log) > _LOG_HEADER_BYTES:
        raise StorageUnavailable(
            f"{path} is a link to {file}, but the write-ahead log {log} beside the link holds data",
            remedy=(
                f"nothing was changed. If the file was moved without its log, move the log to {file}-wal. Otherwise "
                "move it away"
            ),
        )
    return file


def inspect(path: Path) -> None:
    """Raises StorageUnavailable when a server must not open the file. Blocks; not for the loop's thread.

    A small file is also looked through for damage. For a large one that is done while it is served.
    """
    with translated(path):
        if path.exists() and not path.is_file():
            raise StorageUnavailable(
                f"{path} is no regular file, but a directory, a pipe or a device",
                remedy="nothing was changed; move it away, or name another --data-dir",
            )
        check_log_has_database(path)
        # A crash while the file was made leaves a journal: SQLite undoes that, and has then seen nothing of ours.
        if not _size(path) or _size(Path(f"{path}-journal")):
            return
        with _untouched(path) as connection:
            _inspect(connection, path)


def check_log_has_database(path: Path) -> None:
    """Raises StorageUnavailable for a log with content beside an empty database, or none: SQLite would remove it."""
    log = Path(f"{path}-wal")
    if _size(path) or _size(log) <= _LOG_HEADER_BYTES:
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
    """A connection that sees all that is in the database and its log, and leaves nothing behind."""
    if not _size(Path(f"{path}-wal")):
        with closing(schema.connect_immutable(path)) as connection:
            yield connection
        return
    import tempfile  # noqa: PLC0415 - only after a crash

    # Beside second names of both SQLite can make its index of the log, and what it makes or removes is there.
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
    except OSError:  # a file system without second names: then the index is made beside the file itself
        return path
    return linked


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return 0


_REMEDY = (
    "do not stop the server yet: it still has the data. If the file was moved, move it back. Otherwise write a backup "
    "(`storage backup FILE`), stop the server, restore that backup (`storage restore "
    "FILE`) and start the server"
)


class ServedFiles:
    """The database and its write-ahead log, as they are when this is made: after both were opened."""

    def __init__(self, path: Path) -> None:
        self.path = path
        # By their names alone: to open and close a file would give up all locks that SQLite has on it.
        self._files = [(name, _identity(os.lstat(name))) for name in (str(path), f"{path}-wal")]

    def check(self) -> None:
        """Raises StorageUnavailable when one of the files is not the one that is open. Takes some microseconds."""
        for name, identity in self._files:
            if _present_identity(name) != identity:
                raise StorageUnavailable(f"{name} was removed or replaced while the server runs", remedy=_REMEDY)

    def problem(self) -> str:
        """What ``check`` raises, for a person; empty when all is well."""
        try:
            self.check()
        except StorageUnavailable as error:
            return f"{error}; {error.remedy}"
        return ""


def _present_identity(name: str) -> tuple[int, int] | None:
    try:
        # Not what a link stands for: the next server would look for the log beside that.
        return _identity(os.lstat(name))
    except OSError:
        return None


def _identity(found: os.stat_result) -> tuple[int, int]:
    """Device and inode. No other file gets them as long as one has this file open."""
    return found.st_dev, found.st_ino
