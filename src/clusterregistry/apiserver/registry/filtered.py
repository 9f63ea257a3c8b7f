"""The frames of a watch for a client that may see some objects, while what it may see changes.

A change of rights is told as ADDED and DELETED events. Nothing with the revision of a change of rights, or a later one,
is sent before all that the change means: so a client that resumes from there has missed nothing, and one that resumes
from before gets a 410 and lists anew.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Protocol, TypeVar

from clusterregistry.apimachinery.meta import errors
from clusterregistry.apiserver.registry.broadcaster import (
    ADDED,
    DELETED,
    MODIFIED,
    Broadcaster,
    Change,
    Encode,
    encoded,
)
from clusterregistry.apiserver.registry.errors import api_error
from clusterregistry.apiserver.registry.list import ListOptions, selected
from clusterregistry.apiserver.registry.store import Store
from clusterregistry.apiserver.registry.watcher import Frame, Watcher
from clusterregistry.apiserver.storage.errors import RevisionCompacted, StorageError
from clusterregistry.apiserver.storage.interface import Event, KeyValue, Page
from clusterregistry.apiserver.storage.object_bytes import at_revision, name_of, name_of_key


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """What comes next in a watch. Once it is sent, the client has seen everything up to ``revision``.

    ``unmarked``: the last frames do not tell that revision though the client should learn it.
    """

    frames: Iterable[Frame]
    revision: int
    unmarked: bool = False


class Feed(Protocol):
    """One watch's source. It collects what happens from the moment it is made, begins, and goes on."""

    @property
    def watcher(self) -> Watcher[Any]: ...

    async def existing(self, page: Page) -> Iterable[KeyValue]:
        """Begins with what exists: which of all objects to tell. Raises APIError."""
        ...

    async def resume(self, revision: int) -> None:
        """Begins after a revision, up to which the client knows everything. Raises 410."""
        ...

    async def history(self, events: Sequence[Event]) -> Iterable[Frame]:
        """The next events after the revision that the watch resumes from. Raises APIError."""
        ...

    def begun(self, seen: int) -> None:
        """The beginning is over: the client has seen everything up to a revision."""
        ...

    async def coming(self, waited: Sequence[Any]) -> Delivery:
        """What to send for what the watcher has collected. Raises APIError."""
        ...

    def leave(self) -> None:
        """Collects nothing more. Idempotent."""
        ...


class WholeFeed:
    """The frames of a client that may see everything. It ends when the client may no longer."""

    def __init__(  # noqa: PLR0913 - all but two by keyword
        self,
        store: Store,
        hub: Broadcaster,
        *,
        options: ListOptions,
        encode: Encode,
        representation: Hashable,
        on_overflow: Callable[[], None],
    ) -> None:
        self._store, self._hub, self._options, self._encode = store, hub, options, encode
        self.watcher = hub.join(options, representation=representation, encode=encode, on_overflow=on_overflow)
        self._stop_listening = options.visible.on_change(self._end_if_refused)
        self._end_if_refused()

    def _end_if_refused(self) -> None:
        """The client comes back and is told what it may still do."""
        if self._options.visible.names() is not None:
            self.watcher.end()

    async def existing(self, page: Page) -> Iterable[KeyValue]:
        return page.items if self._options.selects_all else await selected(self._options, page.items)

    async def resume(self, revision: int) -> None:
        """Who has got the right to see everything only since then lacks what others have made visible before."""
        if revision < self._options.visible.granted_at:
            raise too_old(revision, self._options.visible.granted_at)

    async def history(self, events: Sequence[Event]) -> Iterable[Frame]:
        return encoded(self._options, self._encode, events)

    def begun(self, seen: int) -> None:
        self.watcher.seen = seen

    async def coming(self, waited: Sequence[Frame]) -> Delivery:
        watcher = self.watcher
        frames = [frame for frame in waited if frame[0] > watcher.seen]
        if frames:
            watcher.seen = frames[-1][0]
        return Delivery(frames=frames, revision=self._hub.told(watcher, self._store.storage.revision))

    def leave(self) -> None:
        self._stop_listening()
        self._hub.leave(self.watcher)


def too_old(requested: int, oldest: int) -> errors.APIError:
    """410: the client has to list anew."""
    return errors.gone(f"too old resource version: {requested} ({oldest})")


_by_revision = attrgetter("revision")


class VisibleSet:
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


T = TypeVar("T")


