"""The keys in memory and their recent history: the last events, and pages of earlier revisions."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from heapq import merge
from itertools import islice

from clusterregistry.apiserver.storage.interface import Event, KeyValue, Page

_LAST_CHARACTER = "\U0010ffff"

_OVERHEAD = 400
"""About the bytes of an event and its key-values, besides the value."""


class RecentEvents:
    """A queue of events without gaps, bounded by number and by memory."""

    def __init__(self, *, most_events: int, most_bytes: int) -> None:
        self._most_events, self._most_bytes = most_events, most_bytes
        self._events: deque[Event] = deque()
        self._bytes = 0
        self.floor = 0
        """The queue holds all events after this revision."""

    def __len__(self) -> int:
        return len(self._events)

    def append(self, event: Event) -> None:
        self._events.append(event)
        self._bytes += _cost(event)
        while len(self._events) > self._most_events or self._bytes > self._most_bytes:
            self._drop_oldest()

    def compact(self, revision: int) -> None:
        """Drops the events up to a revision."""
        while self._events and self._events[0].revision <= revision:
            self._drop_oldest()
        self.floor = max(self.floor, revision)

    def restart(self, revision: int) -> None:
        """Drops all events and begins after a revision, which may be lower than earlier ones."""
        self._events.clear()
        self._bytes = 0
        self.floor = revision

    def after(self, revision: int) -> Sequence[Event]:
        """The events after a revision, newest first. The revision must not be below the floor."""
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
    # The current value is shared: it is that of an existing key, or the previous one of a later event.
    return _OVERHEAD + (len(event.previous.value) if event.previous is not None else 0)


class Snapshot:
    """All keys of the newest revision. Earlier revisions are derived from it by undoing events."""

    def __init__(self) -> None:
        self.items: dict[str, KeyValue] = {}
        self._keys: list[str] = []
        self._sorted: list[KeyValue] = []
        """The key-values in the order of their keys: looking each one up would take a list ten times as long."""

    def load(self, items: Sequence[KeyValue]) -> None:
        self.items = {item.key: item for item in items}
        self._keys = sorted(self.items)
        self._sorted = [self.items[key] for key in self._keys]

    def apply(self, key: str, current: KeyValue | None) -> KeyValue | None:
        """Sets or removes a key; returns its previous key-value."""
        previous = self.items.get(key)
        at = bisect_left(self._keys, key)
        if current is not None:
            self.items[key] = current
            if previous is not None:
                self._sorted[at] = current
            else:
                self._keys.insert(at, key)
                self._sorted.insert(at, current)
        elif previous is not None:
            del self.items[key], self._keys[at], self._sorted[at]
        return previous

    def changes_to(self, items: Sequence[KeyValue], *, revision: int) -> list[Event]:
        """The events that lead from this state to the given keys, in the order of revisions.

        The states between are unknown: a missing key counts as deleted at ``revision``. Values are compared too, since
        a store that was restored from a backup uses revisions again.
        """
        present = {item.key for item in items}
        deleted = [Event(key, revision, None, old) for key, old in self.items.items() if key not in present]
        changed = [Event(item.key, item.revision, item, self.items.get(item.key)) for item in items]
        changed = [event for event in changed if event.previous != event.current]
        return sorted(changed, key=lambda event: event.revision) + deleted

    def count(self, prefix: str) -> int:
        start, end = self._range(prefix, "")
        return end - start

    def page(self, prefix: str, *, revision: int, after: str, limit: int) -> Page:
        """A page of the newest revision."""
        start, end = self._range(prefix, after)
        stop = min(end, start + limit) if limit > 0 else end
        return Page(self._sorted[start:stop], revision, end - stop)

    def page_before(self, undone: Sequence[Event], prefix: str, *, revision: int, after: str, limit: int) -> Page:
        """A page of the state before some events, which are given newest first."""
        past = {event.key: event.previous for event in undone if event.key.startswith(prefix) and event.key > after}
        added = sorted(key for key, item in past.items() if item is not None and key not in self.items)
        removed = sum(1 for key, item in past.items() if item is None and key in self.items)
        start, end = self._range(prefix, after)
        keys = merge(map(self._keys.__getitem__, range(start, end)), added)
        items = list(islice(self._present(keys, past), limit if limit > 0 else None))
        return Page(items, revision, end - start + len(added) - removed - len(items))

    def _present(self, keys: Iterator[str], past: Mapping[str, KeyValue | None]) -> Iterator[KeyValue]:
        for key in keys:
            item = past[key] if key in past else self.items[key]
            if item is not None:
                yield item

    def _range(self, prefix: str, after: str) -> tuple[int, int]:
        """The indexes at which the keys with a prefix and after another key begin and end."""
        range_end = _range_end(prefix)
        end = bisect_left(self._keys, range_end) if range_end else len(self._keys)
        start = bisect_left(self._keys, prefix)
        if after:
            start = max(start, bisect_right(self._keys, after))
        return min(start, end), end


def _range_end(prefix: str) -> str:
    """The first string after all strings with a prefix; "" if there is none."""
    stripped = prefix.rstrip(_LAST_CHARACTER)
    return stripped[:-1] + chr(ord(stripped[-1]) + 1) if stripped else ""
