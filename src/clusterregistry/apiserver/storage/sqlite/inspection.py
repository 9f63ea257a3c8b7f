"""Whether a file can be served, found out before a server opens it.

Nothing is touched. To open a database for writing plays its write-ahead log into it, and to open an empty one throws
the log away, but a start that is refused leaves every file as it was.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from clusterregistry.apiserver.storage.errors import StorageUnavailable
from clusterregistry.apiserver.storage.sqlite import integrity, schema
from clusterregistry.apiserver.storage.sqlite.errors import RESTORE, translated

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
            f"nothing was changed. Put {path.name} back beside its log, or restore a backup (`clusterregistry storage "
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
