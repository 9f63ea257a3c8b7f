"""Writes that become one transaction: each is checked against those before it, then all commit or none."""

from __future__ import annotations

import sqlite3
from asyncio import Future
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from clusterregistry.storage.errors import KeyExists, KeyNotFound, RevisionConflict, StorageError, StorageUnavailable
from clusterregistry.storage.interface import Event, KeyValue
from clusterregistry.storage.sqlite.live_keys import LiveKeys

Row = tuple[int, str, int, bytes | None]
"""revision, key, prev_revision, value: in the order of the log's columns."""

_INSERT = "INSERT INTO log (revision, key, prev_revision, value) VALUES (?, ?, ?, ?)"
_VALUE = "SELECT value FROM log WHERE revision = ?"


@dataclass(slots=True, eq=False)
class Write:
    """One change to make. ``expected`` None: the key must not exist. ``value`` None: delete it."""

    key: str
    value: bytes | None
    expected: int | None
    future: Future[int]


@dataclass(slots=True)
class Batch:
    """The outcome of some writes, and what is to be written for it."""

    live: LiveKeys
    revision: int
    rows: list[Row] = field(default_factory=list)
    changes: dict[str, int] = field(default_factory=dict)
    outcomes: list[tuple[Future[int], int | StorageError]] = field(default_factory=list)
    events: Sequence[Event] = ()

    @classmethod
    def of(cls, writes: Sequence[Write], live: LiveKeys) -> Batch:
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
        self.revision += 1
        self.rows.append((self.revision, key, actual, write.value))
        self.changes[key] = 0 if write.value is None else self.revision
        return self.revision

    def insert(self, connection: sqlite3.Connection) -> None:
        """Writes the rows inside the caller's transaction and prepares the events of its commit."""
        # Built before the commit: after it nothing may fail any more.
        self.events = _events(self.rows, self._previous_values(connection))
        connection.executemany(_INSERT, self.rows)

    def _previous_values(self, connection: sqlite3.Connection) -> dict[int, bytes]:
        """The values that the batch supersedes and did not itself write, by revision."""
        first = self.live.revision
        values: dict[int, bytes] = {}
        for _, key, previous, _ in self.rows:
            if 0 < previous <= first:
                row = connection.execute(_VALUE, (previous,)).fetchone()
                if row is None:
                    raise StorageUnavailable(f"the log is damaged: revision {previous} of {key!r} is missing")
                values[previous] = row[0]
        return values


def _refusal(write: Write, actual: int) -> StorageError | None:
    if write.expected is None:
        return KeyExists(write.key) if actual else None
    if not actual:
        return KeyNotFound(write.key)
    if actual != write.expected:
        return RevisionConflict(write.key, expected=write.expected, actual=actual)
    return None


def _events(rows: Sequence[Row], previous_values: Mapping[int, bytes]) -> list[Event]:
    made: dict[int, KeyValue] = {}
    events: list[Event] = []
    for revision, key, previous_revision, value in rows:
        previous = made.get(previous_revision)
        if previous is None and previous_revision:
            previous = KeyValue(key, previous_values[previous_revision], previous_revision)
        current = None if value is None else KeyValue(key, value, revision)
        if current is not None:
            made[revision] = current
        events.append(Event(key, revision, current, previous))
    return events
