"""The port, implemented on memory that follows a store."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice, takewhile

from clusterregistry.apiserver.storage.cacher.corrupt_objects import CorruptObjects
from clusterregistry.apiserver.storage.cacher.history import RecentEvents, Snapshot
from clusterregistry.apiserver.storage.errors import CorruptObject, RevisionInFuture, StorageError, StorageUnavailable
from clusterregistry.apiserver.storage.interface import (
    Event,
    Interrupted,
    KeyValue,
    Page,
    Progressed,
    Sink,
    Storage,
    Subscription,
)
from clusterregistry.apiserver.storage.revision_waiter import WAIT_SECONDS, RevisionWaiter, committed_by_now
from clusterregistry.apiserver.storage.subscriptions import Subscriptions

Present = Callable[[KeyValue], KeyValue]
"""Makes of a key-value as the store has it the one that is kept and handed out. Raises CorruptObject."""

_CLOSED = "the cache is closed"

_SLICE = 500
"""Values that are looked at without a pause when all is read anew: it takes some milliseconds."""

_AGAIN_SECONDS = 1.0
"""Until that is tried again when it failed."""

_log = logging.getLogger(__name__)


def as_stored(kv: KeyValue) -> KeyValue:
    return kv


class Cacher:
    """A store's keys of one prefix, in memory. What is asked about other keys, the store answers as it has them.

    Events and pages share their KeyValue instances: one for each key and revision, as long as it is here.

    A value that cannot be read is set aside (``corrupt``): for lists, events and counts its key is not there. ``get``
    raises CorruptObject with the revision at which it can be deleted.
    """

    sole_writer: bool
    """Whether memory never lags behind an answered write. ``get_stale`` then is as good as ``get``."""

    def __init__(
        self, backend: Storage, prefix: str, *, recent: RecentEvents, present: Present, present_own: Present
    ) -> None:
        """For ``open``."""
        self._backend, self._prefix, self._recent = backend, prefix, recent
        self._present, self._present_own = present, present_own
        self._own: dict[str, bytes] = {}
        """What was written through here, by key, until the event comes that tells of it."""
        self.sole_writer = backend.sole_writer
        self._snapshot = Snapshot()
        self.corrupt = CorruptObjects()
        self._seen = RevisionWaiter(0)
        self._loaded = 0
        self._publisher = Subscriptions(prefix)
        self._early: list[Event] | None = []
        self._closed = False
        self._reloading: asyncio.Task[None] | None = None
        # All prefixes: an event of another one tells too how far the store has come.
        self._feed = backend.subscribe("", self._receive, progressed=self._progress, interrupted=self._reload)

    @classmethod
    async def open(  # noqa: PLR0913 - all but two by keyword
        cls,
        backend: Storage,
        prefix: str,
        *,
        most_events: int = 10_000,
        most_bytes: int = 32 << 20,
        present: Present = as_stored,
        present_own: Present | None = None,
    ) -> Cacher:
        """Loads the keys of a prefix and follows the store from there, without a gap.

        ``most_events`` and ``most_bytes`` bound the recent past that is kept in memory. ``present_own`` is for values
        that were written through this cache: nobody needs to look at them again.
        """
        recent = RecentEvents(most_events=most_events, most_bytes=most_bytes)
        cacher = cls(backend, prefix, recent=recent, present=present, present_own=present_own or present)
        try:
            await cacher._load()
        except BaseException:
            await cacher.close()
            raise
        return cacher

    @property
    def revision(self) -> int:
        return self._seen.value

    async def current_revision(self) -> int:
        self._check_open()
        return await self._backend.current_revision()

    def known_revision(self) -> int | None:
        return self._backend.known_revision()

    def get_stale(self, key: str) -> KeyValue | None:
        """As the port says. Where ``sole_writer`` is true it is as good as ``get``."""
        return self._snapshot.items.get(key)

    def get_cached(self, key: str) -> KeyValue | None:
        return self._snapshot.items.get(key) if self._is_complete() else None

    async def get(self, key: str) -> KeyValue | None:
        """As the port says. Raises CorruptObject."""
        self._check_open()
        if not key.startswith(self._prefix):
            return await self._backend.get(key)
        if not await self._is_current():
            found = await self._backend.get(key)
            return found and self._present(found)
        self.corrupt.check(key)
        return self._snapshot.items.get(key)

    async def list(self, prefix: str, *, revision: int = 0, after: str = "", limit: int = 0) -> Page:
        """As the port says. From memory, unless the revision lies too far back."""
        self._check_open()
        if not prefix.startswith(self._prefix):
            return await self._backend.list(prefix, revision=revision, after=after, limit=limit)
        if await self._has_reached(revision):
            if revision in {0, self.revision}:
                return self._snapshot.page(prefix, revision=self.revision, after=after, limit=limit)
            if revision >= self._recent.floor:
                undone = self._recent.after(revision)
                return self._snapshot.page_before(undone, prefix, revision=revision, after=after, limit=limit)
        return await self._list_stored(prefix, revision=revision, after=after, limit=limit)

    async def _list_stored(self, prefix: str, *, revision: int, after: str, limit: int) -> Page:
        """From the store. A page is empty only where there is nothing behind it either: who reads on needs a key."""
        page = await self._backend.list(prefix, revision=revision, after=after, limit=limit)
        items = list(self._readable(page.items))
        while page.remaining and not items:
            page = await self._backend.list(prefix, revision=page.revision, after=page.items[-1].key, limit=limit)
            items = list(self._readable(page.items))
        return Page(items, page.revision, page.remaining)

    async def history(self, prefix: str, *, after: int, limit: int = 0) -> Sequence[Event]:
        """As the port says. From memory, unless it reaches too far back, such as after a restart.

        What is yet to come here, the store may know to be a revision that never will.
        """
        self._check_open()
        if not prefix.startswith(self._prefix):
            return await self._backend.history(prefix, after=after, limit=limit)
        if self._recent.floor <= after <= self.revision and self._early is None:
            matching = (event for event in reversed(self._recent.after(after)) if event.key.startswith(prefix))
            return _oldest(matching, limit)
        return await self._stored_history(prefix, after=after, limit=limit)

    async def _stored_history(self, prefix: str, *, after: int, limit: int) -> Sequence[Event]:
        """From the store. Fewer than ``limit`` events say that there are no more: for those left out others come."""
        found: list[Event] = []
        while True:
            events = await self._backend.history(prefix, after=after, limit=limit)
            found += filter(None, map(self._readable_event, events))
            if not limit or len(events) < limit or len(found) >= limit:
                return found
            after = events[-1].revision

    async def create(self, key: str, value: bytes) -> int:
        self._check_open()
        self._own[key] = value
        try:
            return await self._backend.create(key, value)
        except BaseException:
            self._own.pop(key, None)
            raise

    async def update(self, key: str, value: bytes, *, expected: int, known: KeyValue | None = None) -> int:
        self._check_open()
        self._own[key] = value
        try:
            return await self._backend.update(key, value, expected=expected, known=known or self.get_stale(key))
        except BaseException:
            self._own.pop(key, None)
            raise

    async def delete(self, key: str, *, expected: int, known: KeyValue | None = None) -> int:
        self._check_open()
        return await self._backend.delete(key, expected=expected, known=known or self.get_stale(key))

    def subscribe(
        self,
        prefix: str,
        sink: Sink,
        *,
        progressed: Progressed | None = None,
        interrupted: Interrupted | None = None,
    ) -> Subscription:
        """As the port says. The events carry the cached instances; memory has them when the sink is called.

        What the store could not tell is found out by comparing. It leads to what is there now, but not by way of all
        that was there meanwhile, and several keys may be gone at one revision: who hands out events to be resumed
        from has to start anew (``interrupted``, which is called before these events come).
        """
        source = self._publisher if prefix.startswith(self._prefix) else self._backend
        return source.subscribe(prefix, sink, progressed=progressed, interrupted=interrupted)

    def count(self, prefix: str) -> int:
        return self._snapshot.count(prefix) if prefix.startswith(self._prefix) else self._backend.count(prefix)

    def problem(self) -> str:
        return _CLOSED if self._closed else self._backend.problem()

    async def compact(self, revision: int) -> None:
        self._check_open()
        await self._backend.compact(revision)
        self._recent.forget(revision)

    async def close(self) -> None:
        """Stops following the store. The store itself belongs to who opened it and stays open."""
        self._closed = True
        self._feed.close()
        if self._reloading is not None:
            self._reloading.cancel()
        self._seen.give_up(_CLOSED)

    async def wait_for(self, revision: int, timeout: float = WAIT_SECONDS) -> None:  # noqa: ASYNC109 - what it is about
        """As the port says; ``timeout`` is in seconds."""
        self._check_open()
        if revision <= self.revision or self.sole_writer:
            await self._seen.reach(revision, seconds=timeout)
            return
        asking = asyncio.create_task(self._have_it_ask(revision))
        try:
            await self._seen.reach(revision, seconds=timeout)
        finally:
            asking.cancel()

    async def _have_it_ask(self, revision: int) -> None:
        """A store that others write to may have to ask how far they have come: revisions need not have an event."""
        with contextlib.suppress(StorageError):
            await self._backend.wait_for(revision)

    async def _has_reached(self, revision: int) -> bool:
        """Whether memory can tell about a revision, 0 being that of now."""
        if 0 < revision <= self.revision:
            return self._early is None
        return await self._is_current() and revision <= self.revision

    def _is_complete(self) -> bool:
        """Whether memory is known to have all that is committed."""
        known = self._backend.known_revision()
        if self.sole_writer:
            return known is not None and self._early is None and not self._closed
        return known is not None and known <= self.revision and self._early is None and not self._closed

    async def _is_current(self) -> bool:
        """Whether memory has what the store had at the call: waits for it, but not for long."""
        if self._is_complete():
            return True
        try:
            revision = await committed_by_now(self._backend)
            if revision > self.revision:
                await self.wait_for(revision)
        except RevisionInFuture:
            return False
        return self._early is None

    async def _load(self) -> None:
        page = await self._backend.list(self._prefix)
        # Taken out one by one, so that they are not all in memory twice: the page may live on with who has read it.
        stored = page.items if isinstance(page.items, list) else list(page.items)
        stored.reverse()
        items = []
        while stored:
            if item := self._entering(stored.pop()):
                items.append(item)
        self._snapshot.load(items)
        self._go_on_from(page.revision)

    def _go_on_from(self, revision: int) -> None:
        """Memory is complete up to a revision: takes what came in the meantime, and all that will come."""
        self._recent.begin_at(revision)
        self._loaded = revision
        self._seen.advance(revision)
        early, self._early = self._early or [], None
        self._receive(early)

    def _reload(self) -> None:
        """The store has missed events. What they were is seen by comparing memory with all that is there now."""
        self._early = []
        if self._reloading is None or self._reloading.done():
            self._reloading = asyncio.create_task(self._compare_all())

    async def _compare_all(self) -> None:
        """Until it is done: whatever goes wrong, memory must not stay behind for ever."""
        while True:
            try:
                self._take_all(await self._read_undisturbed())
            except StorageError as error:
                _log.warning("what was missed cannot be read yet: %s", error)
            except Exception:  # noqa: BLE001 - as above
                _log.exception("what was missed could not be taken")
            else:
                return
            await asyncio.sleep(_AGAIN_SECONDS)

    async def _read_undisturbed(self) -> Page:
        """All that the store has now. When more was missed while it was read, that may lie behind what was read."""
        while True:
            begun = self._early = [] if self._early is None else self._early
            page = await self._read_all()
            if self._early is begun:
                return page

    def _take_all(self, page: Page) -> None:
        """Makes memory the same as what was read, and tells the difference."""
        missed = self._snapshot.missed(page.items, revision=page.revision)
        for event in missed:
            self._snapshot.apply(event.key, event.current)
        self._recent.begin_at(page.revision)
        self._seen.advance(page.revision)
        self._publisher.interrupt()
        self._publisher.publish(missed)
        self._go_on_from(page.revision)

    async def _read_all(self) -> Page:
        """All that the store has now, without what cannot be read, which is set aside."""
        self._own.clear()
        page = await self._backend.list(self._prefix)
        items: list[KeyValue] = []
        for start in range(0, len(page.items), _SLICE):
            items += filter(None, map(self._entering, page.items[start : start + _SLICE]))
            await asyncio.sleep(0)
        there = {kv.key for kv in page.items}
        for key in [key for key in self.corrupt if key not in there]:
            self.corrupt.discard(key)
        return Page(items, page.revision, 0)

    def _receive(self, events: Sequence[Event]) -> None:
        if self._early is not None:
            self._early.extend(events)
            return
        if events and events[0].revision <= self._loaded:
            # A store that others write to may tell late what the list at the beginning had already.
            events = [event for event in events if event.revision > self._loaded]
        if not events:
            return
        applied = [made for event in events if event.key.startswith(self._prefix) and (made := self._apply(event))]
        self._seen.advance(events[-1].revision)
        if applied:
            self._publisher.publish(applied)

    def _progress(self, revision: int) -> None:
        if revision > self._seen.value and self._early is None:
            self._publisher.progress(revision)
            self._seen.advance(revision)

    def _apply(self, event: Event) -> Event | None:
        """The event as it is handed out; None if there is nothing that can be read, neither before nor behind it."""
        current = event.current and self._entering(event.current)
        previous = self._snapshot.apply(event.key, current)
        if current is None:
            if event.current is None:
                self.corrupt.discard(event.key)
            if previous is None:
                return None
        event = Event(event.key, event.revision, current, previous)
        self._recent.append(event)
        return event

    def _entering(self, kv: KeyValue) -> KeyValue | None:
        """What is kept of a key-value of the store. This is where each is looked at, once."""
        is_own = self._own and self._own.pop(kv.key, None) == kv.value
        try:
            made = self._present_own(kv) if is_own else self._present(kv)
        except CorruptObject as error:
            self.corrupt.add(error)
            return None
        if self.corrupt:
            self.corrupt.discard(kv.key)
        return made

    def _readable(self, items: Iterable[KeyValue]) -> Iterator[KeyValue]:
        """Those of the past that can be read."""
        for kv in items:
            try:
                made = self._present(kv)
            except CorruptObject:
                continue
            yield made

    def _readable_event(self, event: Event) -> Event | None:
        """An event of the past as it was handed out when it was committed."""
        current = next(self._readable([event.current] if event.current else []), None)
        previous = next(self._readable([event.previous] if event.previous else []), None)
        return Event(event.key, event.revision, current, previous) if current or previous else None

    def _check_open(self) -> None:
        if self._closed:
            raise StorageUnavailable(_CLOSED)


def _oldest(events: Iterator[Event], limit: int) -> list[Event]:
    """The first ``limit`` (0: all) of events in order, and what else happened at the revision of the last."""
    found = list(islice(events, limit or None))
    if found:
        last = found[-1].revision
        found += takewhile(lambda event: event.revision == last, events)
    return found
