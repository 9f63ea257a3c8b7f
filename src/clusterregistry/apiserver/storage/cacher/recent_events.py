"""The last events, kept so that lists of the recent past and resumed watches need no disk."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from clusterregistry.apiserver.storage.interface import Event

_OVERHEAD = 400
"""Bytes, about, of an event and its key-values beside the value."""


class RecentEvents:
    """A queue of events without gaps, bounded by their number and by the memory they hold."""

    def __init__(self, *, most_events: int, most_bytes: int) -> None:
        self._most_events, self._most_bytes = most_events, most_bytes
        self._events: deque[Event] = deque()
        self._bytes = 0
        self.floor = 0
        """All events behind this revision are here."""

    def __len__(self) -> int:
        return len(self._events)

    def append(self, event: Event) -> None:
        self._events.append(event)
        self._bytes += _cost(event)
        while len(self._events) > self._most_events or self._bytes > self._most_bytes:
            self._drop_oldest()

    def forget(self, revision: int) -> None:
        """Drops the events up to a revision."""
        while self._events and self._events[0].revision <= revision:
            self._drop_oldest()
        self.floor = max(self.floor, revision)

    def begin_at(self, revision: int) -> None:
        """Drops all events: what came up to a revision is not known, and it may be lower than one that was here."""
        self._events.clear()
        self._bytes = 0
        self.floor = revision

    def after(self, revision: int) -> Sequence[Event]:
        """The events behind a revision, newest first. The revision must not be below the floor."""
        found: list[Event] = []
        for event in reversed(self._events):
            if event.revision <= revision:
                break
            found.append(event)
        return found

    def _drop_oldest(self) -> None:
        event = self._events.popleft()
        self._bytes -= _cost(event)
        self.floor = max(self.floor, event.revision)


def _cost(event: Event) -> int:
    # The current value is either that of a live key or the previous one of a later event.
    return _OVERHEAD + (len(event.previous.value) if event.previous is not None else 0)
