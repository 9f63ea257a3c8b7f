"""Watch fan-out: every committed event is encoded once for each channel and delivered to all of its watchers.

Watchers with the same selectors and representation form a channel. A channel with many watchers delivers to some of
them in each turn of the event loop, so that requests are served in between; what is committed meanwhile is delivered
as one batch afterwards. A filtered watch (``filtered``) has a channel of its own.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from clusterregistry.apiserver.registry import watcher as watchers
from clusterregistry.apiserver.registry.errors import too_old
from clusterregistry.apiserver.registry.list import ListOptions, selected
from clusterregistry.apiserver.registry.watcher import Batch, Delivery, Frame, FrameWatcher, Watcher
from clusterregistry.apiserver.storage.interface import Event, KeyValue, Page, Storage
from clusterregistry.apiserver.storage.object_bytes import at_revision

ADDED, MODIFIED, DELETED = "ADDED", "MODIFIED", "DELETED"

_log = logging.getLogger(__name__)

Encode = Callable[[str, KeyValue], bytes]
"""Encodes one event as a frame: its type and its object."""

_WATCHERS_PER_TURN = 400
"""Watchers that are delivered to in one turn of the loop: each takes about as long as a tenth of a request."""

_BYTES_PER_TURN = 2 * 1024 * 1024
"""Bytes that are written to these watchers together, about: with large batches they are fewer."""

_UNDELAYED_WATCHERS = 10
"""Watchers up to which a channel delivers every event without a delay."""

_BATCH_INTERVAL = 0.03
"""Seconds between two batches of a channel with more watchers.

