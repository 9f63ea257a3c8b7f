"""Checks that the answers of all clients are linearizable.

In general that is a search over orders. Here the store says its order: each write that took effect has a revision,
of the whole store, and a timeline has them all. So every operation has a position, the revision right after which
it happened: for a write its own, for a read one at which the key was as it says, and the same for a refusal ("it
exists", "it is at another revision"). The history is linearizable in this order if, and only if, positions can be
chosen such that an operation which was answered before another began has no higher one (a lower one, if the other
is a write: nothing was after it before it began).

All these demands are lower bounds, and the lowest position of an operation depends only on those that were answered
before it began. One walk through the moments in time therefore gives every operation its lowest position, and if one
of them does not fit, no other choice does either. (That nothing is seen of a write before it began follows from the
bounds of that write. It is looked at for the read as well, so that the blame falls on the right one.) The answer is
exact for the order of the revisions, and demands more than linearizability of each key, as the store promises more:
its revisions go up over all keys, in the order of time.

An operation of unknown outcome has no end: it may come at any time after it began, or never. One whose change is in
the timeline did happen, and what others saw of it counts as for any other. A read that may be old is bound by what it
asked for and not by the time, but what it showed was there when it was answered.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tests.system.faults.authorship import Authorship
from tests.system.faults.faults import Fault, Violation
from tests.system.faults.lifecycles import Lifecycles, is_active
from tests.system.faults.records import (
    NAMESPACES,
    READS,
    Action,
    Change,
    Kind,
    Operation,
    Result,
    Sight,
    State,
    Version,
    WatchRecord,
    is_in,
    namespace_of,
)
from tests.system.faults.timeline import Predicate, Timeline

BUG = 500
"""A server that cannot do something says 503 or 504. This one says that it does not know what happened to it."""


def check_operations(
    timeline: Timeline,
    operations: Sequence[Operation],
    *,
    watches: Sequence[WatchRecord] = (),
    authorship: Authorship | None = None,
    one_server: bool = False,
) -> list[Violation]:
    """All that is wrong with the operations, given what happened; what watchers saw is known from then on.

    ``one_server``: there are no replicas, which may let objects into a namespace for as long as they have not seen that
    it is being deleted.
    """
    authorship = authorship or Authorship(timeline, operations)
    walk = _Walk(timeline, authorship, one_server=one_server)
    for moment in sorted(_moments(operations, watches), key=_in_order):
        walk.pass_by(moment)
    return authorship.violations + walk.violations + walk.unexplained_deletions()


class _Moment(NamedTuple):
    at: float
    is_end: bool
    what: Operation | Sight


def _moments(operations: Sequence[Operation], watches: Sequence[WatchRecord]) -> Iterator[_Moment]:
    for operation in operations:
        yield _Moment(operation.invoked, False, operation)
        if operation.outcome.result is not Result.UNKNOWN:
            yield _Moment(operation.answered, True, operation)
    for watch in watches:
        yield from (_Moment(sight.at, True, sight) for sight in watch.sights)


def _in_order(moment: _Moment) -> tuple[float, bool]:
    """Beginnings first: at the same time is not before."""
    return moment.at, moment.is_end


class _Walk:
    """A walk through time, with the highest position that any client can know."""

    def __init__(self, timeline: Timeline, authorship: Authorship, *, one_server: bool) -> None:
        self.violations: list[Violation] = []
        self._lifecycles, self._one_server = Lifecycles(timeline), one_server
        self._timeline, self._authorship = timeline, authorship
        self._floor = timeline.start
        self._unwritten = _Unwritten(authorship)
        self._positions: dict[int, int] = {}
        self._open_deletes = _OpenDeletes()

    def pass_by(self, moment: _Moment) -> None:
        if isinstance(moment.what, Sight):
            self._floor = max(self._floor, moment.what.revision)
        elif moment.is_end:
            self._floor = max(self._floor, self._positions.pop(id(moment.what), 0))
        else:
            position = self._begin(moment.what)
            if position is not None:
                self._positions[id(moment.what)] = position

    def unexplained_deletions(self) -> list[Violation]:
        """Deletions that no delete of unknown outcome can have made."""
        violations = []
        for change in self._authorship.unexplained_deletions:
            if not self._open_deletes.explain(change, self._timeline.before(change)):
                text = f"{change.key} was deleted at revision {change.revision}, and no client had asked for that"
                violations.append(Violation(Fault.PHANTOM, text))
        return violations

    def _begin(self, operation: Operation) -> int | None:
        """The lowest position of an operation; None when it has none, or needs none."""
        if operation.outcome.result is Result.UNEXPECTED:
            self._add(Fault.TROUBLE, f"{operation}: {operation.outcome.text}")
            return None
        if operation.outcome.status == BUG:
            self._add(Fault.TROUBLE, f"{operation}: {operation.outcome.text}")
        change = self._authorship.change_of(operation)
        if change is not None:
            return self._placed_write(operation, change)
        if operation.outcome.result is Result.UNKNOWN:
            self._open_deletes.note(operation, self._floor)
            return None
        if operation.intent.action is Action.LIST:
            return self._placed_list(operation)
        return self._placed_state(operation)

    def _placed_write(self, operation: Operation, change: Change) -> int:
        revision = change.revision
        if self._one_server and change.kind is Kind.ADDED and not self._lifecycles.admits(change, since=self._floor):
            self._add(Fault.LET_IN, f"{operation} made {change.key} at revision {revision}, known was {self._floor}")
        if revision <= self._floor:
            self._add(
                Fault.REVISION_WENT_BACK, f"{operation} got revision {revision} when {self._floor} was known already"
            )
        return revision

    def _placed_list(self, operation: Operation) -> int | None:
        outcome, bound = operation.outcome, self._bound(operation)
        if outcome.items is None:  # refused for reasons of its own
            return None
        if outcome.revision < bound:
            self._add(Fault.STALE_READ, f"{operation} is of revision {outcome.revision}, when {bound} was known")
        for key in {*self._timeline.keys, *outcome.items}:
            there, shown = self._timeline.state(key, outcome.revision), outcome.items.get(key)
            if there is not None and not _selects(operation, key, there):
                there = None
            if there != shown:
                text = f"{operation} of revision {outcome.revision} shows {key} as {shown}, where it was {there}"
                self._add(_misread(self._timeline, key, shown), text)
        return outcome.revision

    def _placed_state(self, operation: Operation) -> int | None:
        where = _demand(operation)
        if where is None:
            return None
        bound, shown = self._bound(operation), operation.outcome.version
        since = max(bound, shown.revision) if shown else bound  # it cannot have been so before
        position = self._timeline.first(_concerned(operation), since=since, where=where)
        if position is not None and position < self._unwritten.since(operation.answered):
            return position
        self._blame(operation, bound, is_early=position is not None and operation.acknowledged)
        return None

    def _blame(self, operation: Operation, bound: int, *, is_early: bool) -> None:
        key, shown = _concerned(operation), operation.outcome.version
        if operation.intent.action is not Action.GET:
            fault = Fault.WRONG_REFUSAL
        else:
            fault = Fault.PHANTOM if is_early else _misread(self._timeline, key, shown)
        there = self._timeline.state(key, bound)
        self._add(fault, f"{operation} saw {shown or 'nothing'}; at revision {bound}, known by then, it was {there}")

    def _bound(self, operation: Operation) -> int:
        """From where on an operation can be. A read that names the oldest revision may show the past."""
        allowed_old = operation.intent.action in READS and operation.intent.expected is not None
        return (operation.intent.expected or 0) if allowed_old else self._floor

    def _add(self, fault: Fault, text: str) -> None:
        self.violations.append(Violation(fault, text))


class _OpenDeletes:
    """Deletes of unknown outcome. Each can have made one deletion, above the floor at which it began."""

    def __init__(self) -> None:
        self._floors: dict[tuple[str, int | None, str], list[int]] = {}

    def note(self, operation: Operation, floor: int) -> None:
        """In the order of time, hence with floors that do not go down. Takes no notice of other operations."""
        intent = operation.intent
        if intent.action is Action.DELETE:
            self._floors.setdefault((intent.key, intent.expected, intent.uid), []).append(floor)

    def explain(self, change: Change, before: State) -> bool:
        """Whether one is left that can have made the deletion. To be asked in the order of revisions.

        One that names the version or the object can have made no other deletion, so there is no loss in taking it
        first; of those that name none, the earliest.
        """
        if before is None:
            return False
        named = [(before.revision, ""), (None, before.uid), (before.revision, before.uid)]
        for expected, uid in [*named, (None, "")]:
            floors = self._floors.get((change.key, expected, uid), [])
            if floors and floors[0] < change.revision:
                floors.pop(0)
                return True
        return False


class _Unwritten:
    """Which revisions cannot have been there yet at some time, since their write had not begun."""

    def __init__(self, authorship: Authorship) -> None:
        self._times: list[float] = []
        self._lowest: list[int] = []
        lowest: float = math.inf
        for began, revision in sorted(authorship.beginnings(), reverse=True):
            lowest = min(lowest, revision)
            self._times.append(-began)
            self._lowest.append(int(lowest))

    def since(self, moment: float) -> float:
        """The lowest of them; infinity when all writes had begun."""
        count = bisect_left(self._times, -moment)
        return self._lowest[count - 1] if count else math.inf


def _selects(operation: Operation, key: str, version: Version) -> bool:
    """Whether a list is to show a version of a key."""
    return is_in(key, operation.intent.collection) and operation.intent.selection.has(version.value)


def _concerned(operation: Operation) -> str:
    """The key that an answer is about: that of the namespace, if it is the reason of a refusal."""
    is_about_namespace = operation.outcome.result in (Result.HOMELESS, Result.SHUT_OUT)
    return namespace_of(operation.intent.key) if is_about_namespace else operation.intent.key


def _demand(operation: Operation) -> Predicate | None:
    """What the answer says about the key that it concerns; None: nothing."""
    version, intent = operation.outcome.version, operation.intent
    match operation.outcome.result:
        case Result.OK if intent.action is Action.GET:
            return lambda state: state == version
        case Result.EXISTS:
            return lambda state: state is not None
        case Result.ABSENT | Result.HOMELESS:
            return lambda state: state is None
        case Result.SHUT_OUT:
            return lambda state: state is not None and not is_active(state)
        case Result.CONFLICT if intent.expected is not None or intent.uid:
            return lambda state: not intent.allows(state)
        case Result.CONFLICT if is_in(intent.key, NAMESPACES):  # a second deletion
            return lambda state: state is not None and not is_active(state)
    return None


def _misread(timeline: Timeline, key: str, shown: State) -> Fault:
    """What a read that does not fit is called: old, or of something that never was."""
    return Fault.STALE_READ if shown is None or timeline.has(key, shown) else Fault.PHANTOM
