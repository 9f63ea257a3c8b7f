"""Checks of watches: every change comes once, in the order of revisions, and is the same in all of them.

The changes of all watches of everything, of each resource, together are the history. A change that none of them has is
found elsewhere: as an acknowledged write that is lost, as a read of an unknown version, or as a revision that nothing
explains. The events of a watch of a selection, or of a namespace, follow from the history.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tests.system.faults.faults import Fault, Violation
from tests.system.faults.records import Change, Sight, WatchRecord, is_in


def merged(watches: Iterable[WatchRecord]) -> tuple[list[Change], list[Violation]]:
    """The changes of all watches of everything, each once, and where they contradict each other."""
    seen: dict[int, tuple[Change, str]] = {}
    violations = []
    for watch in watches:
        if not watch.is_of_everything:
            continue
        for sight in watch.sights:
            if sight.change is None:
                continue
            first, other = seen.setdefault(sight.revision, (sight.change, watch.name))
            if first != sight.change:
                text = f"{other} had {_shown(first)}, {watch.name} had {_shown(sight.change)}"
                violations.append(Violation(Fault.DISAGREEMENT, text))
    return [change for change, _ in seen.values()], violations


def check_watch(watch: WatchRecord, changes: Sequence[Change], *, until: int) -> list[Violation]:
    """Compares the events of a watch with the changes, up to the revision that was awaited."""
    violations = [Violation(Fault.TROUBLE, f"{watch.name}: {trouble}") for trouble in watch.troubles]
    violations += _check_order(watch)
    seen = {sight.revision for sight in watch.sights if sight.change is not None}
    violations += [
        Violation(Fault.GAP, f"{watch.name} did not get {_shown(change)}")
        for change in changes
        if watch.start < change.revision <= until and change.revision not in seen
    ]
    return violations + _check_content(watch, changes)


def check_numbering(changes: Sequence[Change], *, start: int) -> list[Violation]:
    """For a store without other writers: every revision since the start is a change of a watch."""
    violations, last = [], start
    for change in changes:
        if change.revision > last + 1:
            text = f"no watch has revisions {last + 1} to {change.revision - 1}"
            violations.append(Violation(Fault.GAP, text))
        last = max(last, change.revision)
    return violations


def _check_content(watch: WatchRecord, changes: Sequence[Change]) -> list[Violation]:
    """For a watch of a selection or of a namespace; those of everything are compared with each other."""
    right = {change.revision: change for change in changes}
    seen = [change for _, _, change in watch.sights if change is not None]
    if watch.is_of_everything:
        wrong = [change for change in seen if not is_in(change.key, watch.collection)]
    else:
        wrong = [change for change in seen if change != right.get(change.revision)]
    return [
        Violation(
            Fault.DISAGREEMENT, f"{watch.name} had {_shown(change)}, right is {_shown(right.get(change.revision))}"
        )
        for change in wrong
    ]


def _check_order(watch: WatchRecord) -> list[Violation]:
    violations, seen, last = [], set(), watch.start
    for sight in watch.sights:
        if sight.change is not None and sight.revision in seen:
            violations.append(Violation(Fault.DUPLICATE, f"{watch.name} got {_seen(sight)} again"))
        elif _is_late(sight, last):
            violations.append(Violation(Fault.REORDERED, f"{watch.name} got {_seen(sight)} after revision {last}"))
        if sight.change is not None:
            seen.add(sight.revision)
        last = max(last, sight.revision)
    return violations


def _is_late(sight: Sight, last: int) -> bool:
    """A bookmark may repeat the last revision, since it has no change; a change may not."""
    return sight.revision < last or (sight.revision == last and sight.change is not None)


def _seen(sight: Sight) -> str:
    return _shown(sight.change) if sight.change else f"a bookmark of revision {sight.revision}"


def _shown(change: Change | None) -> str:
    return f"revision {change.revision} ({change.kind} {change.key} {change.value})" if change else "nothing"
