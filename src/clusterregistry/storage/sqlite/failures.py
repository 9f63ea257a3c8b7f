"""What SQLite's errors mean to an operator."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from clusterregistry.storage.errors import StorageUnavailable

_EXPLANATIONS = {
    sqlite3.SQLITE_FULL: "the disk is full; free some space, writes will then work again",
    sqlite3.SQLITE_READONLY: "the file or its directory is read-only; make both writable for this user",
    sqlite3.SQLITE_BUSY: "another program keeps the file locked; end that program's transaction",
    sqlite3.SQLITE_LOCKED: "another program keeps the file locked; end that program's transaction",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened; check that its directory exists and is writable for this user",
    sqlite3.SQLITE_PERM: "access is denied; check the permissions of the file and its directory",
    sqlite3.SQLITE_IOERR: "the disk reports an error; check the disk and the kernel's log",
    sqlite3.SQLITE_CORRUPT: "the file is damaged; restore it from a backup",
    sqlite3.SQLITE_NOTADB: "the file is not an SQLite database; move it away or name another one",
}
_PRIMARY_CODE = 0xFF


def unavailable(path: Path, error: Exception) -> StorageUnavailable:
    """The error to raise in place of an engine's, with what to do about it."""
    explanation = _explanation(error)
    details = f"{explanation} ({error})" if explanation else str(error)
    return StorageUnavailable(f"{path}: {details}")


def _explanation(error: Exception) -> str | None:
    if isinstance(error, OSError):
        return _EXPLANATIONS[sqlite3.SQLITE_CANTOPEN]
    # Python's own complaints, such as that of a closed connection, have no code.
    code = getattr(error, "sqlite_errorcode", 0)
    return _EXPLANATIONS.get(code & _PRIMARY_CODE)


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Raises StorageUnavailable for whatever goes wrong with the file inside."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise unavailable(path, error) from error