class FilteredFeed:
    """One client's own frames, made of events when they are about to be sent."""

    def __init__(
        self, store: Store, hub: Broadcaster, *, options: ListOptions, encode: Encode, on_overflow: Callable[[], None]
    ) -> None:
        self._store, self._hub = store, hub
        self._visible, self._encode = options.visible, encode
        self._view = VisibleSet(options)
        self._seen = 0
        self._awaited = 0
        """From where a client resumes that has seen more elsewhere than is known here yet; 0: there is nothing such."""
        self._turned = True
        """Whether rights may be others than those in the view: all events count then."""
        self.watcher = hub.join_alone(self._concerns, on_overflow=on_overflow)
        self._stop_listening = self._visible.on_change(self._turn)

    def _concerns(self, event: Event) -> bool:
        names = self._view.names
        return self._turned or names is None or name_of_key(event.key) in names

    def _turn(self) -> None:
        self._turned = True
        self.watcher.wake()

    async def existing(self, page: Page) -> Iterable[KeyValue]:
        await self._rights_of(page.revision)
        self._turned = False
        return self._view.begin(page.items, names=self._visible.names())

    async def resume(self, revision: int) -> None:
        self._awaited = revision
        if revision <= self._store.storage.revision:
            await self._begin()

    async def _begin(self) -> None:
        """Begins with what the client knows, once that is known here."""
        await self._rights_of(self._awaited)
        page = await self._everything(self._awaited)
        if self._awaited < self._visible.changed_at:
            raise too_old(self._awaited, self._visible.changed_at)
        self._awaited, self._turned = 0, False
        self._view.begin(page.items, names=self._visible.names())

    async def history(self, events: Sequence[Event]) -> Iterable[Frame]:
        if not events and self._awaited:
            return ()
        if events:
            await self._rights_of(events[-1].revision)
        if self._awaited:
            await self._begin()
        if self._turned:
            # What the past means under rights that came later is not worth finding out: the client lists anew.
            raise too_old(self._seen, self._visible.changed_at)
        return self._frames(list(self._view.changes(events)))

    def begun(self, seen: int) -> None:
        self._seen = seen

    async def coming(self, waited: Sequence[Event]) -> Delivery:
        events, revision = await self._settled(list(waited))
        if revision < self._awaited:
            return Delivery(frames=(), revision=revision)
        if self._awaited:
            await self._begin()
        events = [event for event in events if event.revision > self._seen]
        turned = self._turned and self._visible.changed_at > self._seen
        if self._turned and self._visible.names() != self._view.names:
            changes = await self._turning(revision)
        else:
            self._turned = False
            changes = list(self._view.changes(events))
        self._seen = max(self._seen, revision)
        return Delivery(frames=self._frames(changes), revision=revision, unmarked=turned)

    async def _turning(self, revision: int) -> list[Change]:
        page = await self._everything(revision)
        # Not what was collected: that lacks what did not concern the client before the change was known.
        past = await self._read(self._store.storage.history(self._store.prefix, after=self._seen))
        self._turned = False
        events = [event for event in past if event.revision <= revision]
        # Since when it is so may not be known. The client is shown nothing of the time before.
        changed_at = self._visible.changed_at
        since = changed_at if self._seen < changed_at < revision else revision
        names = self._visible.names()
        return list(self._view.turn(events, names=names, existing=page.items, seen=self._seen, since=since))

    async def _settled(self, events: list[Event]) -> tuple[list[Event], int]:
        """All events up to a revision up to which rights are known as well."""
        while True:
            revision = self._store.storage.revision
            events += self.watcher.take()
            await self._rights_of(revision)
            if revision == self._store.storage.revision:
                return events, revision

    async def _rights_of(self, revision: int) -> None:
        try:
            await self._visible.caught_up(revision)
        except StorageError as error:
            raise api_error(error) from error

    async def _everything(self, revision: int) -> Page:
        return await self._read(self._store.storage.list(self._store.prefix, revision=revision))

    async def _read(self, reading: Awaitable[T]) -> T:
        try:
            return await reading
        except RevisionCompacted as error:
            raise too_old(error.requested, error.compacted) from None
        except StorageError as error:
            raise api_error(error) from error

    def _frames(self, changes: Sequence[Change]) -> Iterable[Frame]:
        """Encoded one by one as they are sent: there may be as many as objects."""
        return ((change.kv.revision, self._encode(change.type, change.kv)) for change in changes)

    def leave(self) -> None:
        self._stop_listening()
        self._hub.leave(self.watcher)
