"""Short records by hand, for tests of the check: a good one to begin with, and the pieces of bad ones.

The good one: ``x`` creates key ``a`` at revision 11, updates it at 12, patches it at 13 and deletes it at 14, one
second each from 1.0 on, while two watchers get all of it at once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from tests.system.faults.records import (
    Action,
    Change,
    Intent,
    Kind,
    Operation,
    Outcome,
    Record,
    Result,
    Sight,
    State,
    Value,
    Version,
    WatchRecord,
)

START = 10

CREATED = Version(11, "uid-1", Value("x1"))
UPDATED = Version(12, "uid-1", Value("x2"))
PATCHED = Version(13, "uid-1", Value("x2", "x3"))

ADDITION = Change(11, Kind.ADDED, "a", "uid-1", Value("x1"))
UPDATE = Change(12, Kind.MODIFIED, "a", "uid-1", Value("x2"))
PATCH = Change(13, Kind.MODIFIED, "a", "uid-1", Value("x2", "x3"))
DELETION = Change(14, Kind.DELETED, "a", "uid-1", Value("x2", "x3"))
CHANGES = (ADDITION, UPDATE, PATCH, DELETION)


def operation(  # noqa: PLR0913 - a short way to write many records
    action: Action,
    *,
    begin: float,
    end: float | None = None,
    key: str = "a",
    token: str = "",
    expected: int | None = None,
    result: Result = Result.OK,
    version: State = None,
    uid: str = "",
    revision: int = 0,
    items: Mapping[str, Version] | None = None,
) -> Operation:
    """Answered half a second after it began, unless an end is given, or never when the outcome is unknown."""
    answered = math.inf if result is Result.UNKNOWN else begin + 0.5 if end is None else end
    revision = version.revision if version else revision
    outcome = Outcome(result=result, version=version, uid=uid, revision=revision, items=items)
    intent = Intent(action=action, key=key, token=token, expected=expected)
    return Operation(client="x", intent=intent, invoked=begin, answered=answered, outcome=outcome)


CREATE_IT = operation(Action.CREATE, begin=1.0, token="x1", version=CREATED)
UPDATE_IT = operation(Action.UPDATE, begin=2.0, token="x2", expected=11, version=UPDATED)
PATCH_IT = operation(Action.PATCH, begin=3.0, token="x3", version=PATCHED)
DELETE_IT = operation(Action.DELETE, begin=4.0, uid="uid-1")
OPERATIONS = (CREATE_IT, UPDATE_IT, PATCH_IT, DELETE_IT)


def read(version: State, *, begin: float, end: float | None = None, not_older_than: int | None = None) -> Operation:
    """A GET that showed this."""
    result = Result.OK if version else Result.ABSENT
    return operation(Action.GET, begin=begin, end=end, expected=not_older_than, result=result, version=version)


def listing(items: Mapping[str, Version], *, revision: int, begin: float) -> Operation:
    return operation(Action.LIST, begin=begin, key="", revision=revision, items=items)


def watch(*received: Change | int, name: str = "watcher-0", begin: float = 20.0) -> WatchRecord:
    """A watcher that received these, too late to say anything about the order of the rest; a number is a bookmark."""
    sights = [
        Sight(begin + number, item if isinstance(item, int) else item.revision, None if isinstance(item, int) else item)
        for number, item in enumerate(received)
    ]
    return WatchRecord(name=name, start=START, sights=sights, connections=1)


def record(
    operations: Iterable[Operation] = OPERATIONS,
    *,
    changes: Iterable[Change] = CHANGES,
    watches: Iterable[WatchRecord] | None = None,
    initial: Mapping[str, Version] | None = None,
) -> Record:
    """A run in which two watchers received the changes, or in which others received something else."""
    events = tuple(changes)
    seen = [watch(*events), watch(*events, name="watcher-1")] if watches is None else list(watches)
    end = max((sight.revision for each in seen for sight in each.sights), default=START)
    return Record(start=START, initial=initial or {}, operations=list(operations), watches=seen, end=end)
