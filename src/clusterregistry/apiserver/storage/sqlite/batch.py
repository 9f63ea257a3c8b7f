"""Writes that become one transaction: each is checked against those before it, then all commit or none."""

from __future__ import annotations

import sqlite3
from asyncio import Future
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import chain

from clusterregistry.apiserver.storage.errors import (
    KeyExists,
    KeyNotFound,
    RevisionConflict,
    StorageError,
    StorageUnavailable,
)
from clusterregistry.apiserver.storage.interface import Event, KeyValue
from clusterregistry.apiserver.storage.sqlite.key_index import KeyIndex

Row = tuple[int, str, int, bytes | None]
"""revision, key, prev_revision, value: in the order of the log's columns."""

MOST_ROWS = 249
"""In one batch: SQLite versions before 3.32 take at most 999 parameters. It also bounds how long the first write waits,
and how long the loop publishes without a break."""

_VALUE = "SELECT value FROM log WHERE revision = ?"


@dataclass(slots=True, eq=False)
class Write:
    """One change to make. ``expected`` None: the key must not exist. ``value`` None: delete it."""

    key: str
    value: bytes | None
    expected: int | None
    known: KeyValue | None
    """What is at ``expected``, if the caller has it."""
    future: Future[int]


@dataclass(slots=True)
class Batch:
    """The outcome of some writes, and what is to be written for it."""

    live: KeyIndex
    revision: int
    rows: list[Row] = field(default_factory=list)
    superseded: dict[int, KeyValue] = field(default_factory=dict)
    """What the callers know of the rows that these ones supersede, by revision."""
    changes: dict[str, int] = field(default_factory=dict)
    outcomes: list[tuple[Future[int], int | StorageError]] = field(default_factory=list)
    events: Sequence[Event] = ()

    @classmethod
    def of(cls, writes: Sequence[Write], live: KeyIndex) -> Batch:
        """Decides each write as if those before it had been committed."""
        batch = cls(live, live.revision)
        for write in writes:
            batch.outcomes.append((write.future, batch._stage(write)))
        return batch

    def _stage(self, write: Write) -> int | StorageError:
        key = write.key
        staged = self.changes.get(key)
        actual = self.live.of(key) if staged is None else staged
        error = _refusal(write, actual)
        if error is not None:
            return error
        if write.known is not None and write.known.revision == actual:
            self.superseded[actual] = write.known
        self.revision += 1
        self.rows.append((self.revision, key, actual, write.value))
        self.changes[key] = 0 if write.value is None else self.revision
        return self.revision

    def commit(self, connection: sqlite3.Connection) -> None:
        """Writes the rows and prepares the events of their commit. Not to be called inside a transaction.

        One statement for all, which is a transaction by itself: each call of SQLite gives up the interpreter's lock,
        and getting it back from a busy loop takes up to five milliseconds.
        """
        # Built before the commit: after it nothing may fail any more.
        self.events = _events(self.rows, self._read_superseded(connection))
        connection.execute(_insert(len(self.rows)), list(chain.from_iterable(self.rows)))

    def _read_superseded(self, connection: sqlite3.Connection) -> Mapping[int, KeyValue]:
        """What the batch supersedes and did not itself write, by revision."""
        first, found = self.live.revision, self.superseded
        for _, key, previous, _ in self.rows:
            if 0 < previous <= first and previous not in found:
                row = connection.execute(_VALUE, (previous,)).fetchone()
                if row is None:
                    raise StorageUnavailable(f"the log is damaged: revision {previous} of {key!r} is missing")
                found[previous] = KeyValue(key, row[0], previous)
        return found


@cache
def _insert(rows: int) -> str:
    return f"INSERT INTO log (revision, key, prev_revision, value) VALUES {','.join(['(?,?,?,?)'] * rows)}"  # noqa: S608 - nothing but marks


def _refusal(write: Write, actual: int) -> StorageError | None:
    if write.expected is None:
        return KeyExists(write.key) if actual else None
    if not actual:
        return KeyNotFound(write.key)
    if actual != write.expected:
        return RevisionConflict(write.key, expected=write.expected, actual=actual)
    return None


def _events(rows: Sequence[Row], superseded: Mapping[int, KeyValue]) -> list[Event]:
    made: dict[int, KeyValue] = {}
    events: list[Event] = []
    for revision, key, previous_revision, value in rows:
        previous = superseded.get(previous_revision) or made.get(previous_revision)
        current = None if value is None else KeyValue(key, _fitted(value), revision)
        if current is not None:
            made[revision] = current
        events.append(Event(key, revision, current, previous))
    return events


def _fitted(value: bytes) -> bytes:
    """A copy, for it is kept: an encoder may have left the room that it did not need (orjson: five times the value)."""
    return bytes(memoryview(value))
