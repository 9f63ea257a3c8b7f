"""The states of every key in the order of revisions: the one history that all observations must fit into."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Mapping

from tests.system.faults.records import Change, Kind, Selection, State, Version, is_in

Predicate = Callable[[State], bool]


class Timeline:
    """Built from changes in any order; asked for states. A position is a revision: the moment right after it."""

    def __init__(self, changes: Iterable[Change], *, start: int = 0, initial: Mapping[str, Version] | None = None):
        self.start = start
        self.changes = sorted(changes, key=lambda change: change.revision)
        self._revisions: dict[str, list[int]] = {}
        self._states: dict[str, list[State]] = {}
        self._next: dict[tuple[str, int], Change] = {}
        for key, version in (initial or {}).items():
            self._revisions[key], self._states[key] = [start], [version]
        for change in self.changes:
            self._append(change)

    def _append(self, change: Change) -> None:
        revisions = self._revisions.setdefault(change.key, [self.start])
        states = self._states.setdefault(change.key, [None])
        before = states[-1]
        if before is not None:
            self._next[change.key, before.revision] = change
        revisions.append(change.revision)
        states.append(None if change.kind is Kind.DELETED else Version(change.revision, change.uid, change.value))

    @property
    def end(self) -> int:
        return self.changes[-1].revision if self.changes else self.start

    @property
    def keys(self) -> Collection[str]:
        return self._states.keys()

    def state(self, key: str, position: int) -> State:
        """The key at a position; before the start it is as at the start."""
        if key not in self._states:
            return None
        return self._states[key][max(bisect_right(self._revisions[key], position) - 1, 0)]

    def before(self, change: Change) -> State:
        """The key right before one of its changes."""
        return self.state(change.key, change.revision - 1)

    def seen_through(self, selection: Selection, collection: str = "") -> list[Change]:
        """The events of a watch of a selection: what enters it is added, what leaves it is deleted."""
        changes = [change for change in self.changes if is_in(change.key, collection)]
        if selection is Selection.ALL:
            return changes
        seen = (_seen_through(selection, change, self.before(change)) for change in changes)
        return [change for change in seen if change is not None]

    def superseding(self, key: str, revision: int) -> Change | None:
        """The change that ended the version which the key got at a revision."""
        return self._next.get((key, revision))

    def has(self, key: str, version: Version) -> bool:
        """Whether the key ever was exactly that."""
        return self.state(key, version.revision) == version

    def first(self, key: str, *, since: int, where: Predicate) -> int | None:
        """The earliest position, not before ``since``, at which the key's state fits."""
        revisions, states = self._revisions.get(key, [self.start]), self._states.get(key, [None])
        for index in range(max(bisect_right(revisions, since) - 1, 0), len(states)):
            if where(states[index]):
                return max(revisions[index], since)
        return None


def _seen_through(selection: Selection, change: Change, before: State) -> Change | None:
    was = before is not None and selection.has(before.value)
    if change.kind is not Kind.DELETED and selection.has(change.value):
        return change._replace(kind=Kind.MODIFIED if was else Kind.ADDED)
    # What leaves is shown as it last was when it was still there.
    return change._replace(kind=Kind.DELETED, value=before.value) if before is not None and was else None
