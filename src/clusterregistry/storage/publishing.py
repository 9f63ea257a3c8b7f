"""Handing committed events to those who subscribed; what every engine and the cacher have in common."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from clusterregistry.storage.interface import Event, Interrupted, Progressed, Sink, Subscription

_log = logging.getLogger(__name__)


class Publisher:
    """The subscribers of one store, grouped by prefix so that events are filtered once for all of a group.

    Subscribing and closing take constant time, and both may happen while events are handed out: who
    subscribes then does not get the events under way, who closes gets nothing more.
    """

    def __init__(self) -> None:
        self._groups: dict[str, dict[_Subscriber, None]] = {}

    def subscribe(
        self,
        prefix: str,
        sink: Sink,
        *,
        progressed: Progressed | None = None,
        interrupted: Interrupted | None = None,
    ) -> Subscription:
        subscriber = _Subscriber(prefix, sink, self._groups)
        subscriber.progressed, subscriber.interrupted = progressed, interrupted
        self._groups.setdefault(prefix, {})[subscriber] = None
        return subscriber

    def publish(self, events: Sequence[Event]) -> None:
        """Hands the events to all subscribers of their prefixes. Whatever a sink does, the others get theirs."""
        handed_out: list[tuple[_Subscriber, Sequence[Event]]] = []
        for prefix, group in self._groups.items():
            matching = [event for event in events if event.key.startswith(prefix)]
            if matching:
                handed_out += [(subscriber, matching) for subscriber in group]
        for subscriber, theirs in handed_out:
            subscriber.take(theirs)

    def progress(self, revision: int) -> None:
        """Tells those who want to know that all events up to the revision are handed out."""
        for subscriber in self._all():
            if subscriber.progressed:
                subscriber.progressed(revision)

    def interrupt(self) -> None:
        """Tells those who want to know that events may be missing."""
        for subscriber in self._all():
            if subscriber.interrupted:
                subscriber.interrupted()

    def _all(self) -> list[_Subscriber]:
        return [subscriber for group in self._groups.values() for subscriber in group]


class _Subscriber:
    __slots__ = ("_groups", "_prefix", "_sink", "interrupted", "progressed")

    def __init__(self, prefix: str, sink: Sink, groups: dict[str, dict[_Subscriber, None]]) -> None:
        self._prefix, self._groups = prefix, groups
        self._sink: Sink | None = sink
        self.progressed: Progressed | None = None
        self.interrupted: Interrupted | None = None

    def take(self, events: Sequence[Event]) -> None:
        if self._sink is None:
            return
        try:
            self._sink(events)
        except Exception:  # noqa: BLE001 - one that breaks its promise must not keep a durable write from being answered
            _log.exception("a subscriber of %r failed; it may have missed events", self._prefix)

    def close(self) -> None:
        self._sink = None
        group = self._groups.get(self._prefix, {})
        group.pop(self, None)
        if not group:
            self._groups.pop(self._prefix, None)
