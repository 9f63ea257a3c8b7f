"""Which keys exist now, and at which revision: the index that the file does not have."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from threading import Lock

from clusterregistry.apiserver.storage.sqlite import schema


class KeyIndex:
    """The latest revision of each key that exists. The writer thread changes it; anyone reads.

    It never runs ahead of the file: a batch is applied once it is committed.
    """

    def __init__(self, revisions: dict[str, int], *, revision: int) -> None:
        self._revisions = revisions
        self.revision = revision
        self.lock = Lock()
        """Held while a batch is applied, so that who holds it sees all of it or nothing."""

    @classmethod
    def load(cls, connection: sqlite3.Connection) -> KeyIndex:
        # Compaction removes tombstones: the newest revision may live on as the compacted one alone.
        newest = max(schema.FIRST_REVISION, schema.numbers(connection)["compacted"])
        revisions = at_revision(connection, None)
        (last,) = connection.execute("SELECT coalesce(max(revision), 0) FROM log").fetchone()
        return cls(revisions, revision=max(newest, last))

    def of(self, key: str) -> int:
        """The key's revision; 0 when it does not exist."""
        return self._revisions.get(key, 0)

    def count(self, prefix: str) -> int:
        with self.lock:
            return sum(1 for key in self._revisions if key.startswith(prefix))

    def snapshot(self) -> dict[str, int]:
        """A copy; hold the lock."""
        return self._revisions.copy()

    def apply(self, changes: Mapping[str, int], *, revision: int) -> None:
        """Takes over what a committed batch changed; 0 stands for a deleted key."""
        with self.lock:
            for key, changed in changes.items():
                if changed:
                    self._revisions[key] = changed
                else:
                    self._revisions.pop(key, None)
            self.revision = revision


def at_revision(connection: sqlite3.Connection, revision: int | None) -> dict[str, int]:
    """The keys that existed at a revision (None: the newest), and theirs, by replaying the log."""
    found: dict[str, int] = {}
    bound = "" if revision is None else "WHERE revision <= ?"
    parameters = () if revision is None else (revision,)
    # Only fixed text is put together here.
    statement = f"SELECT key, revision, value IS NULL FROM log {bound} ORDER BY revision"  # noqa: S608
    for key, changed, deleted in connection.execute(statement, parameters):
        if deleted:
            found.pop(key, None)
        else:
            found[key] = changed
    return found
