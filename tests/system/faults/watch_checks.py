"""What watches must tell: every change once, in the order of revisions, and all of them the same.

The changes of all watches of everything together are the history. A change that none of them told at all is found
elsewhere: as an acknowledged write that is lost, as a read of an unknown version, or as a revision that nothing
explains. What a watch of a selection must tell follows from the history.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tests.system.faults.faults import Fault, Violation
from tests.system.faults.records import Change, Selection, Sight, WatchRecord


def merged(watches: Iterable[WatchRecord]) -> tuple[list[Change], list[Violation]]:
    """The changes that any watch of everything told, each once, and where they contradict each other."""
    told: dict[int, tuple[Change, str]] = {}
    violations = []
    for watch in watches:
        if watch.selection is not Selection.ALL:
            continue
        for sight in watch.sights:
            if sight.change is None:
                continue
            first, teller = told.setdefault(sight.revision, (sight.change, watch.name))
            if first != sight.change:
                text = f"{teller} told {_shown(first)}, {watch.name} told {_shown(sight.change)}"
                violations.append(Violation(Fault.DISAGREEMENT, text))
    return [change for change, _ in told.values()], violations


def check_watch(watch: WatchRecord, changes: Sequence[Change], *, until: int) -> list[Violation]:
    """Compares what a watch told with what it must tell, up to the revision that it was waited for."""
    violations = [Violation(Fault.TROUBLE, f"{watch.name}: {trouble}") for trouble in watch.troubles]
    violations += _check_order(watch)
    told = {sight.revision for sight in watch.sights if sight.change is not None}
    violations += [
        Violation(Fault.GAP, f"{watch.name} was not told {_shown(change)}")
        for change in changes
        if watch.start < change.revision <= until and change.revision not in told
    ]
    return violations + _check_content(watch, changes)


def check_numbering(changes: Sequence[Change], *, start: int) -> list[Violation]:
    """For a store to which nobody else writes: every revision since the start is a change that was told."""
    violations, last = [], start
    for change in changes:
        if change.revision > last + 1:
            text = f"nobody was told what revisions {last + 1} to {change.revision - 1} are"
            violations.append(Violation(Fault.GAP, text))
        last = max(last, change.revision)
    return violations


def _check_content(watch: WatchRecord, changes: Sequence[Change]) -> list[Violation]:
    """For a watch of a selection; those of everything are compared with each other."""
    if watch.selection is Selection.ALL:
        return []
    right = {change.revision: change for change in changes}
    wrong = [change for _, _, change in watch.sights if change is not None and change != right.get(change.revision)]
    return [
        Violation(
            Fault.DISAGREEMENT, f"{watch.name} told {_shown(change)}, right is {_shown(right.get(change.revision))}"
        )
        for change in wrong
    ]


def _check_order(watch: WatchRecord) -> list[Violation]:
    violations, told, last = [], set(), watch.start
    for sight in watch.sights:
        if sight.change is not None and sight.revision in told:
            violations.append(Violation(Fault.DUPLICATE, f"{watch.name} was told {_seen(sight)} again"))
        elif _is_late(sight, last):
            violations.append(Violation(Fault.REORDERED, f"{watch.name} was told {_seen(sight)} after revision {last}"))
        if sight.change is not None:
            told.add(sight.revision)
        last = max(last, sight.revision)
    return violations


def _is_late(sight: Sight, last: int) -> bool:
    """A bookmark may repeat the last revision, since it tells nothing new; a change may not."""
    return sight.revision < last or (sight.revision == last and sight.change is not None)


def _seen(sight: Sight) -> str:
    return _shown(sight.change) if sight.change else f"a bookmark of revision {sight.revision}"


def _shown(change: Change | None) -> str:
    return f"revision {change.revision} ({change.kind} {change.key} {change.value})" if change else "nothing"
