"""The frames of a watch for a client that may see some objects, while what it may see changes.

A change of rights is told as ADDED and DELETED events. Nothing with the revision of a change of rights, or a later one,
is sent before all that the change means: so a client that resumes from there has missed nothing, and one that resumes
from before gets a 410 and lists anew.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeVar

from clusterregistry.apiserver.registry import storage_errors
from clusterregistry.apiserver.registry.broadcaster import Change, Encode, Hub
from clusterregistry.apiserver.registry.feed import Coming, too_old
from clusterregistry.apiserver.registry.list import ListOptions
from clusterregistry.apiserver.registry.object_view import name_of_key
from clusterregistry.apiserver.registry.store import Store
from clusterregistry.apiserver.registry.visible_set import PartialView
from clusterregistry.apiserver.registry.watcher import Frame
from clusterregistry.apiserver.storage.errors import RevisionCompacted, StorageError
from clusterregistry.apiserver.storage.interface import Event, KeyValue, Page

T = TypeVar("T")


class FilteredFeed:
    """One client's own frames, made of events when they are about to be sent."""

    def __init__(
        self, store: Store, hub: Hub, *, options: ListOptions, encode: Encode, on_overflow: Callable[[], None]
    ) -> None:
        self._store, self._hub = store, hub
        self._visible, self._encode = options.visible, encode
        self._view = PartialView(options)
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

    async def coming(self, waited: Sequence[Event]) -> Coming:
        events, revision = await self._settled(list(waited))
        if revision < self._awaited:
            return Coming(frames=(), revision=revision)
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
        return Coming(frames=self._frames(changes), revision=revision, unmarked=turned)

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
            raise storage_errors.api_error(error) from error

    async def _everything(self, revision: int) -> Page:
        return await self._read(self._store.storage.list(self._store.prefix, revision=revision))

    async def _read(self, reading: Awaitable[T]) -> T:
        try:
            return await reading
        except RevisionCompacted as error:
            raise too_old(error.requested, error.compacted) from None
        except StorageError as error:
            raise storage_errors.api_error(error) from error

    def _frames(self, changes: Sequence[Change]) -> Iterable[Frame]:
        """Encoded one by one as they are sent: there may be as many as objects."""
        return ((change.kv.revision, self._encode(change.type, change.kv)) for change in changes)

    def leave(self) -> None:
        self._stop_listening()
        self._hub.leave(self.watcher)
