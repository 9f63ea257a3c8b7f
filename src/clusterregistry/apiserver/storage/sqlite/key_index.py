"""The index of existing keys and their revisions, which the file does not have."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from threading import Lock

from clusterregistry.apiserver.storage.sqlite import schema


class KeyIndex:
    """The latest revision of each existing key. The writer thread changes it; any thread reads it.

    It is never ahead of the file: a batch is applied once it is committed.
    """

    def __init__(self, revisions: dict[str, int], *, revision: int) -> None:
        self._revisions = revisions
        self.revision = revision
        self.guards: dict[str, int] = {}
        """The revision of the last write with each guard, for the writer thread alone. What was written before this
        process, all of its readers have seen: so a file does not keep them."""
        self.lock = Lock()
        """Held while a batch is applied: a reader that holds it sees the whole batch or nothing of it."""

    @classmethod
    def load(cls, connection: sqlite3.Connection) -> KeyIndex:
        return cls(at_revision(connection, None), revision=schema.newest_revision(connection))

    def of(self, key: str) -> int:
        """The key's revision; 0 if it does not exist."""
        return self._revisions.get(key, 0)

    def count(self, prefix: str) -> int:
        with self.lock:
            return sum(1 for key in self._revisions if key.startswith(prefix))

    def snapshot(self) -> dict[str, int]:
        """A copy; hold the lock."""
        return self._revisions.copy()

    def apply(self, changes: Mapping[str, int], *, revision: int) -> None:
        """Applies the changes of a committed batch; 0 stands for a deleted key."""
        with self.lock:
            for key, changed in changes.items():
                if changed:
                    self._revisions[key] = changed
                else:
                    self._revisions.pop(key, None)
            self.revision = revision


def at_revision(connection: sqlite3.Connection, revision: int | None) -> dict[str, int]:
    """The keys at a revision (None: the newest) with their revisions, by replaying the log."""
    found: dict[str, int] = {}
    bound = "" if revision is None else "WHERE revision <= ?"
    parameters = () if revision is None else (revision,)
    # Only constants are joined here.
    statement = f"SELECT key, revision, value IS NULL FROM log {bound} ORDER BY revision"  # noqa: S608
    for key, changed, deleted in connection.execute(statement, parameters):
        if deleted:
            found.pop(key, None)
        else:
            found[key] = changed
    return found
