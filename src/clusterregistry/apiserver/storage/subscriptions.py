"""Handing committed events to those who subscribed; what every engine and the cacher have in common."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence

from clusterregistry.apiserver.storage.interface import Event, Interrupted, Progressed, Sink, Subscription

_log = logging.getLogger(__name__)


class Subscriptions:
    """The subscribers of one store, grouped by prefix so that events are filtered once for all of a group.

    Subscribing and closing take constant time, and both may happen while events are handed out: who
    subscribes then does not get the events under way, who closes gets nothing more.
    """

    def __init__(self, prefix: str = "") -> None:
        """``prefix`` is what the keys of all events begin with."""
        self._prefix = prefix
        self._groups: dict[str, dict[_Subscriber, None]] = {}
        self._round: _Round | None = None

    def subscribe(
        self,
        prefix: str,
        sink: Sink,
        *,
        progressed: Progressed | None = None,
        interrupted: Interrupted | None = None,
    ) -> Subscription:
        subscriber = _Subscriber(prefix, sink, leave=self._leave)
        subscriber.progressed, subscriber.interrupted = progressed, interrupted
        self._groups.setdefault(prefix, {})[subscriber] = None
        self._round = None
        return subscriber

    def publish(self, events: Sequence[Event]) -> None:
        """Hands the events to all subscribers of their prefixes. Whatever a sink does, the others get theirs.

        One that raises has missed events, and is told so.
        """
        for prefix, group in self._present().groups:
            matching = events
            if prefix != self._prefix:
                matching = [event for event in events if event.key.startswith(prefix)]
            if matching:
                for subscriber in group:
                    subscriber.take(matching)

    def progress(self, revision: int) -> None:
        """Tells those who want to know that all events up to the revision are handed out."""
        for progressed in self._present().progressed:
            progressed(revision)

    def interrupt(self) -> None:
        """Tells those who want to know that events may be missing."""
        for _, group in self._present().groups:
            for subscriber in group:
                subscriber.interrupt()

    def _present(self) -> _Round:
        if self._round is None:
            self._round = _Round(self._groups)
        return self._round

    def _leave(self, subscriber: _Subscriber) -> None:
        group = self._groups.get(subscriber.prefix, {})
        group.pop(subscriber, None)
        if not group:
            self._groups.pop(subscriber.prefix, None)
        self._round = None


class _Round:
    """Those who are there when something is handed out; made once for as long as they stay the same."""

    __slots__ = ("groups", "progressed")

    def __init__(self, groups: Mapping[str, Iterable[_Subscriber]]) -> None:
        self.groups = [(prefix, list(group)) for prefix, group in groups.items()]
        self.progressed = [each.progressed for _, group in self.groups for each in group if each.progressed]


class _Subscriber:
    __slots__ = ("_leave", "_sink", "interrupted", "prefix", "progressed")

    def __init__(self, prefix: str, sink: Sink, *, leave: Callable[[_Subscriber], None]) -> None:
        self.prefix, self._leave = prefix, leave
        self._sink: Sink | None = sink
        self.progressed: Progressed | None = None
        self.interrupted: Interrupted | None = None

    def take(self, events: Sequence[Event]) -> None:
        if self._sink is None:
            return
        try:
            self._sink(events)
        except Exception:  # noqa: BLE001 - one that breaks its promise must not keep a durable write from being answered
            _log.exception("a subscriber of %r failed; it has missed events and reads everything anew", self.prefix)
            self.interrupt()

    def interrupt(self) -> None:
        if self._sink is None or self.interrupted is None:
            return
        try:
            self.interrupted()
        except Exception:  # noqa: BLE001 - as above
            _log.exception("a subscriber of %r failed when it was interrupted", self.prefix)

    def close(self) -> None:
        self._sink = None
        self._leave(self)
