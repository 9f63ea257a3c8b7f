"""Reads in a small pool of threads, each in a transaction and so of one consistent state."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TypeVar

from clusterregistry.apiserver.storage.errors import RevisionCompacted, RevisionInFuture, StorageUnavailable
from clusterregistry.apiserver.storage.interface import Event, KeyValue, Page
from clusterregistry.apiserver.storage.sqlite import schema
from clusterregistry.apiserver.storage.sqlite.errors import translated
from clusterregistry.apiserver.storage.sqlite.key_index import KeyIndex, at_revision

T = TypeVar("T")

_THREADS = 2
"""Two, so that a short read does not wait for a long list; more would only contend for the interpreter lock."""

_CHUNK = 500
"""Values read by one statement; older SQLite versions accept at most 999 parameters."""

_HISTORY = """SELECT changed.key, changed.revision, changed.value, changed.prev_revision, superseded.value
    FROM log AS changed LEFT JOIN log AS superseded ON superseded.revision = changed.prev_revision
    WHERE changed.revision > ? ORDER BY changed.revision"""


class Readers:
    """A pool of threads with one connection each."""

    def __init__(self, path: Path, index: KeyIndex) -> None:
        self._path, self._index = path, index
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="sqlite-reader")
        self._own = threading.local()
        self._connections: list[sqlite3.Connection] = []

    async def get(self, key: str) -> KeyValue | None:
        return await self._run(partial(self._get, key=key))

    async def list(self, prefix: str, *, revision: int, after: str, limit: int) -> Page:
        return await self._run(partial(self._list, query=_Query(prefix, revision, after, limit)))

    async def history(self, prefix: str, *, after: int, limit: int) -> Sequence[Event]:
        return await self._run(partial(self._history, prefix=prefix, after=after, limit=limit))

    def close(self) -> None:
        """Finishes the reads in progress and closes the connections. Blocks; not for the loop's thread."""
        self._pool.shutdown()
        for connection in self._connections:
            connection.close()

    async def _run(self, read: Callable[[sqlite3.Connection], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._pool, self._read, read)

    def _read(self, read: Callable[[sqlite3.Connection], T]) -> T:
        with translated(self._path):
            connection = self._connection()
            connection.execute("BEGIN")
            try:
                return read(connection)
            finally:
                connection.rollback()

    def _connection(self) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = getattr(self._own, "connection", None)
        if connection is None:
            connection = schema.connect(self._path)
            self._connections.append(connection)
            connection.execute("PRAGMA query_only = 1")
            self._own.connection = connection
        return connection

    # In the following methods the first read of the file fixes the state that the transaction sees. It happens under
    # the lock, so that this state has every row that the index names.

    def _get(self, connection: sqlite3.Connection, key: str) -> KeyValue | None:
        with self._index.lock:
            revision = self._index.of(key)
            _oldest(connection)
        return KeyValue(key, _values(connection, [revision])[revision], revision) if revision else None

    def _list(self, connection: sqlite3.Connection, query: _Query) -> Page:
        with self._index.lock:
            oldest = _oldest(connection)
            current = self._index.revision
            revision = query.revision or current
            keys = self._index.snapshot() if revision == current else None
        if revision > current:
            raise RevisionInFuture(revision, current=current)
        if revision < oldest:
            raise RevisionCompacted(revision, compacted=oldest)
        return query.page(connection, at_revision(connection, revision) if keys is None else keys, revision)

    def _history(self, connection: sqlite3.Connection, prefix: str, after: int, limit: int) -> Sequence[Event]:
        oldest = _oldest(connection)
        if after < oldest:
            raise RevisionCompacted(after, compacted=oldest)
        if after > self._index.revision:  # nothing yet; also keeps numbers above 64 bits from SQLite
            return []
        matching = (_event(row) for row in connection.execute(_HISTORY, (after,)) if row[0].startswith(prefix))
        return list(islice(matching, limit or None))


@dataclass(slots=True, frozen=True)
class _Query:
    """The parameters of a list."""

    prefix: str
    revision: int
    after: str
    limit: int

    def page(self, connection: sqlite3.Connection, found: Mapping[str, int], revision: int) -> Page:
        """The page, given the keys at a revision with their revisions."""
        keys = sorted(key for key in found if key.startswith(self.prefix) and key > self.after)
        chosen = keys[: self.limit] if self.limit > 0 else keys
        values = _values(connection, [found[key] for key in chosen])
        items = [KeyValue(key, values[found[key]], found[key]) for key in chosen]
        return Page(items, revision, len(keys) - len(chosen))


def _oldest(connection: sqlite3.Connection) -> int:
    """The oldest revision that can be read."""
    return schema.numbers(connection)["compacted"]


def _values(connection: sqlite3.Connection, revisions: Sequence[int]) -> dict[int, bytes]:
    ordered = sorted(revisions)  # the order on disk
    found: dict[int, bytes] = {}
    for start in range(0, len(ordered), _CHUNK):
        chunk = ordered[start : start + _CHUNK]
        placeholders = ",".join("?" * len(chunk))
        found.update(connection.execute(f"SELECT revision, value FROM log WHERE revision IN ({placeholders})", chunk))  # noqa: S608
    if len(found) < len(ordered):
        raise StorageUnavailable("the log is damaged: values of existing keys are missing; restore a backup")
    return found


def _event(row: tuple[str, int, bytes | None, int, bytes | None]) -> Event:
    key, revision, value, previous_revision, previous_value = row
    current = None if value is None else KeyValue(key, value, revision)
    previous = None if previous_value is None else KeyValue(key, previous_value, previous_revision)
    return Event(key, revision, current, previous)
