"""What every engine and the cacher share: delivering events to subscribers, and waiting for a revision."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence

from clusterregistry.apiserver.storage.errors import RevisionInFuture, StorageUnavailable
from clusterregistry.apiserver.storage.interface import (
    Event,
    Interrupted,
    Sink,
    Storage,
    Subscription,
)

WAIT_SECONDS = 3.0
"""How long a read waits for a revision that has not been seen, as in kube-apiserver."""


async def committed_by_now(storage: Storage) -> int:
    """A revision that includes everything committed at the call, without I/O if the store knows one."""
    known = storage.known_revision()
    return await storage.current_revision() if known is None else known


class RevisionWaiter:
    """The newest revision that a store has seen (``value``), and the callers that wait for a later one."""

    def __init__(self, value: int) -> None:
        self.value = value
        self._waiting: dict[asyncio.Future[None], int] = {}

    async def reach(self, revision: int, *, seconds: float) -> None:
        """Returns once the revision is seen. Raises RevisionInFuture after ``seconds``."""
        if revision <= self.value:
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[future] = revision
        try:
            async with asyncio.timeout(seconds):
                await future
        except TimeoutError:
            raise RevisionInFuture(revision, current=self.value) from None
        finally:
            del self._waiting[future]

    def advance(self, revision: int) -> None:
        """Sets the revision, once everything up to it can be read."""
        self.value = revision
        for future, wanted in self._waiting.items():
            if wanted <= revision and not future.done():
                future.set_result(None)

    def fail(self, reason: str) -> None:
        """Ends all waiting with StorageUnavailable."""
        for future in self._waiting:
            if not future.done():
                future.set_exception(StorageUnavailable(reason))


_MOST_DIRECTORIES = 1000
"""Directories of keys whose subscribers are remembered: as many as namespaces that are written to."""

_log = logging.getLogger(__name__)


class Subscriptions:
    """The subscribers of one store, grouped by prefix so that events are filtered once per group.

    Subscribing and closing take constant time, and both may happen during a delivery: a new subscriber does not get the
    events being delivered, a closed one gets no more.
    """

    def __init__(self, prefix: str = "") -> None:
        """``prefix`` is the common prefix of the keys of all events."""
        self._prefix = prefix
        self._groups: dict[str, dict[_Subscriber, None]] = {}
        self._members: _Members | None = None

    def subscribe(
        self,
        prefix: str,
        sink: Sink,
        *,
        interrupted: Interrupted | None = None,
    ) -> Subscription:
        subscriber = _Subscriber(prefix, sink, on_close=self._remove)
        subscriber.interrupted = interrupted
        self._groups.setdefault(prefix, {})[subscriber] = None
        self._members = None
        return subscriber

    def publish(self, events: Sequence[Event]) -> None:
        """Delivers events to the subscribers of their prefixes. A sink that raises does not affect the others.

        It has missed events and is interrupted.
        """
        members = self._members or self._current_members()
        if len(events) == 1:
            for subscriber in members.subscribers_of(events[0].key):
                subscriber.deliver(events)
            return
        for prefix, group in members.groups:
            matching = events
            if prefix != self._prefix:
                matching = [event for event in events if event.key.startswith(prefix)]
            if matching:
                for subscriber in group:
                    subscriber.deliver(matching)

    def interrupt(self) -> None:
        """Reports that events may be missing."""
        for _, group in self._current_members().groups:
            for subscriber in group:
                subscriber.interrupt()

    def _current_members(self) -> _Members:
        if self._members is None:
            self._members = _Members(self._groups)
        return self._members

    def _remove(self, subscriber: _Subscriber) -> None:
        group = self._groups.get(subscriber.prefix, {})
        group.pop(subscriber, None)
        if not group:
            self._groups.pop(subscriber.prefix, None)
        self._members = None


class _Members:
    """A copy of the groups for deliveries, made once until a subscriber is added or removed."""

    __slots__ = ("_by_directory", "groups")

    def __init__(self, groups: Mapping[str, Iterable[_Subscriber]]) -> None:
        self.groups = [(prefix, list(group)) for prefix, group in groups.items()]
        self._by_directory: dict[str, list[_Subscriber]] | None = {}
        if not all(not prefix or prefix.endswith("/") for prefix, _ in self.groups):
            self._by_directory = None

    def subscribers_of(self, key: str) -> Sequence[_Subscriber]:
        """The subscribers whose prefix a key has.

        Nearly all events are single ones, of a few directories: that is faster than to compare each with all prefixes.
        """
        if self._by_directory is None:
            return self._matching(key)
        directory = key[: key.rfind("/") + 1]
        found = self._by_directory.get(directory)
        if found is None:
            if len(self._by_directory) >= _MOST_DIRECTORIES:
                self._by_directory.clear()
            found = self._by_directory[directory] = self._matching(directory)
        return found

    def _matching(self, key: str) -> list[_Subscriber]:
        return [each for prefix, group in self.groups if key.startswith(prefix) for each in group]


class _Subscriber:
    __slots__ = ("_on_close", "_sink", "interrupted", "prefix")

    def __init__(self, prefix: str, sink: Sink, *, on_close: Callable[[_Subscriber], None]) -> None:
        self.prefix, self._on_close = prefix, on_close
        self._sink: Sink | None = sink
        self.interrupted: Interrupted | None = None

    def deliver(self, events: Sequence[Event]) -> None:
        if self._sink is None:
            return
        try:
            self._sink(events)
        except Exception:  # noqa: BLE001 - a sink that raises must not keep a durable write from being acknowledged
            _log.exception("a subscriber of %r failed; it has missed events and reads everything again", self.prefix)
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
        self._on_close(self)
