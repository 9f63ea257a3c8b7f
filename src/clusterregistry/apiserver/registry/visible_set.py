"""What a client knows that may see only some objects, and what it has to be told next."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter

from clusterregistry.apiserver.registry.broadcaster import ADDED, DELETED, MODIFIED, Change
from clusterregistry.apiserver.registry.list import ListOptions
from clusterregistry.apiserver.registry.object_view import name_of
from clusterregistry.apiserver.storage.interface import Event, KeyValue
from clusterregistry.apiserver.storage.object_bytes import at_revision

_by_revision = attrgetter("revision")


class PartialView:
    """The objects that a client has been told of. Whatever happens to rights, it is told nothing twice.

    Changes come in an order in which the client can be cut off anywhere and resume: by the revision of what it saw
    last it has either seen all before that, or is older than the change of rights and begins anew.
    """

    def __init__(self, options: ListOptions) -> None:
        self.names: frozenset[str] | None = frozenset()
        """Which objects the client may see; None: all."""
        self._options = options
        self._told: dict[str, KeyValue] = {}

    def begin(self, items: Iterable[KeyValue], *, names: frozenset[str] | None) -> list[KeyValue]:
        """The client knows what it may see of these objects, which are all that exist. Returns just those."""
        self.names = names
        seen = [kv for kv in items if self._shows(kv)]
        self._told = {kv.key: kv for kv in seen}
        return seen

    def changes(self, events: Iterable[Event]) -> Iterator[Change]:
        """What events mean to the client while its rights stay as they are."""
        for event in events:
            change = self._change(event)
            if change is not None:
                yield change

    def turn(
        self,
        events: Sequence[Event],
        *,
        names: frozenset[str] | None,
        existing: Sequence[KeyValue],
        seen: int,
        since: int,
    ) -> Iterator[Change]:
        """What it means that rights are others since a revision, together with all events since ``seen``.

        ``existing`` are all objects as they are after the events. What the client no longer sees is DELETED at
        ``seen``, which lies before the change of rights, and what it sees from then on ADDED as it was at the change:
        only behind that it is told what has happened since.
        """
        self.names = names
        for key, kv in list(self._told.items()):
            if not self._may_see(kv):
                del self._told[key]
                yield Change(DELETED, at_revision(kv, seen))
        known = [event for event in events if event.revision <= since and event.key in self._told]
        later = [event for event in events if event.revision > since]
        there = _before(later, existing)
        appearing = [Event(kv.key, kv.revision, kv, None) for kv in there if kv.key not in self._told]
        yield from self.changes([*sorted([*known, *appearing], key=_by_revision), *later])

    def _change(self, event: Event) -> Change | None:
        told, now = self._told.get(event.key), event.current
        if now is not None and self._shows(now):
            if told is not None and told.revision >= now.revision:
                return None
            self._told[event.key] = now
            return Change(MODIFIED if told else ADDED, now)
        if told is None:
            return None
        del self._told[event.key]
        return Change(DELETED, at_revision(told, event.revision))

    def _shows(self, kv: KeyValue) -> bool:
        return self._may_see(kv) and (self._options.selects_all or self._options.selects(kv))

    def _may_see(self, kv: KeyValue) -> bool:
        return self.names is None or name_of(kv) in self.names


def _before(events: Iterable[Event], existing: Iterable[KeyValue]) -> Iterator[KeyValue]:
    """The objects as they were before some events, of those that there are afterwards."""
    changed: dict[str, KeyValue | None] = {}
    for event in events:
        changed.setdefault(event.key, event.previous)
    yield from (kv for kv in existing if kv.key not in changed)
    yield from (kv for kv in changed.values() if kv is not None)
