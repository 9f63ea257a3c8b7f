"""Watches: every committed change is encoded once for each kind of watcher and handed to all of them.

Watchers with the same selectors and representation form a channel. A watcher only collects frames;
its own task writes them. One that does not keep up is ended and never waited for: it can start again
from the last resource version that it has seen.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from clusterregistry.registry.listing import ListOptions
from clusterregistry.registry.objects import at_revision
from clusterregistry.storage.interface import Event, KeyValue, Storage

ADDED, MODIFIED, DELETED = "ADDED", "MODIFIED", "DELETED"

Encode = Callable[[str, KeyValue], bytes]
"""One event as a frame on the wire: its type and its object."""

Frame = tuple[int, bytes]
"""An encoded event and its revision."""

T = TypeVar("T")

FRAMES_LIMIT = 5000
BYTES_LIMIT = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Change:
    """An event as a watcher with selectors sees it."""

    type: str
    kv: KeyValue


def seen_through(options: ListOptions, event: Event) -> Change | None:
    """What an event is to a watcher: objects that enter its selection are ADDED, those that leave it DELETED.

    A DELETED object is shown as it last was, with the revision of its deletion.
    """
    now = event.current if event.current and (options.selects_all or options.selects(event.current)) else None
    before = event.previous if event.previous and (options.selects_all or options.selects(event.previous)) else None
    if now:
        return Change(MODIFIED if before else ADDED, now)
    return Change(DELETED, at_revision(before, event.revision)) if before else None


class Watcher(Generic[T]):
    """What waits to be written: frames, or events of which frames are made only then.

    ``on_overflow`` is called once, when the client turns out to be too slow.
    """

    __slots__ = ("_on_overflow", "_pending", "_size", "_waiter", "ended")

    def __init__(self, on_overflow: Callable[[], None]) -> None:
        self._on_overflow = on_overflow
        self._pending: list[T] = []
        self._size = 0
        self._waiter: asyncio.Future[None] | None = None
        self.ended = False

    def offer(self, items: Sequence[T], size: int) -> None:
        """Takes items of ``size`` bytes in all; ends the watch instead when too much waits already."""
        if self.ended:
            return
        if self._size + size > BYTES_LIMIT or len(self._pending) + len(items) > FRAMES_LIMIT:
            self.abort()
            return
        self._pending.extend(items)
        self._size += size
        self.wake()

    def abort(self) -> None:
        """Ends the watch and its connection: its task may be waiting for the client to read, for ever."""
        self.end()
        self._on_overflow()

    def end(self) -> None:
        """Nothing more; what waits is dropped. Idempotent."""
        self.ended = True
        self._pending.clear()
        self.wake()

    async def next(self, timeout: float) -> list[T]:  # noqa: ASYNC109 - a bookmark is due then, nothing fails
        """What waits, or nothing when the time is up, the watch has ended or somebody wakes it."""
        if not self._pending and not self.ended:
            loop = asyncio.get_running_loop()
            self._waiter = loop.create_future()
            alarm = loop.call_later(timeout, self.wake)
            try:
                await self._waiter
            finally:
                alarm.cancel()
                self._waiter = None
        return self.take()

    def take(self) -> list[T]:
        """What waits by now."""
        taken, self._pending, self._size = self._pending, [], 0
        return taken

    def wake(self) -> None:
        """Has ``next`` return, though nothing may wait."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class _Channel:
    __slots__ = ("encode", "options", "watchers")

    def __init__(self, options: ListOptions, encode: Encode) -> None:
        self.options = options
        self.encode = encode
        self.watchers: dict[Watcher[Frame], None] = {}

    def publish(self, events: Sequence[Event]) -> None:
        frames = list(encoded(self.options, self.encode, events))
        if frames:
            size = sum(len(data) for _, data in frames)
            for watcher in list(self.watchers):
                watcher.offer(frames, size)


class _EventChannel:
    """The channel of one watcher that makes its frames itself."""

    __slots__ = ("_concerns", "watchers")

    def __init__(self, watcher: Watcher[Event], concerns: Callable[[Event], bool]) -> None:
        self.watchers: dict[Watcher[Event], None] = {watcher: None}
        self._concerns = concerns

    def publish(self, events: Sequence[Event]) -> None:
        wanted = [event for event in events if self._concerns(event)]
        if wanted:
            size = sum(len(event.current.value) for event in wanted if event.current)
            for watcher in list(self.watchers):
                watcher.offer(wanted, size)


def encoded(options: ListOptions, encode: Encode, events: Iterable[Event]) -> Iterable[Frame]:
    """The frames of the events that concern a watcher."""
    for event in events:
        change = seen_through(options, event)
        if change:
            yield event.revision, encode(change.type, change.kv)


class Hub:
    """All watchers of one resource."""

    def __init__(self, storage: Storage, prefix: str) -> None:
        self._channels: dict[Hashable, _Channel | _EventChannel] = {}
        self._keys: dict[Watcher[Any], Hashable] = {}
        self._closed = False
        self._subscription = storage.subscribe(prefix, self._publish, interrupted=self._interrupt)

    def join(
        self, options: ListOptions, *, representation: Hashable, encode: Encode, on_overflow: Callable[[], None]
    ) -> Watcher[Frame]:
        """A watcher that collects the frame of every event committed from now on."""
        watcher = Watcher[Frame](on_overflow)
        if self._closed:
            watcher.end()
            return watcher
        key = (options.labels, options.fields, representation)
        channel = self._channels.get(key)
        if not isinstance(channel, _Channel):
            channel = self._channels[key] = _Channel(options, encode)
        channel.watchers[watcher] = None
        self._keys[watcher] = key
        return watcher

    def join_alone(self, concerns: Callable[[Event], bool], *, on_overflow: Callable[[], None]) -> Watcher[Event]:
        """A watcher that collects the events themselves, as far as they concern it when they are committed."""
        watcher = Watcher[Event](on_overflow)
        if self._closed:
            watcher.end()
            return watcher
        self._keys[watcher] = watcher
        self._channels[watcher] = _EventChannel(watcher, concerns)
        return watcher

    def leave(self, watcher: Watcher[Any]) -> None:
        """Forgets a watcher. Idempotent."""
        watcher.end()
        key = self._keys.pop(watcher, None)
        if key is not None:
            channel = self._channels[key]
            del channel.watchers[watcher]
            if not channel.watchers:
                del self._channels[key]

    @property
    def watchers(self) -> int:
        """How many watches are open."""
        return len(self._keys)

    def end_all(self) -> None:
        """Ends every watch, also those that would come: the server is stopping."""
        self._closed = True
        for watcher in list(self._keys):
            watcher.end()

    def _interrupt(self) -> None:
        """Ends the watches there are: events are missing. Who resumes gets what is known since then, or a 410.

        As kube-apiserver does when its own watch on etcd fails.
        """
        for watcher in list(self._keys):
            watcher.end()

    def abort_all(self) -> None:
        """Ends the connections of those who do not even take their goodbye."""
        for watcher in list(self._keys):
            watcher.abort()

    def close(self) -> None:
        self.end_all()
        self._subscription.close()

    def _publish(self, events: Sequence[Event]) -> None:
        for channel in list(self._channels.values()):
            channel.publish(events)
