"""Backups of a file while a server writes to it, and the copies that a restore makes.

SQLite's backup API copies through a read-only connection with an open transaction, so a busy server neither waits for
the copy nor makes it start again. The copy has a temporary name beside its target, and gets the name of the target when
it is complete, checked and on disk: under that name there is never a partial database.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path

from clusterregistry.apiserver.storage.errors import StorageUnavailable
from clusterregistry.apiserver.storage.sqlite import schema
from clusterregistry.apiserver.storage.sqlite.errors import primary_code, translated, unavailable
from clusterregistry.apiserver.storage.sqlite.integrity import Progress, engine_problems

_PROCESSES = Path("/proc")
_DELETED = " (deleted)"
"""The suffix that Linux adds to the name of an open file that was removed or replaced."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenDatabase:
    """A database that was removed or replaced while a server has it open. That server refuses writes."""

    pid: int
    database: Path
    log: Path | None

    def copy_to(self, target: Path) -> None:
        """Copies the open files to new ones. Raises OSError."""
        shutil.copyfile(self.database, target)
        if self.log is not None:
            shutil.copyfile(self.log, f"{target}-wal")


def find_removed(path: Path) -> OpenDatabase | None:
    """The removed database that a server still has open in place of the file of this name. Linux only, otherwise None.

    None also if a server has the present file open, even if another process has an older one: only servers lock it.
    """
    name = str(path.resolve())
    servers = {pid: files for pid, files in _processes() if {f"{name}.lock", f"{name}.lock{_DELETED}"} & files.keys()}
    if any(name in files for files in servers.values()):
        return None
    for pid, files in servers.items():
        database = files.get(name + _DELETED)
        if database is not None:
            log = files.get(f"{name}-wal{_DELETED}") or files.get(f"{name}-wal")
            return OpenDatabase(pid=pid, database=database, log=log)
    return None


def _processes() -> Iterator[tuple[int, dict[str, Path]]]:
    """The running processes and their open files."""
    if _PROCESSES.is_dir():
        yield from ((int(entry.name), _open_files(entry)) for entry in _PROCESSES.iterdir() if entry.name.isdecimal())


def _open_files(process: Path) -> dict[str, Path]:
    """The open files of a process by name; none if the process has ended or belongs to another user."""
    found: dict[str, Path] = {}
    with suppress(OSError):
        for descriptor in (process / "fd").iterdir():
            with suppress(OSError):
                found[os.readlink(descriptor)] = descriptor  # noqa: PTH115 - a name as Linux gives it, not a path
    return found


_PAGES = 1000
"""Pages copied at a time, about 4 MB: in between, progress is reported and Ctrl-C is handled."""

_SOURCE_ERRORS = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
DAMAGED = "nothing was written; `storage check FILE` tells more. Use an older backup of it"

_BESIDE = ("", "-wal", "-shm", ".lock")
"""The suffixes of the files of a database."""


def back_up(path: Path, target: Path, *, overwrite: bool, progress: Progress) -> OpenDatabase | None:
    """Writes everything that is committed now into one file that only its owner can read.

    If the file was removed or replaced while a server has it open, the backup is of the server's open file, which is
    returned. Raises StorageUnavailable; then nothing is left behind, and an existing target stays as it is.
    """
    _check_target(path, target, overwrite=overwrite)
    removed = find_removed(path)
    with (
        _rescued(removed, beside=target) if removed else nullcontext(path) as source,
        complete_copy(source, target, progress=progress) as copy,
        translated(target),
    ):
        put_in_place(copy, target)
    return removed


@contextmanager
def _rescued(removed: OpenDatabase, *, beside: Path) -> Iterator[Path]:
    """A copy of a removed database in a temporary directory."""
    with translated(beside):
        directory = tempfile.TemporaryDirectory(prefix=f".{beside.name}.", suffix=".rescue", dir=beside.parent)
    with directory as name:
        rescued = Path(name) / "registry.db"
        with translated(beside):
            removed.copy_to(rescued)
        yield rescued


@contextmanager
def complete_copy(path: Path, target: Path, *, progress: Progress) -> Iterator[Path]:
    """A checked copy of a database beside its target. It is removed at the end, unless it was renamed."""
    with translated(target):
        descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".partial", dir=target.parent)
        os.close(descriptor)
    copy = Path(name)
    try:
        with _translated_for(source=path, target=target):
            found = _copy(path, copy, progress=progress)
        if found:
            raise StorageUnavailable(f"{path} is damaged: {found[0]}", remedy=DAMAGED)
        yield copy
    finally:
        for suffix in ("", "-wal", "-shm", "-journal"):
            Path(f"{copy}{suffix}").unlink(missing_ok=True)


def put_in_place(copy: Path, target: Path) -> None:
    """Renames a copy to its target once it is on disk."""
    with copy.open("rb") as file:
        os.fsync(file.fileno())
    copy.replace(target)
    sync_directory(target.parent)


def sync_directory(directory: Path) -> None:
    """Makes the names of files durable."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        with suppress(OSError):  # some file systems cannot sync directories, and need not
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _copy(path: Path, copy: Path, *, progress: Progress) -> list[str]:
    """Fills the copy and returns its problems."""
    with translated(path):
        source = schema.connect_reader(path)
    with closing(source), closing(schema.connect(copy)) as target:
        _copy_pages(source, target, progress=progress)
        return engine_problems(target)


@contextmanager
def _translated_for(*, source: Path, target: Path) -> Iterator[None]:
    """Translates an error of either file. SQLite does not report which one it is about; the error code shows it."""
    try:
        yield
    except sqlite3.Error as error:
        raise unavailable(source if primary_code(error) in _SOURCE_ERRORS else target, error) from error


def _copy_pages(source: sqlite3.Connection, target: sqlite3.Connection, *, progress: Progress) -> None:
    # A transaction that has read keeps its state: without it each commit would restart the copy.
    source.execute("BEGIN")
    schema.numbers(source)
    target.execute("PRAGMA synchronous = OFF")  # put_in_place syncs it
    source.backup(target, pages=_PAGES, progress=lambda _, left, total: progress(total - left, total))
    # Without a write-ahead log the copy is one file that can be read from any medium.
    target.execute("PRAGMA journal_mode = DELETE")


def _check_target(path: Path, target: Path, *, overwrite: bool) -> None:
    with translated(target):
        if target.is_dir():
            raise StorageUnavailable(f"{target} is a directory", remedy="name a file in it")
        if not target.parent.is_dir():
            raise StorageUnavailable(
                f"there is no directory {target.parent}", remedy="make it first, or name another place"
            )
        if target.resolve() in {Path(f"{path}{suffix}").resolve() for suffix in _BESIDE}:
            raise StorageUnavailable(f"{target} belongs to the database itself", remedy="name another file")
        if os.path.lexists(target) and not stat.S_ISREG(target.lstat().st_mode):
            raise StorageUnavailable(
                f"{target} is no regular file, but a link, a pipe or a device",
                remedy="nothing was changed; name a file",
            )
        if target.exists() and not overwrite:
            raise StorageUnavailable(f"{target} exists", remedy="name another file, or replace this one with --force")
