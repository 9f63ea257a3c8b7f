"""What becomes of namespaces: which changes the server makes by itself to end one, and what must not outlive it.

A create may be admitted before its namespace is deleted and come after the server has found that empty. Such an object
is deleted when it shows, be it after the namespace has gone, or after there is another of the same name.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.system.faults.faults import Fault, Violation
from tests.system.faults.records import ENDING, NAMESPACES, Change, Kind, State, is_in, namespace_of
from tests.system.faults.timeline import Timeline


class Lifecycles:
    """The namespaces of a timeline."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._births: dict[str, int] = {}
        for change in timeline.changes:
            if change.kind is Kind.ADDED:
                self._births.setdefault(change.uid, change.revision)

    def is_by_server(self, change: Change) -> bool:
        """Whether the server makes the change by itself, since a namespace is being deleted, or is gone."""
        if is_in(change.key, NAMESPACES):
            before = self._timeline.before(change)
            ends = before is not None and before.value.status == ENDING
            return ends and change.value == (before.value if before else None)
        namespace = namespace_of(change.key)
        if not namespace or change.kind is not Kind.DELETED:
            return False
        birth = self._births.get(change.uid, self._timeline.start)
        ended = self._timeline.first(namespace, since=birth, where=lambda state: not is_active(state))
        return ended is not None and ended < change.revision

    def admits(self, change: Change, *, since: int) -> bool:
        """Whether the namespace of a new object was there, and not being deleted, at some moment since a revision."""
        namespace = namespace_of(change.key)
        if not namespace:
            return True
        found = self._timeline.first(namespace, since=since, where=is_active)
        return found is not None and found < change.revision

    def violations(self) -> list[Violation]:
        return [*self._early_ends(), *self._survivors()]

    def removed(self) -> int:
        """How many namespaces came to their end."""
        return sum(1 for _ in self._ends())

    def _ends(self) -> Iterator[Change]:
        for change in self._timeline.changes:
            if change.kind is Kind.DELETED and is_in(change.key, NAMESPACES):
                yield change

    def _early_ends(self) -> Iterator[Violation]:
        """Namespaces that went without having been marked, or before what was in them when they were marked."""
        for end in self._ends():
            before = self._timeline.before(end)
            if before is None or is_active(before):
                yield Violation(Fault.PHANTOM, f"{end.key} went at revision {end.revision} and was not marked before")
                continue
            marked = self._marked(end.key, before.uid)
            for key in self._content(end.key):
                then, now = self._timeline.state(key, marked), self._timeline.state(key, end.revision)
                if then is not None and now is not None and then.uid == now.uid:
                    text = f"{key} ({now}) was there when {end.key} was marked at {marked}"
                    yield Violation(Fault.SURVIVED, f"{text}, and still when that went at {end.revision}")

    def _survivors(self) -> Iterator[Violation]:
        """What is left at the end in a namespace that is not there, or was there before that."""
        for key in self._timeline.keys:
            state, namespace = self._timeline.state(key, self._timeline.end), namespace_of(key)
            if state is None or not namespace:
                continue
            birth = self._births.get(state.uid, self._timeline.start)
            ended = self._timeline.first(namespace, since=birth, where=lambda state: not is_active(state))
            if ended is not None:
                yield Violation(Fault.SURVIVED, f"{key} ({state}) is left, and {namespace} ended at revision {ended}")

    def _marked(self, key: str, uid: str) -> int:
        """The revision at which a namespace was marked."""
        birth = self._births.get(uid, self._timeline.start)
        marked = self._timeline.first(key, since=birth, where=lambda state: not is_active(state))
        return birth if marked is None else marked

    def _content(self, namespace: str) -> Iterator[str]:
        return (key for key in self._timeline.keys if namespace_of(key) == namespace)


def is_active(state: State) -> bool:
    """Whether a namespace is there and is to stay."""
    return state is not None and state.value.status != ENDING