An event after a quiet moment is not delayed. With many events a second, most of what a watch costs is waking its
client, which may as well get two events at a time.
"""


class Broadcaster:
    """All watchers of one resource."""

    def __init__(self, storage: Storage, prefix: str) -> None:
        self.storage, self.prefix = storage, prefix
        self._channels: dict[Hashable, _Channel | _EventChannel] = {}
        self._of_all: dict[Hashable, _Channel | _EventChannel] = {}
        """The channels that are offered every event."""
        self._of_name: dict[str, dict[Hashable, _Channel]] = {}
        """By the one name that they select, all others: a client for each object must not cost each event."""
        self._keys: dict[Watcher[Any], Hashable] = {}
        self._closed = False
        self._newest = 0
        """The revision of the last event."""
        self._turns = asyncio.Lock()
        self._subscription = storage.subscribe(prefix, self._publish, interrupted=self._interrupt)

    def join(
        self, options: ListOptions, *, representation: Hashable, encode: Encode, on_overflow: Callable[[], None]
    ) -> FrameWatcher:
        """A watcher that gets the frame of every event committed from now on, and maybe of some before."""
        watcher = FrameWatcher(on_overflow)
        if self._closed:
            watcher.end()
            return watcher
        key = (options.namespace, options.labels, options.fields, representation)
        channel = self._channels.get(key)
        if not isinstance(channel, _Channel):
            channel = self._channels[key] = _Channel(options, encode)
            home = self._of_all if channel.name is None else self._of_name.setdefault(channel.name, {})
            home[key] = channel
        channel.watchers[watcher] = None
        self._keys[watcher] = key
        return watcher

    def join_alone(self, concerns: Callable[[Event], bool], *, on_overflow: Callable[[], None]) -> Watcher[Event]:
        """A watcher with a channel of its own. It collects the events for which ``concerns`` is true."""
        watcher = Watcher[Event](on_overflow)
        if self._closed:
            watcher.end()
            return watcher
        self._keys[watcher] = watcher
        self._channels[watcher] = self._of_all[watcher] = _EventChannel(watcher, concerns)
        return watcher

    async def take_turn(self) -> None:
        """Returns in a turn of the loop in which no other caller returns, so that requests are answered in between.

        For work that many watches have at the same moment, and that takes each of them milliseconds.
        """
        async with self._turns:
            await asyncio.sleep(0)

    def leave(self, watcher: Watcher[Any]) -> None:
        """Removes a watcher. Idempotent."""
        watcher.end()
        key = self._keys.pop(watcher, None)
        if key is not None:
            channel = self._channels[key]
            del channel.watchers[watcher]  # type: ignore[arg-type]  # its key leads to its own channel
            if not channel.watchers:
                del self._channels[key]
                self._drop(key, channel.name)

    def _drop(self, key: Hashable, name: str | None) -> None:
        """Removes an empty channel from those that are offered events."""
        if name is None:
            del self._of_all[key]
            return
        of_name = self._of_name[name]
        del of_name[key]
        if not of_name:
            del self._of_name[name]

    def delivered(self, watcher: FrameWatcher) -> int:
        """The revision up to which all events were delivered to a watcher."""
        channel = self._channels.get(self._keys.get(watcher))
        if isinstance(channel, _Channel) and channel.is_busy:
            return max(watcher.seen, channel.delivered)
        return self.storage.revision

    @property
    def watchers(self) -> int:
        """The number of open watches."""
        return len(self._keys)

    def end_all(self) -> None:
        """Ends every watch, and each one that joins later: the server is stopping."""
        self._closed = True
        for watcher in list(self._keys):
            watcher.end()

    def abort_all(self) -> None:
        """Ends the connections of clients that do not read the end of their watch."""
        for watcher in list(self._keys):
            watcher.abort()

    def close(self) -> None:
        self.end_all()
        self._subscription.close()

    def _publish(self, events: Sequence[Event]) -> None:
        self._newest = events[-1].revision
        for channel in list(self._of_all.values()):
            _offer(channel, events)
        if not self._of_name:
            return
        by_name: dict[str, list[Event]] = {}
        for event in events:
            name = event.key.rpartition("/")[2]
            if name in self._of_name:
                by_name.setdefault(name, []).append(event)
        for name, some in by_name.items():
            for channel in list(self._of_name[name].values()):
                _offer(channel, some)

    def _interrupt(self) -> None:
        """Ends all watches, since events are missing. A client that resumes gets what is known since then, or a 410.

        As kube-apiserver does when its own watch on etcd fails. If revisions have gone back, no client can resume, and
        other replicas need not know that yet: the watches end with the 410.
        """
        went_back = self.storage.revision < self._newest
        self._newest = 0
        for watcher in list(self._keys):
            if went_back:
                watcher.interrupt()
            else:
                watcher.end()


def _offer(channel: _Channel | _EventChannel, events: Sequence[Event]) -> None:
    try:
        channel.publish(events)
    except Exception:  # noqa: BLE001 - other channels must get the events, and the watchers of this one a 410
        _log.exception("events could not be encoded for %d watches; they end", len(channel.watchers))
        for watcher in list(channel.watchers):
            watcher.interrupt()


class UnfilteredFeed:
    """The feed of a client that may see all objects. The watch ends when the client loses that right."""

    def __init__(
        self,
        broadcaster: Broadcaster,
        *,
        options: ListOptions,
        encode: Encode,
        representation: Hashable,
        on_overflow: Callable[[], None],
    ) -> None:
        self._broadcaster, self._options, self._encode = broadcaster, options, encode
        self.watcher = broadcaster.join(options, representation=representation, encode=encode, on_overflow=on_overflow)
        self._stop_listening = options.visible.on_change(self._end_if_filtered)
        self._end_if_filtered()

    def _end_if_filtered(self) -> None:
        """Ends the watch of a client that no longer sees all objects; its next request is authorized again."""
        if self._options.visible.view() is not None:
            self.watcher.end()

    async def existing(self, page: Page) -> Iterable[KeyValue]:
        options, name = self._options, self._options.fields.name
        if options.selects_all:
            return page.items
        # An object of that name has such a key; a twentieth of the time of the selectors.
        named = page.items if name is None else [kv for kv in page.items if kv.key.endswith(f"/{name}")]
        return await selected(options, named)

    async def resume(self, revision: int) -> None:
        """Raises 410 if the client was granted the right after the revision: objects may have been hidden before."""
        if revision < self._options.visible.granted_at:
            raise too_old(revision, self._options.visible.granted_at)

    async def history(self, events: Sequence[Event]) -> Iterable[Frame]:
        return _encoded(self._options, self._encode, events)

    def begun(self, seen: int) -> None:
        self.watcher.seen = seen

    async def next_delivery(self, collected: Sequence[Frame]) -> Delivery:
        watcher = self.watcher
        frames = [frame for frame in collected if frame[0] > watcher.seen]
        if frames:
            watcher.seen = frames[-1][0]
        return Delivery(frames=frames, revision=self._broadcaster.delivered(watcher))

    def leave(self) -> None:
        self._stop_listening()
        self._broadcaster.leave(self.watcher)


class _Channel:
    """Watchers that get the same frames."""

    __slots__ = (
        "_batch",
        "_encode",
        "_frames",
        "_next_batch_at",
        "_options",
        "_rest",
        "_size",
        "_timer",
        "delivered",
        "name",
        "watchers",
    )

    def __init__(self, options: ListOptions, encode: Encode) -> None:
        self._options = options
        self._encode = encode
        self.name = options.fields.name
        """The only name that the selectors let through; None: there may be several."""
        self.watchers: dict[FrameWatcher, None] = {}
        self.delivered = 0
        """The revision of the last frame that was delivered to all watchers."""
        self._frames: list[Frame] = []
        self._size = 0
        self._batch: Batch | None = None
        self._rest: Iterator[FrameWatcher] = iter(())
        self._next_batch_at = 0.0
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_busy(self) -> bool:
        """Whether there are frames that were not delivered to all watchers yet."""
        return self._batch is not None or bool(self._frames)

    def publish(self, events: Sequence[Event]) -> None:
        """Encodes events and delivers them in the loop's next turns: no request waits for that.

        Aborts all watches if more frames wait than so many watchers can be delivered.
        """
        frames = list(_encoded(self._options, self._encode, events))
        self._frames += frames
        self._size += sum(len(data) for _, data in frames)
        if self._size > watchers.BYTES_LIMIT or len(self._frames) > watchers.FRAMES_LIMIT:
            self._frames, self._size = [], 0
            for watcher in list(self.watchers):
                watcher.abort()
        else:
            self._schedule()

    def _schedule(self) -> None:
        """Starts the next batch, now or when its time has come, unless one is under way."""
        if not self._frames or self._batch is not None or self._timer is not None:
            return
        loop = asyncio.get_running_loop()
        if len(self.watchers) <= _UNDELAYED_WATCHERS or loop.time() >= self._next_batch_at:
            self._start_batch(loop)
        else:
            self._timer = loop.call_at(self._next_batch_at, self._start_batch, loop)

    def _start_batch(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer, self._next_batch_at = None, loop.time() + _BATCH_INTERVAL
        if not self._frames:  # aborted meanwhile
            return
        # A watcher that joins from now on has these events in the history or the list that its watch begins with.
        self._batch, self._rest = Batch(self._frames), iter(list(self.watchers))
        self._frames, self._size = [], 0
        loop.call_soon(self._deliver_some, self._batch)

    def _deliver_some(self, batch: Batch) -> None:
        count = max(1, min(_WATCHERS_PER_TURN, _BYTES_PER_TURN // len(batch.data)))
        some = list(islice(self._rest, count))
        for watcher in some:
            watcher.deliver(batch)
        if len(some) == count:  # there may be more
            asyncio.get_running_loop().call_soon(self._deliver_some, batch)
            return
        self.delivered, self._batch = batch.last, None
        self._schedule()


class _EventChannel:
    """The channel of one watcher that collects events, not frames."""

    __slots__ = ("_concerns", "watchers")

    name = None

    def __init__(self, watcher: Watcher[Event], concerns: Callable[[Event], bool]) -> None:
        self.watchers: dict[Watcher[Any], None] = {watcher: None}
        self._concerns = concerns

    def publish(self, events: Sequence[Event]) -> None:
        wanted = [event for event in events if self._concerns(event)]
        if wanted:
            size = sum(len(event.current.value) for event in wanted if event.current)
            for watcher in list(self.watchers):
                watcher.collect(wanted, size)


@dataclass(frozen=True, slots=True)
class Change:
    """An event as a watcher with selectors sees it."""

    type: str
    kv: KeyValue


def seen_through(options: ListOptions, event: Event) -> Change | None:
    """The change that an event is through selectors: an object that begins to match is ADDED, one that ends DELETED.

    A DELETED object is shown as it last was, with the revision of its deletion.
    """
    now = event.current if event.current and (options.selects_all or options.selects(event.current)) else None
    before = event.previous if event.previous and (options.selects_all or options.selects(event.previous)) else None
    if now:
        return Change(MODIFIED if before else ADDED, now)
    return Change(DELETED, at_revision(before, event.revision)) if before else None


def _encoded(options: ListOptions, encode: Encode, events: Iterable[Event]) -> Iterable[Frame]:
    """The frames of the events that the selectors let through."""
    for event in events:
        change = seen_through(options, event)
        if change:
            yield event.revision, encode(change.type, change.kv)
