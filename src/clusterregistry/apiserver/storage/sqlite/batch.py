"""A batch of writes in one transaction: each is checked against those before it, then all commit or none."""

from __future__ import annotations

import sqlite3
from asyncio import Future
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import chain

from clusterregistry.apiserver.storage.errors import (
    GuardConflict,
    KeyExists,
    KeyNotFound,
    RevisionConflict,
    StorageError,
    StorageUnavailable,
)
from clusterregistry.apiserver.storage.interface import Event, Guard, KeyValue
from clusterregistry.apiserver.storage.sqlite.key_index import KeyIndex

Row = tuple[int, str, int, bytes | None]
"""revision, key, prev_revision, value: in the order of the log's columns."""

MOST_ROWS = 249
"""Rows of one batch: SQLite before 3.32 accepts at most 999 parameters. It also bounds how long the first write waits,
and how long the event loop publishes without a pause."""

_VALUE = "SELECT value FROM log WHERE revision = ?"


@dataclass(slots=True, eq=False)
class Write:
    """One write. ``expected`` None: the key must not exist. ``value`` None: delete the key."""

    key: str
    value: bytes | None
    expected: int | None
    known: KeyValue | None
    """The key-value at ``expected``, if the caller has it."""
    future: Future[int]
    guards: Sequence[Guard] = ()


@dataclass(slots=True)
class Batch:
    """The outcomes of some writes, and the rows to insert."""

    index: KeyIndex
    revision: int
    rows: list[Row] = field(default_factory=list)
    superseded: dict[int, KeyValue] = field(default_factory=dict)
    """Superseded key-values that the callers passed, by revision."""
    changes: dict[str, int] = field(default_factory=dict)
    guards: dict[str, int] = field(default_factory=dict)
    """The revisions of the last writes with each guard."""
    outcomes: list[tuple[Future[int], int | StorageError]] = field(default_factory=list)
    events: Sequence[Event] = ()

    @classmethod
    def of(cls, writes: Sequence[Write], index: KeyIndex) -> Batch:
        """Decides each write as if those before it were committed."""
        batch = cls(index, index.revision)
        for write in writes:
            batch.outcomes.append((write.future, batch._stage(write)))
        return batch

    def _stage(self, write: Write) -> int | StorageError:
        key = write.key
        staged = self.changes.get(key)
        actual = self.index.of(key) if staged is None else staged
        error = _refusal(write, actual) or (self._guard_conflict(write.guards) if write.guards else None)
        if error is not None:
            return error
        if write.known is not None and write.known.revision == actual:
            self.superseded[actual] = write.known
        self.revision += 1
        self.rows.append((self.revision, key, actual, write.value))
        self.changes[key] = 0 if write.value is None else self.revision
        for guard in write.guards:
            self.guards[guard.name] = self.revision
        return self.revision

    def _guard_conflict(self, guards: Sequence[Guard]) -> GuardConflict | None:
        for guard in guards:
            revision = self.guards.get(guard.name) or self.index.guards.get(guard.name, 0)
            if revision > guard.revision:
                return GuardConflict(guard.name, revision=revision)
        return None

    def commit(self, connection: sqlite3.Connection) -> None:
        """Inserts the rows and prepares the events. Not to be called inside a transaction.

        One statement inserts all rows and is a transaction by itself: each call of SQLite releases the interpreter
        lock, and getting it back from a busy event loop takes up to five milliseconds.
        """
        # Before the commit: after it nothing may fail.
        self.events = _events(self.rows, self._read_superseded(connection))
        connection.execute(_insert(len(self.rows)), list(chain.from_iterable(self.rows)))

    def _read_superseded(self, connection: sqlite3.Connection) -> Mapping[int, KeyValue]:
        """The key-values that the batch supersedes and did not write itself, by revision."""
        first, found = self.index.revision, self.superseded
        for _, key, previous, _ in self.rows:
            if 0 < previous <= first and previous not in found:
                row = connection.execute(_VALUE, (previous,)).fetchone()
                if row is None:
                    raise StorageUnavailable(f"the log is damaged: revision {previous} of {key!r} is missing")
                found[previous] = KeyValue(key, row[0], previous)
        return found


@cache
def _insert(rows: int) -> str:
    return f"INSERT INTO log (revision, key, prev_revision, value) VALUES {','.join(['(?,?,?,?)'] * rows)}"  # noqa: S608 - only placeholders


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
        current = None if value is None else KeyValue(key, _trimmed(value), revision)
        if current is not None:
            made[revision] = current
        events.append(Event(key, revision, current, previous))
    return events


def _trimmed(value: bytes) -> bytes:
    """A copy to keep: an encoder may have allocated more than the value needs (orjson: five times)."""
    return bytes(memoryview(value))
