"""What SQLite's errors mean to an operator."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from clusterregistry.apimachinery import operator_error
from clusterregistry.apiserver.storage.errors import StorageUnavailable

_LOCKED = ("another program keeps the file locked", "end that program's transaction")
_NO_ROOM = 64 * 1024
"""Bytes. SQLite reports a lack of room for its -shm file, of 32 KiB, as an error of the disk."""

_FULL = ("the disk is full", "free some space on that disk: writes then work again")
_CANNOT_OPEN = ("it cannot be opened", "check that its directory exists and is writable for this user")
RESTORE = "restore a backup: `storage restore FILE`; `storage check --full` tells more"
REPLACE = (
    "restore a backup: `storage restore FILE` with the same --data-dir keeps this file beside it. "
    "If this is the wrong place, name the right one"
)

_EXPLANATIONS = {
    sqlite3.SQLITE_FULL: _FULL,
    sqlite3.SQLITE_READONLY: ("the file or its directory is read-only", "make both writable for this user"),
    sqlite3.SQLITE_BUSY: _LOCKED,
    sqlite3.SQLITE_LOCKED: _LOCKED,
    sqlite3.SQLITE_CANTOPEN: _CANNOT_OPEN,
    sqlite3.SQLITE_PERM: ("access is denied", "check the permissions of the file and its directory"),
    sqlite3.SQLITE_IOERR: ("the disk reports an error", "check the disk and the kernel's log"),
    sqlite3.SQLITE_CORRUPT: ("the file is damaged", RESTORE),
    sqlite3.SQLITE_NOTADB: (
        "the file is not an SQLite database: it is damaged, or something else was written there",
        REPLACE,
    ),
}
"""By SQLite's code: what it means, and what an operator can do."""

_DOUBTFUL = {sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOMEM}
"""Errors that can come after a transaction is in the write-ahead log, such as that of the sync. A full disk is none of
them: the frame that makes a transaction complete is the last one, and was not written."""


def unavailable(path: Path, error: Exception) -> StorageUnavailable:
    """The error to raise in place of an engine's, with what to do about it."""
    if isinstance(error, OSError) and operator_error.is_known(error):
        message, remedy = operator_error.explain(path, error, action="opened")
        return StorageUnavailable(message, remedy=remedy)
    explanation, remedy = _explained(path, error)
    details = f"{explanation} ({error})" if explanation else str(error)
    return StorageUnavailable(f"{path}: {details}", remedy=remedy)


def leaves_doubt(error: Exception) -> bool:
    """Whether a commit that ended with this error may be found in the log after a crash."""
    return primary_code(error) in _DOUBTFUL


def primary_code(error: Exception) -> int:
    """SQLite's code without its details; 0 for what is no error of SQLite."""
    # Python's own complaints, such as that of a closed connection, have no code.
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def _explained(path: Path, error: Exception) -> tuple[str, str]:
    if isinstance(error, OSError):
        return _CANNOT_OPEN
    code = primary_code(error)
    if code == sqlite3.SQLITE_IOERR and _is_full(path):
        return _FULL
    return _EXPLANATIONS.get(code, ("", ""))


def _is_full(path: Path) -> bool:
    try:
        room = os.statvfs(path.parent)
    except OSError:
        return False
    return room.f_bavail * room.f_frsize < _NO_ROOM


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Raises StorageUnavailable for whatever goes wrong with the file inside."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise unavailable(path, error) from error
