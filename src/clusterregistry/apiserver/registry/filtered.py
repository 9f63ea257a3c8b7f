"""The feed of a watch whose client may see some objects only, and whose rights change meanwhile.

A change of rights is sent as ADDED and DELETED events. Everything that it makes visible or hides is sent before
anything with the revision of the change or a later one. So a client that resumes from there has missed nothing, and one
that resumes from an older revision gets a 410 and lists again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import TypeVar

from clusterregistry.apiserver.authz.view import View
from clusterregistry.apiserver.registry.broadcaster import ADDED, DELETED, MODIFIED, Broadcaster, Change, Encode
from clusterregistry.apiserver.registry.errors import too_old, watch_error
from clusterregistry.apiserver.registry.list import ListOptions
from clusterregistry.apiserver.registry.watcher import Delivery, Frame
from clusterregistry.apiserver.storage.errors import StorageError
from clusterregistry.apiserver.storage.interface import Event, KeyValue, Page
from clusterregistry.apiserver.storage.object_bytes import at_revision

T = TypeVar("T")

_by_revision = attrgetter("revision")


class FilteredFeed:
    """The feed of one client. Its events are encoded when they are about to be sent."""

    def __init__(
        self, broadcaster: Broadcaster, *, options: ListOptions, encode: Encode, on_overflow: Callable[[], None]
    ) -> None:
        self._broadcaster, self._storage, self._prefix = broadcaster, broadcaster.storage, broadcaster.prefix
        self._filter, self._encode = options.visible, encode
        self._sent = VisibleSet(options, prefix=broadcaster.prefix)
        self._seen = 0
        self._resume_at = 0
        """The revision to resume from while this server has not reached it: the client has been at another replica."""
        self._rights_changed = True
        """Whether the client's rights may differ from those of the set: all events count then."""
        self.watcher = broadcaster.join_alone(self._concerns, on_overflow=on_overflow)
        self._stop_listening = self._filter.on_change(self._on_rights_changed)

    def _concerns(self, event: Event) -> bool:
        return self._rights_changed or self._sent.concerns(event)

    def _on_rights_changed(self) -> None:
        self._rights_changed = True
        self.watcher.wake()

    # The beginning of the watch

    async def existing(self, page: Page) -> Iterable[KeyValue]:
        await self._wait_for_rights(page.revision)
        self._rights_changed = False
        return self._sent.begin(page.items, view=self._filter.view())

    async def resume(self, revision: int) -> None:
        self._resume_at = revision
        if revision <= self._storage.revision:
            await self._begin()

    async def _begin(self) -> None:
        """Fills the set with what the client has seen, once this server has reached that revision."""
        await self._wait_for_rights(self._resume_at)
        page = await self._list(self._resume_at)
        if self._resume_at < self._filter.changed_at:
            raise too_old(self._resume_at, self._filter.changed_at)
        self._resume_at, self._rights_changed = 0, False
        self._sent.begin(page.items, view=self._filter.view())

    async def history(self, events: Sequence[Event]) -> Iterable[Frame]:
        if not events and self._resume_at:
            return ()
        if events:
            await self._wait_for_rights(events[-1].revision)
        if self._resume_at:
            await self._begin()
        if self._rights_changed:
            # What the past means under later rights is not worth the work: the client lists again.
            raise too_old(self._seen, self._filter.changed_at)
        return self._frames(list(self._sent.changes(events)))

    def begun(self, seen: int) -> None:
        self._seen = seen

    # What comes after it

    async def next_delivery(self, collected: Sequence[Event]) -> Delivery:
        if self._rights_changed:
            # One change of a role or a group wakes all watches, and each may have to look at all objects.
            await self._broadcaster.take_turn()
        events, revision = await self._settled(list(collected))
        if revision < self._resume_at:
            return Delivery(frames=(), revision=revision)
        if self._resume_at:
            await self._begin()
        events = [event for event in events if event.revision > self._seen]
        unmarked = self._rights_changed and self._filter.changed_at > self._seen
        if self._rights_changed and self._filter.view() != self._sent.view:
            changes = await self._changes_of_rights(revision)
        else:
            self._rights_changed = False
            changes = list(self._sent.changes(events))
        self._seen = max(self._seen, revision)
        return Delivery(frames=self._frames(changes), revision=revision, unmarked=unmarked)

    async def _settled(self, events: list[Event]) -> tuple[list[Event], int]:
        """All events up to a revision up to which rights are known as well."""
        while True:
            revision = self._storage.revision
            events += self.watcher.take()
            await self._wait_for_rights(revision)
            if revision == self._storage.revision:
                return events, revision

    async def _changes_of_rights(self, revision: int) -> list[Change]:
        page = await self._list(revision)
        # Not the collected events: they lack those that did not concern the client before its rights changed.
        past = await _read(self._storage.history(self._prefix, after=self._seen))
        self._rights_changed = False
        events = [event for event in past if event.revision <= revision]
        # The revision of the change may not be known. Then the client is sent nothing of the time before.
        changed_at = self._filter.changed_at
        since = changed_at if self._seen < changed_at < revision else revision
        view = self._filter.view()
        return list(self._sent.change_rights(events, view=view, existing=page.items, seen=self._seen, since=since))

    def leave(self) -> None:
        self._stop_listening()
        self._broadcaster.leave(self.watcher)

    async def _wait_for_rights(self, revision: int) -> None:
        await _read(self._filter.caught_up(revision))

    async def _list(self, revision: int) -> Page:
        return await _read(self._storage.list(self._prefix, revision=revision))

    def _frames(self, changes: Sequence[Change]) -> Iterable[Frame]:
        """Encodes one change at a time while they are sent: there may be as many as objects."""
        return ((change.kv.revision, self._encode(change.type, change.kv)) for change in changes)


