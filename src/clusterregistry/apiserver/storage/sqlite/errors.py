"""Translates errors of SQLite and of the file system into StorageUnavailable, with a remedy."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from clusterregistry.apimachinery import operator_error
from clusterregistry.apiserver.storage.errors import StorageUnavailable

_LOCKED = ("another program keeps the file locked", "end that program's transaction")
_LOW_SPACE = 64 * 1024
"""Bytes. SQLite reports a lack of space for its -shm file, of 32 KiB, as an I/O error."""

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
"""By SQLite's code: the explanation and the remedy for an operator."""

_AFTER_WRITE = {sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOMEM}
"""Errors that can occur after a transaction is in the write-ahead log, such as that of the sync. A full disk is not
among them: the frame that completes a transaction is the last one, and was not written."""


def unavailable(path: Path, error: Exception) -> StorageUnavailable:
    """The error to raise instead, with a remedy."""
    if isinstance(error, OSError) and operator_error.is_known(error):
        message, remedy = operator_error.explain(path, error, action="opened")
        return StorageUnavailable(message, remedy=remedy)
    explanation, remedy = _explained(path, error)
    details = f"{explanation} ({error})" if explanation else str(error)
    return StorageUnavailable(f"{path}: {details}", remedy=remedy)


def leaves_outcome_unknown(error: Exception) -> bool:
    """True if a commit that failed with this error may be in the log after a crash."""
    return primary_code(error) in _AFTER_WRITE


def primary_code(error: Exception) -> int:
    """SQLite's primary error code; 0 if it is not an error of SQLite."""
    # Errors of the sqlite3 module itself, such as for a closed connection, have no code.
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
        space = os.statvfs(path.parent)
    except OSError:
        return False
    return space.f_bavail * space.f_frsize < _LOW_SPACE


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Translates errors of SQLite and of the file system inside into StorageUnavailable."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise unavailable(path, error) from error
