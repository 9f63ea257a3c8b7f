"""The check of a whole record, and its figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from tests.system.faults.authorship import Authorship
from tests.system.faults.faults import Fault, Violation
from tests.system.faults.history import check_operations
from tests.system.faults.lifecycles import Lifecycles
from tests.system.faults.records import Action, Record, Result, namespace_of
from tests.system.faults.timeline import Timeline
from tests.system.faults.watch_checks import check_numbering, check_watch, merged


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The violations, and how much was checked."""

    violations: list[Violation]
    operations: int
    reads: int
    acknowledged: int
    """Writes that were answered as done."""
    in_namespaces: int
    """Of those, the ones of namespaced objects."""
    lost: int
    """Of those, the ones that are nowhere in the history."""
    refused: int
    unknown: int
    """Writes of which the client does not know whether they happened."""
    unknown_but_done: int
    """Of those, the ones that did; exact when there are no violations."""
    removed_namespaces: int
    by_server: int
    """Revisions that the server made by itself to end namespaces."""
    changes: int
    """Revisions in the history."""
    events: int
    """Events of all watchers together."""
    connections: int
    """Of all watchers."""

    outcomes: Counter[tuple[Action, Result]]
    """Operations by kind and result."""
    without_a_write: float
    """The longest time in seconds in which no write was acknowledged."""

    def figures(self) -> str:
        return (
            f"{self.operations} operations: {self.reads} reads, "
            f"{self.acknowledged} writes acknowledged ({self.in_namespaces} of them in namespaces, {self.lost} lost), "
            f"{self.refused} refused, "
            f"{self.unknown} of unknown outcome (of which {self.unknown_but_done} happened); "
            f"{self.removed_namespaces} namespaces removed; {self.changes} revisions, "
            f"of which {self.by_server} by the server itself, "
            f"{self.events} watch events over {self.connections} connections; "
            f"at most {self.without_a_write:.1f} s without an acknowledged write"
        )

    def table(self) -> list[str]:
        """How many of each kind came to what."""
        lines = []
        for action in Action:
            counted = [f"{count} {result}" for result in Result if (count := self.outcomes[action, result])]
            lines += [f"  {action:<7} {', '.join(counted)}"] if counted else []
        return lines

    def report(self, *, most: int = 20) -> str:
        """For a person: the figures, and the first of the violations."""
        shown = [f"  {violation}" for violation in self.violations[:most]]
        left = len(self.violations) - len(shown)
        more = [f"  ... and {left} more"] if left else []
        return "\n".join([self.figures(), *self.table(), f"{len(self.violations)} violations", *shown, *more])


def check(record: Record, *, sole_writer: bool) -> Verdict:
    """Checks a record.

    ``sole_writer``: nothing but the workload wrote, and through one server, so it must know what every revision is.
    """
    changes, violations = merged(record.watches)
    violations += [Violation(Fault.TROUBLE, trouble) for trouble in record.troubles]
    timeline = Timeline(changes, start=record.start, initial=record.initial)
    authorship = Authorship(timeline, record.operations)
    violations += check_operations(
        timeline, record.operations, watches=record.watches, authorship=authorship, one_server=sole_writer
    )
    violations += Lifecycles(timeline).violations()
    kinds = {(watch.selection, watch.collection) for watch in record.watches}
    seen = {(selection, collection): timeline.seen_through(selection, collection) for selection, collection in kinds}
    for watch in record.watches:
        violations += check_watch(watch, seen[watch.selection, watch.collection], until=record.end)
    if sole_writer:
        violations += check_numbering(timeline.changes, start=record.start)
    return _verdict(record, timeline, violations, by_server=authorship.by_server)


def _verdict(record: Record, timeline: Timeline, violations: list[Violation], *, by_server: int) -> Verdict:
    writes = [operation for operation in record.operations if operation.is_write]
    acknowledged = sum(write.acknowledged for write in writes)
    lost = sum(violation.fault is Fault.LOST_WRITE for violation in violations)
    unknown = sum(write.outcome.result is Result.UNKNOWN for write in writes)
    return Verdict(
        violations=violations,
        operations=len(record.operations),
        reads=len(record.operations) - len(writes),
        acknowledged=acknowledged,
        in_namespaces=sum(write.acknowledged and bool(namespace_of(write.intent.key)) for write in writes),
        lost=lost,
        refused=len(writes) - acknowledged - unknown,
        unknown=unknown,
        unknown_but_done=max(len(timeline.changes) - by_server - (acknowledged - lost), 0),
        removed_namespaces=Lifecycles(timeline).removed(),
        by_server=by_server,
        changes=len(timeline.changes),
        events=sum(sight.change is not None for watch in record.watches for sight in watch.sights),
        connections=sum(watch.connections for watch in record.watches),
        outcomes=Counter((operation.intent.action, operation.outcome.result) for operation in record.operations),
        without_a_write=_longest_gap(write.answered for write in writes if write.acknowledged),
    )


def _longest_gap(times: Iterable[float]) -> float:
    return max((later - earlier for earlier, later in pairwise(sorted(times))), default=0.0)