async def _read(reading: Awaitable[T]) -> T:
    try:
        return await reading
    except StorageError as error:
        raise watch_error(error) from error


class VisibleSet:
    """The objects that a client has been sent and may see. No change of rights sends anything twice.

    Changes come in an order in which the client can be cut off anywhere and resume: either it has seen everything up to
    the revision of the last change that it saw, or that revision is older than the change of rights.
    """

    def __init__(self, options: ListOptions, *, prefix: str) -> None:
        """``prefix`` is that of the resource's keys in the storage."""
        self._prefix_length = len(prefix)
        self.view: View | None = View()
        """The objects that the client may see; None: all."""
        self._selects = None if options.selects_all else options.selects
        self._sent: dict[str, KeyValue] = {}

    def begin(self, items: Iterable[KeyValue], *, view: View | None) -> list[KeyValue]:
        """Fills the set with the visible ones of all objects that exist, and returns them."""
        self.view = view
        visible = [kv for kv in items if self._shows(kv)]
        self._sent = {kv.key: kv for kv in visible}
        return visible

    def changes(self, events: Iterable[Event]) -> Iterator[Change]:
        """The changes that events are to the client under the present rights."""
        for event in events:
            change = self._change(event)
            if change is not None:
                yield change

    def change_rights(
        self,
        events: Sequence[Event],
        *,
        view: View | None,
        existing: Sequence[KeyValue],
        seen: int,
        since: int,
    ) -> Iterator[Change]:
        """The changes that new rights, which hold since a revision, and all events since ``seen`` are to the client.

        ``view`` is what they show. What makes objects members of its groups holds since that revision as well.

        ``existing`` are all objects as they are after the events. An object that is hidden now is DELETED at ``seen``,
        which is older than the change of rights. One that is visible now is ADDED as it was at the change. Everything
        that has happened since the change comes after both.
        """
        self.view = view
        for key, kv in list(self._sent.items()):
            if not self._may_see(kv):
                del self._sent[key]
                yield Change(DELETED, at_revision(kv, seen))
        known = [event for event in events if event.revision <= since and event.key in self._sent]
        later = [event for event in events if event.revision > since]
        there = _before(later, existing)
        appearing = [Event(kv.key, kv.revision, kv, None) for kv in there if kv.key not in self._sent]
        yield from self.changes([*sorted([*known, *appearing], key=_by_revision), *later])

    def _change(self, event: Event) -> Change | None:
        sent, now = self._sent.get(event.key), event.current
        if now is not None and self._shows(now):
            if sent is not None and sent.revision >= now.revision:
                return None
            self._sent[event.key] = now
            return Change(MODIFIED if sent else ADDED, now)
        if sent is None:
            return None
        del self._sent[event.key]
        return Change(DELETED, at_revision(sent, event.revision))

    def concerns(self, event: Event) -> bool:
        """Whether the client may see the object before or after an event, under the present rights."""
        return any(kv is not None and self._may_see(kv) for kv in (event.current, event.previous))

    def _may_see(self, kv: KeyValue) -> bool:
        return self.view is None or self.view.shows(kv.key[self._prefix_length :], kv)

    def _shows(self, kv: KeyValue) -> bool:
        return self._may_see(kv) and (self._selects is None or self._selects(kv))


def _before(events: Iterable[Event], existing: Iterable[KeyValue]) -> Iterator[KeyValue]:
    """The objects as they were before some events, of those that exist afterwards."""
    changed: dict[str, KeyValue | None] = {}
    for event in events:
        changed.setdefault(event.key, event.previous)
    yield from (kv for kv in existing if kv.key not in changed)
    yield from (kv for kv in changed.values() if kv is not None)
