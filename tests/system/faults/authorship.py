"""Which write made which change.

A change of a value shows the token of its write. A deletion shows none: who was answered the uid made it. What remains
is for deletions whose outcome is unknown; ``history`` decides on those, since it knows when they began. The server
itself makes changes too, to end a namespace (``lifecycles``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tests.system.faults.faults import Fault, Violation
from tests.system.faults.lifecycles import Lifecycles
from tests.system.faults.records import (
    ENDING,
    NAMESPACES,
    Action,
    Change,
    Intent,
    Kind,
    Operation,
    Result,
    State,
    Value,
    is_in,
)
from tests.system.faults.timeline import Timeline


class Authorship:
    """Assigns every change of a timeline to a write. All that does not fit is in ``violations``."""

    def __init__(self, timeline: Timeline, operations: Sequence[Operation]) -> None:
        self.violations: list[Violation] = []
        self.unexplained_deletions: list[Change] = []
        self.by_server = 0
        """Changes that the server made by itself, as far as no answer says otherwise."""
        self._timeline, self._lifecycles = timeline, Lifecycles(timeline)
        self._changes: dict[int, Change] = {}
        self._assigned: list[tuple[Operation, Change]] = []
        self._uids: set[str] = {state.uid for key in timeline.keys if (state := timeline.state(key, timeline.start))}
        writes = [operation for operation in operations if operation.is_write]
        self._by_token = {operation.intent.token: operation for operation in writes if operation.intent.token}
        self._deletes: dict[str, Operation] = {}
        for operation in writes:
            if operation.acknowledged and operation.intent.action is Action.DELETE:
                # A second one of the same object has no change of its own, and counts as lost.
                self._deletes.setdefault(operation.outcome.uid, operation)
        for change in timeline.changes:
            self._explain(change)
        for operation in writes:
            self._check_answer(operation)

    def beginnings(self) -> Iterator[tuple[float, int]]:
        """When the write of each explained change began, and its revision."""
        for author, change in self._assigned:
            yield author.invoked, change.revision

    def change_of(self, operation: Operation) -> Change | None:
        """What a write made; None when it made nothing."""
        return self._changes.get(id(operation))

    def _explain(self, change: Change) -> None:
        before = self._timeline.before(change)
        self._check_life(change, before)
        if is_in(change.key, NAMESPACES) and self._lifecycles.is_by_server(change):
            self.by_server += 1
            return
        if change.kind is Kind.DELETED or _is_mark(change):
            author = self._deletes.get(change.uid)
            if author is None or author.intent.key != change.key:
                if self._lifecycles.is_by_server(change):
                    self.by_server += 1
                else:
                    self.unexplained_deletions.append(change)
                return
        else:
            author = self._by_token.get(_token(change, before))
            if author is None or not _fits(author, change, before):
                self._add(Fault.PHANTOM, f"{_shown(change)} after {before} is what no write would have made")
                return
        self._assign(author, change, before)

    def _assign(self, author: Operation, change: Change, before: State) -> None:
        if id(author) in self._changes:
            self._add(Fault.APPLIED_TWICE, f"{author} made {_shown(self._changes[id(author)])} and {_shown(change)}")
            return
        self._changes[id(author)] = change
        self._assigned.append((author, change))
        if author.outcome.result not in (Result.OK, Result.UNKNOWN):
            self._add(Fault.REFUSED_BUT_DONE, f"{author} made {_shown(change)}")
        if not author.intent.allows(before):
            self._add(Fault.LOST_UPDATE, f"{author} made {_shown(change)} on {before}")

    def _check_life(self, change: Change, before: State) -> None:
        """A key is added when it is absent, under a uid that never was, and goes on under it."""
        if change.kind is Kind.ADDED:
            wrong = before is not None or change.uid in self._uids
            self._uids.add(change.uid)
        else:
            wrong = before is None or change.uid != before.uid
        if wrong:
            self._add(Fault.RESURRECTED, f"{_shown(change)} with uid {change.uid} came after {before}")

    def _check_answer(self, operation: Operation) -> None:
        if not operation.acknowledged:
            return
        change, version = self.change_of(operation), operation.outcome.version
        if change is None:
            self._add(Fault.LOST_WRITE, f"{operation} is not in the history")
        elif version is not None and version != (change.revision, change.uid, change.value):
            self._add(Fault.WRONG_ANSWER, f"{operation} was answered {version} and made {_shown(change)}")

    def _add(self, fault: Fault, text: str) -> None:
        self.violations.append(Violation(fault, text))


def _is_mark(change: Change) -> bool:
    """Whether a namespace is being deleted from here on; what the server makes of it later is not asked for."""
    return is_in(change.key, NAMESPACES) and change.value.status == ENDING


def _token(change: Change, before: State) -> str:
    """The token of the write that makes a change: the one that is new, and else of a write that was made again."""
    old = before.value if before else Value("")
    new = [token for token, known in zip(change.value, old, strict=True) if token and token != known]
    if new:
        return new[0]
    return change.value.whole if change.value != old else next(filter(None, reversed(change.value)), "")


def _fits(author: Operation, change: Change, before: State) -> bool:
    """Whether the write makes exactly this of what was there before."""
    if author.intent.key != change.key:
        return False
    return (change.kind, change.value) == _made(author.intent, before.value if before else None)


def _made(intent: Intent, before: Value | None) -> tuple[Kind, Value] | None:
    """What a write makes of a value; None: nothing."""
    match intent.action:
        case Action.CREATE:
            return Kind.ADDED, Value(intent.token)
        case Action.UPDATE if before is None and intent.creates_by_update:
            return Kind.ADDED, Value(intent.token)
        case Action.APPLY if before is None:
            return Kind.ADDED, Value("", applied=intent.token)
    if before is None:
        return None
    match intent.action:
        case Action.UPDATE:
            return Kind.MODIFIED, Value(intent.token, status=before.status)
        case Action.PATCH:
            return Kind.MODIFIED, before._replace(patch=intent.token)
        case Action.APPLY:
            return Kind.MODIFIED, before._replace(applied=intent.token)
        case Action.STATUS:
            return Kind.MODIFIED, before._replace(status=intent.token)
    return None


def _shown(change: Change) -> str:
    return f"{change.kind} {change.key} {change.value} at revision {change.revision}"
