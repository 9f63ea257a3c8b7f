"""Statistics of a file, for operators. They are read while a server may be writing, and change nothing."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from clusterregistry.apiserver.storage.sqlite import schema
from clusterregistry.apiserver.storage.sqlite.errors import translated

_KEYS = "SELECT key, coalesce(length(value), -1) FROM log ORDER BY revision"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measures:
    """The statistics of a file at one moment. Sizes are in bytes."""

    format: int
    objects: Mapping[str, int]
    """The number of keys by prefix, up to the last slash."""
    object_bytes: int
    """The total size of the objects' values."""
    revision: int
    """The newest revision."""
    oldest_revision: int
    """The oldest revision that can be read: history begins after it."""
    rows: int
    """The number of revisions in the log, including those of existing objects."""
    file_bytes: int
    free_bytes: int
    """The free part of the file, which new rows will use."""
    wal_bytes: int


def measure(path: Path) -> Measures:
    """Reads the statistics. Raises StorageUnavailable if the file cannot be read or belongs to another program."""
    with translated(path), closing(schema.connect_reader(path)) as connection:
        connection.execute("BEGIN")
        numbers = schema.numbers(connection)
        sizes, rows = _live_sizes(connection)
        return Measures(
            format=numbers["version"],
            objects=Counter(key.rpartition("/")[0] + "/" for key in sorted(sizes)),
            object_bytes=sum(sizes.values()),
            revision=schema.newest_revision(connection),
            oldest_revision=max(numbers["compacted"], schema.FIRST_REVISION),
            rows=rows,
            file_bytes=path.stat().st_size,
            free_bytes=_number(connection, "freelist_count") * _number(connection, "page_size"),
            wal_bytes=schema.file_size(Path(f"{path}-wal")),
        )


def _live_sizes(connection: sqlite3.Connection) -> tuple[dict[str, int], int]:
    """The size of each existing key's value, and the number of rows."""
    sizes: dict[str, int] = {}
    rows = 0
    for key, size in connection.execute(_KEYS):
        rows += 1
        if size < 0:
            sizes.pop(key, None)
        else:
            sizes[key] = size
    return sizes, rows


def _number(connection: sqlite3.Connection, pragma: str) -> int:
    (found,) = connection.execute(f"PRAGMA {pragma}").fetchone()
    return int(found)
