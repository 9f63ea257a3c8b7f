"""A backup in the place of a database that no server uses.

The revisions of the restored store leap ahead, and all before counts as compacted: a program that watched the store
that was lost is told that its revision is gone and lists anew. Without that it could wait at a revision that the
restored store reaches with other changes, and miss them.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from clusterregistry.apiserver.storage.errors import StorageError, StorageUnavailable
from clusterregistry.apiserver.storage.sqlite import schema
from clusterregistry.apiserver.storage.sqlite.backup import DAMAGED, complete_copy, put_in_place, sync_directory
from clusterregistry.apiserver.storage.sqlite.errors import REPLACE, RESTORE, translated
from clusterregistry.apiserver.storage.sqlite.files import FileLock
from clusterregistry.apiserver.storage.sqlite.integrity import Progress
from clusterregistry.apiserver.storage.sqlite.stats import newest_revision

Check = Callable[[Path], Iterator[str]]
"""What is wrong with a database, as ``checking.problems`` tells it."""

_ANOTHER = "nothing was changed; use another backup. `storage check FILE` tells more about this one"
_NO_BACKUP = "nothing was changed; name a file that `storage backup` has made"
_INSTEAD = {RESTORE: _ANOTHER, DAMAGED: _ANOTHER, REPLACE: _NO_BACKUP}
"""What is advised for a damaged database is to restore a backup; that does not help during a restore."""

LEAP = 1_000_000
"""Revisions. More than anyone has written since the backup was taken, and next to nothing of 64 bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """What a restore did. ``kept`` is where the database is that was there before, if there was one."""

    kept: Path | None
    revision: int


def restore(backup: Path, path: Path, *, now: datetime, check: Check, progress: Progress) -> Restored:
    """Puts a backup in the place of a database; the one that was there is kept under a name with the time.

    Raises StorageUnavailable, and then changes nothing: when a server uses the database, or the backup is not whole.
    """
    with _no_circle():
        _check_backup(backup, path)
    with translated(path):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = _claim(path)
    try:
        with _no_circle(), complete_copy(backup, path, progress=progress) as copy:
            _check_contents(backup, next(check(copy), ""))
            with translated(path):
                revision = _leap(copy, beyond=_newest(path))
                _give_to_owner(path, copy)
                kept = _set_aside(path, now)
                put_in_place(copy, path)
    finally:
        lock.release()
    return Restored(kept=kept, revision=revision)


def _check_backup(backup: Path, path: Path) -> None:
    with translated(backup), closing(schema.connect_reader(backup)):
        if path.exists() and backup.samefile(path):
            raise StorageUnavailable(f"{backup} is the database itself", remedy="name a backup of it")


def _claim(path: Path) -> FileLock:
    try:
        lock = FileLock(path)
    except StorageUnavailable as error:
        raise StorageUnavailable(
            str(error), remedy="stop that server, restore, and start it again; nothing was changed"
        ) from None
    lock.sign()
    return lock


def _check_contents(backup: Path, found: str) -> None:
    if found:
        raise StorageUnavailable(
            f"{backup} is damaged: {found}",
            remedy=_ANOTHER,
        )


@contextmanager
def _no_circle() -> Iterator[None]:
    """Replaces advice to restore a backup."""
    try:
        yield
    except StorageUnavailable as error:
        if error.remedy not in _INSTEAD:
            raise
        raise StorageUnavailable(str(error), remedy=_INSTEAD[error.remedy]) from error


def _newest(path: Path) -> int:
    """The newest revision of the database that is to be replaced; 0 when there is none that could be asked."""
    with suppress(StorageError, sqlite3.Error, OSError), closing(schema.connect_reader(path)) as connection:
        return newest_revision(connection)
    return 0


def _leap(copy: Path, *, beyond: int) -> int:
    with closing(schema.connect(copy)) as connection:
        revision = max(newest_revision(connection), beyond) + LEAP
        connection.execute("UPDATE meta SET value = ? WHERE name = 'compacted'", (revision,))
    return revision


def _give_to_owner(path: Path, copy: Path) -> None:
    """An administrator may restore for a server that runs as another user: it must be able to open its files."""
    if os.geteuid() == 0:
        owner = (path if path.exists() else path.parent).stat()
        for file in (copy, Path(f"{path}.lock")):
            os.chown(file, owner.st_uid, owner.st_gid)


def _set_aside(path: Path, now: datetime) -> Path | None:
    """Gives the database, if there is one, a second name: until it is replaced a crash leaves it under both.

    What a server that crashed has left in its write-ahead log comes along, as it is: the file may be damaged, and
    SQLite would throw away a log that it cannot make use of.
    """
    kept = Path(f"{path}.replaced-{now:%Y%m%dT%H%M%SZ}")
    held = [suffix for suffix in ("", "-wal") if _holds_something(Path(f"{path}{suffix}"))]
    for suffix in held:
        os.link(f"{path}{suffix}", f"{kept}{suffix}")
    sync_directory(path.parent)
    # A log that is left SQLite would take for that of the restored database, and play into it.
    for suffix in ("-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
    return kept if "" in held else None


def _holds_something(file: Path) -> bool:
    return file.exists() and file.stat().st_size > 0
