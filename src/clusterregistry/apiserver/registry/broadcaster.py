"""Watches: every committed change is encoded once for each kind of watcher and told to all of them.

Watchers with the same selectors and representation form a channel. It tells them some at a time, and lets others have
their turn in between; what is committed meanwhile is told together afterwards.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from clusterregistry.apiserver.registry import watcher as watchers
from clusterregistry.apiserver.registry.list import ListOptions
from clusterregistry.apiserver.registry.watcher import Batch, Frame, FrameWatcher, Watcher
from clusterregistry.apiserver.storage.interface import Event, KeyValue, Storage
from clusterregistry.apiserver.storage.object_bytes import at_revision

ADDED, MODIFIED, DELETED = "ADDED", "MODIFIED", "DELETED"

_log = logging.getLogger(__name__)

Encode = Callable[[str, KeyValue], bytes]
"""One event as a frame on the wire: its type and its object."""

_AT_A_TIME = 400
"""Watchers that are told before others have their turn: each takes about as long as a tenth of a request."""

_FEW = 10
"""Watchers up to which a channel tells every change at once."""

_PAUSE = 0.03
"""Seconds between two times that a channel tells more watchers than these something.

Who changes something now and then is not held up. With many changes a second most of what a watch costs is the waking
of its client, which may as well hear of two changes at a time.
"""

_BYTES_AT_A_TIME = 2 * 1024 * 1024
"""Bytes that are written to all of these together, about: with large batches they are fewer."""


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


class _Channel:
    """Watchers that are told the same."""

    __slots__ = (
        "_alarm",
        "_batch",
        "_encode",
        "_frames",
        "_options",
        "_quiet_until",
        "_rest",
        "_size",
        "told",
        "watchers",
    )

    def __init__(self, options: ListOptions, encode: Encode) -> None:
        self._options = options
        self._encode = encode
        self.watchers: dict[FrameWatcher, None] = {}
        self.told = 0
        """The revision of the last frame that all of them were told."""
        self._frames: list[Frame] = []
        self._size = 0
        self._batch: Batch | None = None
        self._rest: Iterator[FrameWatcher] = iter(())
        self._quiet_until = 0.0
        self._alarm: asyncio.TimerHandle | None = None

    @property
    def busy(self) -> bool:
        """Whether there is something that not all were told yet."""
        return self._batch is not None or bool(self._frames)

    def publish(self, events: Sequence[Event]) -> None:
        """Has all of them told in the loop's next turns: no other request waits for that."""
        frames = list(encoded(self._options, self._encode, events))
        self._frames += frames
        self._size += sum(len(data) for _, data in frames)
        if self._size > watchers.BYTES_LIMIT or len(self._frames) > watchers.FRAMES_LIMIT:
            self._give_up()
        else:
            self._go_on()

    def _go_on(self) -> None:
        """Begins to tell what there is, unless that is being done, or is not yet to be done."""
        if not self._frames or self._batch is not None or self._alarm is not None:
            return
        loop = asyncio.get_running_loop()
        if len(self.watchers) <= _FEW or loop.time() >= self._quiet_until:
            self._begin(loop)
        else:
            self._alarm = loop.call_at(self._quiet_until, self._begin, loop)

    def _give_up(self) -> None:
        """There are more changes than so many watchers can be told of."""
        self._frames, self._size = [], 0
        for watcher in list(self.watchers):
            watcher.abort()

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        self._alarm, self._quiet_until = None, loop.time() + _PAUSE
        if not self._frames:  # given up meanwhile
            return
        # Who joins from now on learns of these events from the past, with which a watch begins.
        self._batch, self._rest = Batch(self._frames), iter(list(self.watchers))
        self._frames, self._size = [], 0
        loop.call_soon(self._tell_some, self._batch)

    def _tell_some(self, batch: Batch) -> None:
        count = max(1, min(_AT_A_TIME, _BYTES_AT_A_TIME // len(batch.data)))
        some = list(islice(self._rest, count))
        for watcher in some:
            watcher.tell(batch)
        if len(some) == count:  # there may be more
            asyncio.get_running_loop().call_soon(self._tell_some, batch)
            return
        self.told, self._batch = batch.last, None
        self._go_on()


class _EventChannel:
    """The channel of one watcher that makes its frames itself."""

    __slots__ = ("_concerns", "watchers")

    def __init__(self, watcher: Watcher[Event], concerns: Callable[[Event], bool]) -> None:
        self.watchers: dict[Watcher[Any], None] = {watcher: None}
        self._concerns = concerns

    def publish(self, events: Sequence[Event]) -> None:
        wanted = [event for event in events if self._concerns(event)]
        if wanted:
            size = sum(len(event.current.value) for event in wanted if event.current)
            for watcher in list(self.watchers):
                watcher.collect(wanted, size)


def encoded(options: ListOptions, encode: Encode, events: Iterable[Event]) -> Iterable[Frame]:
    """The frames of the events that concern a watcher."""
    for event in events:
        change = seen_through(options, event)
        if change:
            yield event.revision, encode(change.type, change.kv)


class Broadcaster:
    """All watchers of one resource."""

    def __init__(self, storage: Storage, prefix: str) -> None:
        self._channels: dict[Hashable, _Channel | _EventChannel] = {}
        self._keys: dict[Watcher[Any], Hashable] = {}
        self._closed = False
        self._storage = storage
        self._newest = 0
        """The revision of the last event."""
        self._subscription = storage.subscribe(prefix, self._publish, interrupted=self._interrupt)

    def join(
        self, options: ListOptions, *, representation: Hashable, encode: Encode, on_overflow: Callable[[], None]
    ) -> FrameWatcher:
        """A watcher that is told the frame of every event committed from now on, and maybe of some before."""
        watcher = FrameWatcher(on_overflow)
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

    def told(self, watcher: FrameWatcher, revision: int) -> int:
        """Up to where a watcher was told all there is, if ``revision`` is the last that was committed."""
        channel = self._channels.get(self._keys.get(watcher))
        if isinstance(channel, _Channel) and channel.busy:
            return max(watcher.seen, channel.told)
        return revision

    def leave(self, watcher: Watcher[Any]) -> None:
        """Forgets a watcher. Idempotent."""
        watcher.end()
        key = self._keys.pop(watcher, None)
        if key is not None:
            channel = self._channels[key]
            del channel.watchers[watcher]  # type: ignore[arg-type]  # its key leads to its own channel
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

        As kube-apiserver does when its own watch on etcd fails. Where revisions have gone back, nobody can resume, and
        other replicas need not know that yet: the 410 is told at once.
        """
        went_back = self._storage.revision < self._newest
        self._newest = 0
        for watcher in list(self._keys):
            if went_back:
                watcher.interrupt()
            else:
                watcher.end()

    def abort_all(self) -> None:
        """Ends the connections of those who do not even take their goodbye."""
        for watcher in list(self._keys):
            watcher.abort()

    def close(self) -> None:
        self.end_all()
        self._subscription.close()

    def _publish(self, events: Sequence[Event]) -> None:
        self._newest = events[-1].revision
        for channel in list(self._channels.values()):
            try:
                channel.publish(events)
            except Exception:  # noqa: BLE001 - the watchers of other channels must have theirs, and these a 410
                _log.exception("changes could not be told to %d watches; they end", len(channel.watchers))
                for watcher in list(channel.watchers):
                    watcher.interrupt()
