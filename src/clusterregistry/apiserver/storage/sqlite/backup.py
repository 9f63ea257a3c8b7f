"""Copies of a file: while a server writes to it, into a backup; and from a backup, in the place of a file.

A copy is made with SQLite's backup from a read-only connection that holds on to the state of one moment, so a busy
server neither waits for it nor makes it begin again. It grows under a temporary name beside its target and gets
its real name when it is complete, checked and on disk: under that name there is never half a database.
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
"""What Linux adds to the name of an open file that was removed or replaced."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenDatabase:
    """A database that was removed or replaced under the server that has it open. That server takes no writes."""

    pid: int
    database: Path
    log: Path | None

    def copy_to(self, target: Path) -> None:
        """Makes files under names of their own. Raises OSError."""
        shutil.copyfile(self.database, target)
        if self.log is not None:
            shutil.copyfile(self.log, f"{target}-wal")


def find_removed(path: Path) -> OpenDatabase | None:
    """What a server has open in place of the file that is, or is not, under this name. None on other systems.

    None also when a server has the present file, whoever else still has an older one: only servers have a claim on it.
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
    """Those that run, by their ids, and what they have open."""
    if _PROCESSES.is_dir():
        yield from ((int(entry.name), _open_files(entry)) for entry in _PROCESSES.iterdir() if entry.name.isdecimal())


def _open_files(process: Path) -> dict[str, Path]:
    """What a process has open, by name. Nothing of a process that is gone, or another user's."""
    found: dict[str, Path] = {}
    with suppress(OSError):
        for descriptor in (process / "fd").iterdir():
            with suppress(OSError):
                found[os.readlink(descriptor)] = descriptor  # noqa: PTH115 - a name as Linux gives it, and no path
    return found


_PAGES = 1000
"""Copied in one go, about 4 MB: between two of them progress is told and Ctrl-C is heard."""

_SOURCES_FAULTS = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
DAMAGED = "nothing was written; `storage check FILE` tells more. Use an older backup of it"

_BESIDE = ("", "-wal", "-shm", ".lock")
"""A database is these files."""


def back_up(path: Path, target: Path, *, overwrite: bool, progress: Progress) -> OpenDatabase | None:
    """Writes all that is committed now into one file that only its owner can read.

    When the file was removed or replaced under a server, the backup is of what that server has open, which is
    returned. Raises StorageUnavailable, and then leaves nothing behind; a file that was there before stays as it is.
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
    """A database of its own made of files without names."""
    with translated(beside):
        directory = tempfile.TemporaryDirectory(prefix=f".{beside.name}.", suffix=".rescue", dir=beside.parent)
    with directory as name:
        rescued = Path(name) / "registry.db"
        with translated(beside):
            removed.copy_to(rescued)
        yield rescued


@contextmanager
def complete_copy(path: Path, target: Path, *, progress: Progress) -> Iterator[Path]:
    """A checked copy of a database beside the place that it is for. It is removed at the end, unless renamed."""
    with translated(target):
        descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".partial", dir=target.parent)
        os.close(descriptor)
    copy = Path(name)
    try:
        with _blaming(source=path, target=target):
            found = _copy(path, copy, progress=progress)
        if found:
            raise StorageUnavailable(f"{path} is damaged: {found[0]}", remedy=DAMAGED)
        yield copy
    finally:
        for suffix in ("", "-wal", "-shm", "-journal"):
            Path(f"{copy}{suffix}").unlink(missing_ok=True)


def put_in_place(copy: Path, target: Path) -> None:
    """Gives a copy its real name, once all of it is on disk."""
    with copy.open("rb") as file:
        os.fsync(file.fileno())
    copy.replace(target)
    sync_directory(target.parent)


def sync_directory(directory: Path) -> None:
    """Has the names of files survive a power cut too."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        with suppress(OSError):  # some file systems cannot do that for directories, and need not
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _copy(path: Path, copy: Path, *, progress: Progress) -> list[str]:
    """Fills the copy and returns what is wrong with it."""
    with translated(path):
        source = schema.connect_reader(path)
    with closing(source), closing(schema.connect(copy)) as target:
        _copy_pages(source, target, progress=progress)
        return engine_problems(target)


@contextmanager
def _blaming(*, source: Path, target: Path) -> Iterator[None]:
    """SQLite does not say which of two files an error is about; its kind does."""
    try:
        yield
    except sqlite3.Error as error:
        raise unavailable(source if primary_code(error) in _SOURCES_FAULTS else target, error) from error


def _copy_pages(source: sqlite3.Connection, target: sqlite3.Connection, *, progress: Progress) -> None:
    # A transaction that has read something keeps to its state: without it each commit would make the copy begin anew.
    source.execute("BEGIN")
    schema.numbers(source)
    target.execute("PRAGMA synchronous = OFF")  # who gives the copy its name syncs it before
    source.backup(target, pages=_PAGES, progress=lambda _, left, total: progress(total - left, total))
    # Without a write-ahead log the copy is one file, which can be read from any medium.
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
