"""Restores a backup in place of a database that no server uses.

The revision of the restored store jumps ahead, and everything before counts as compacted: a client that watched the
lost store gets 410 and lists again. Otherwise it could wait at a revision that the restored store reaches with other
changes, and miss them.
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

Check = Callable[[Path], Iterator[str]]
"""Returns the problems of a database: ``integrity.problems``."""

_ANOTHER = "nothing was changed; use another backup. `storage check FILE` tells more about this one"
_NO_BACKUP = "nothing was changed; name a file that `storage backup` has made"
_REMEDIES = {RESTORE: _ANOTHER, DAMAGED: _ANOTHER, REPLACE: _NO_BACKUP}
"""Replaces the remedy "restore a backup", which does not help during a restore."""

REVISION_JUMP = 1_000_000
"""More revisions than were written since the backup was taken, and next to nothing of 64 bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """The result of a restore. ``kept`` is the path of the replaced database, if there was one."""

    kept: Path | None
    revision: int


def restore(backup: Path, path: Path, *, now: datetime, check: Check, progress: Progress) -> Restored:
    """Replaces a database with a backup; the replaced one is kept under a name with the time.

    Raises StorageUnavailable and changes nothing if a server uses the database or the backup is damaged.
    """
    with _restore_remedies():
        _check_backup(backup, path)
    with translated(path):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = _lock(path)
    try:
        with _restore_remedies(), complete_copy(backup, path, progress=progress) as copy:
            if problem := next(check(copy), ""):
                raise StorageUnavailable(f"{backup} is damaged: {problem}", remedy=_ANOTHER)
            with translated(path):
                revision = _jump_ahead(copy, beyond=_newest(path))
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


def _lock(path: Path) -> FileLock:
    try:
        lock = FileLock(path)
    except StorageUnavailable as error:
        raise StorageUnavailable(
            str(error), remedy="stop that server, restore, and start it again; nothing was changed"
        ) from None
    lock.write_pid()
    return lock


@contextmanager
def _restore_remedies() -> Iterator[None]:
    """Replaces remedies that advise to restore a backup."""
    try:
        yield
    except StorageUnavailable as error:
        if error.remedy not in _REMEDIES:
            raise
        raise StorageUnavailable(str(error), remedy=_REMEDIES[error.remedy]) from error


def _newest(path: Path) -> int:
    """The newest revision of the database to replace; 0 if there is none or it cannot be read."""
    with suppress(StorageError, sqlite3.Error, OSError), closing(schema.connect_reader(path)) as connection:
        return schema.newest_revision(connection)
    return 0


def _jump_ahead(copy: Path, *, beyond: int) -> int:
    with closing(schema.connect(copy)) as connection:
        revision = max(schema.newest_revision(connection), beyond) + REVISION_JUMP
        connection.execute("UPDATE meta SET value = ? WHERE name = 'compacted'", (revision,))
    return revision


def _give_to_owner(path: Path, copy: Path) -> None:
    """Gives the files to the owner of the database: root may restore for a server that runs as another user."""
    if os.geteuid() == 0:
        owner = (path if path.exists() else path.parent).stat()
        for file in (copy, Path(f"{path}.lock")):
            os.chown(file, owner.st_uid, owner.st_gid)


def _set_aside(path: Path, now: datetime) -> Path | None:
    """Gives the database, if there is one, a second name: until it is replaced, a crash leaves it under both.

    The write-ahead log that a crashed server has left is kept as it is: the file may be damaged, and SQLite would
    discard a log that it cannot use.
    """
    kept = Path(f"{path}.replaced-{now:%Y%m%dT%H%M%SZ}")
    held = [suffix for suffix in ("", "-wal") if schema.file_size(Path(f"{path}{suffix}"))]
    for suffix in held:
        os.link(f"{path}{suffix}", f"{kept}{suffix}")
    sync_directory(path.parent)
    # SQLite would apply a remaining log to the restored database.
    for suffix in ("-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
    return kept if "" in held else None
