"""Compaction: removing rows that no readable revision needs.

A row is dead at revision R when a row up to R supersedes it, and so is a tombstone up to R itself.
Following ``prev_revision`` from each row once, in order, finds all dead ones without a search; ``swept``
remembers how far that has gone, so work that a crash cut short goes on where it stopped.
"""

from __future__ import annotations

import sqlite3

from clusterregistry.apiserver.storage.sqlite import schema

SLICE_ROWS = 500
"""Some milliseconds of work: that is how long a write may wait behind a slice."""

_NEXT = """SELECT revision, prev_revision, value IS NULL FROM log
    WHERE revision > ? AND revision <= ? ORDER BY revision LIMIT ?"""


def sweep(connection: sqlite3.Connection, *, revision: int) -> bool:
    """One slice of compacting to a revision, inside the caller's transaction. True when nothing is left.

    From the first slice on older revisions count as compacted: no read meets one half removed.
    """
    numbers = schema.numbers(connection)
    target = max(revision, numbers["compacted"])
    if target == numbers["swept"]:
        return True
    rows = connection.execute(_NEXT, (numbers["swept"], target, SLICE_ROWS)).fetchall()
    dead = [(previous,) for _, previous, _ in rows if previous]
    dead += [(changed,) for changed, _, deleted in rows if deleted]
    connection.executemany("DELETE FROM log WHERE revision = ?", dead)
    done = len(rows) < SLICE_ROWS
    swept = target if done else rows[-1][0]
    connection.executemany(
        "UPDATE meta SET value = ? WHERE name = ?",
        [(target, "compacted"), (swept, "swept")],
    )
    return done
