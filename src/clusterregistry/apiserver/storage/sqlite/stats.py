"""How much is in a file, for operators. Nothing here changes it, and a server may be writing to it meanwhile."""

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
    """One moment of a file. Sizes are in bytes."""

    format: int
    objects: Mapping[str, int]
    """How many keys there are, by what they share up to the last slash."""
    object_bytes: int
    """What their values hold."""
    revision: int
    """The newest one."""
    oldest_revision: int
    """The oldest one that can still be read: history begins behind it."""
    rows: int
    """Revisions that the log holds, those of existing objects included."""
    file_bytes: int
    free_bytes: int
    """Part of the file that new rows will use again."""
    wal_bytes: int


def measure(path: Path) -> Measures:
    """Raises StorageUnavailable when the file cannot be read, is not ours, or is of a newer format."""
    with translated(path), closing(schema.connect_reader(path)) as connection:
        connection.execute("BEGIN")
        numbers = schema.numbers(connection)
        sizes, rows = _live_sizes(connection)
        return Measures(
            format=numbers["version"],
            objects=Counter(key.rpartition("/")[0] + "/" for key in sorted(sizes)),
            object_bytes=sum(sizes.values()),
            revision=newest_revision(connection),
            oldest_revision=max(numbers["compacted"], schema.FIRST_REVISION),
            rows=rows,
            file_bytes=path.stat().st_size,
            free_bytes=_number(connection, "freelist_count") * _number(connection, "page_size"),
            wal_bytes=_size(Path(f"{path}-wal")),
        )


def newest_revision(connection: sqlite3.Connection) -> int:
    (last,) = connection.execute("SELECT coalesce(max(revision), 0) FROM log").fetchone()
    return max(schema.FIRST_REVISION, schema.numbers(connection)["compacted"], int(last))


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


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
