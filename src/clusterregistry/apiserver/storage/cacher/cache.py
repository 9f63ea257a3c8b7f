"""The storage interface on memory: the keys of one prefix, kept up to date by the events of a store."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from itertools import islice, takewhile

from clusterregistry.apiserver.storage.cacher.corrupt_objects import CorruptObjects
from clusterregistry.apiserver.storage.cacher.history import RecentEvents, Snapshot
from clusterregistry.apiserver.storage.errors import (
    CorruptObject,
    GuardConflict,
    RevisionInFuture,
    StorageError,
    StorageUnavailable,
)
from clusterregistry.apiserver.storage.interface import (
    Event,
    Guard,
    Interrupted,
    KeyValue,
    Page,
    Sink,
    Storage,
    Subscription,
)
from clusterregistry.apiserver.storage.subscriptions import (
    WAIT_SECONDS,
    Subscriptions,
    committed_by_now,
)

Present = Callable[[KeyValue], KeyValue]
"""Turns a key-value of the store into the one that is cached and delivered. Raises CorruptObject."""

_CLOSED = "the cache is closed"

_SLICE = 500
"""Values that are checked without yielding to the event loop when everything is read: some milliseconds."""

_RETRY_SECONDS = 1.0
"""How long to wait before everything is read again after an error."""

_log = logging.getLogger(__name__)


def as_stored(kv: KeyValue) -> KeyValue:
    return kv


class Cacher:
    """A store's keys of one prefix, in memory. Requests for other keys go to the store.

    Events and pages share their KeyValue instances: one per key and revision, as long as it is cached.

    A value that cannot be read is set aside (``corrupt``): lists, events and counts leave its key out. ``get`` raises
    CorruptObject with the revision at which it can be deleted.
    """

    sole_writer: bool
    """True if the cache never lags behind an acknowledged write. ``get_stale`` then equals ``get``."""

    def __init__(
        self, backend: Storage, prefix: str, *, recent: RecentEvents, present: Present, present_own: Present
    ) -> None:
        """For ``open``."""
        self._backend, self._prefix, self._recent = backend, prefix, recent
        self._present, self._present_own = present, present_own
        self._own: dict[str, bytes] = {}
        """Values written through this cache, by key, until their event arrives."""
        self.sole_writer = backend.sole_writer
        self._snapshot = Snapshot()
        self.corrupt = CorruptObjects()
        self._applied = 0
        """The revision of the newest event in memory, or of the list that it was filled with."""
        self._loaded = 0
        self._subscriptions = Subscriptions(prefix)
        self._pending: list[Event] | None = []
        """Events that arrive while everything is read from the store; None while the cache is up to date."""
        self._closed = False
        self._waiting: set[asyncio.Future[None]] = set()
        """Calls that wait for a revision of the store."""
        self._reloading: asyncio.Task[None] | None = None
        self._feed = backend.subscribe(prefix, self._receive, interrupted=self._reload)

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
        """Loads the keys of a prefix and applies the store's events from there on, without a gap.

        ``most_events`` and ``most_bytes`` bound the recent history in memory. ``present_own`` is for values that were
        written through this cache: they need no check.
        """
        recent = RecentEvents(most_events=most_events, most_bytes=most_bytes)
        cacher = cls(backend, prefix, recent=recent, present=present, present_own=present_own or present)
        try:
            await cacher._load()
        except BaseException:
            await cacher.close()
            raise
        return cacher

    # Reads

    @property
    def revision(self) -> int:
        """As the interface says: that of the store, which may have no event here, unless everything is being read."""
        if self._pending is not None or self._closed:
            return self._applied
        return max(self._applied, self._backend.revision)

    async def current_revision(self) -> int:
        self._check_open()
        return await self._backend.current_revision()

    def known_revision(self) -> int | None:
        return self._backend.known_revision()

    async def wait_for(self, revision: int, timeout: float = WAIT_SECONDS) -> None:  # noqa: ASYNC109 - part of its purpose
        """As the interface says; ``timeout`` is in seconds."""
        self._check_open()
        if revision <= self.revision:
            return
        try:
            async with asyncio.timeout(timeout):
                await self._wait_until_closed(self._backend.wait_for(revision))
                await self._wait_until_read()
        except TimeoutError:
            raise RevisionInFuture(revision, current=self.revision) from None

    async def _wait_until_closed(self, waiting: Awaitable[None]) -> None:
        """Waits for the store, or until the cache is closed. Raises StorageUnavailable."""
        task = asyncio.ensure_future(waiting)
        self._waiting.add(task)
        try:
            await asyncio.wait([task])
            self._check_open()
            await task
        finally:
            self._waiting.discard(task)
            task.cancel()

    async def _wait_until_read(self) -> None:
        """Waits while everything is read again. Raises StorageUnavailable."""
        while self._pending is not None and self._reloading is not None:
            await asyncio.wait([self._reloading])
            self._check_open()

    def get_stale(self, key: str) -> KeyValue | None:
        """As the interface says. Equals ``get`` if ``sole_writer`` is true."""
        return self._snapshot.items.get(key)

    def get_cached(self, key: str) -> KeyValue | None:
        return self._snapshot.items.get(key) if self._is_complete() else None

    async def get(self, key: str) -> KeyValue | None:
        """As the interface says. Raises CorruptObject."""
        self._check_open()
        if not key.startswith(self._prefix):
            return await self._backend.get(key)
        if not await self._is_current():
            found = await self._backend.get(key)
            return found and self._present(found)
        self.corrupt.check(key)
        return self._snapshot.items.get(key)

    async def list(self, prefix: str, *, revision: int = 0, after: str = "", limit: int = 0) -> Page:
        """As the interface says. From memory, unless the revision is too old."""
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
        """Lists from the store. A page is empty only if nothing follows it: the next page continues from a key."""
        page = await self._backend.list(prefix, revision=revision, after=after, limit=limit)
        items = list(self._readable(page.items))
        while page.remaining and not items:
            page = await self._backend.list(prefix, revision=page.revision, after=page.items[-1].key, limit=limit)
            items = list(self._readable(page.items))
        return Page(items, page.revision, page.remaining)

    async def history(self, prefix: str, *, after: int, limit: int = 0) -> Sequence[Event]:
        """As the interface says. From memory, unless it begins too long ago, such as after a restart.

        A revision after the newest one in memory goes to the store, which may know that it belongs to a lost history.
        """
        self._check_open()
        if not prefix.startswith(self._prefix):
            return await self._backend.history(prefix, after=after, limit=limit)
        if self._recent.floor <= after <= self.revision and self._pending is None:
            matching = (event for event in reversed(self._recent.after(after)) if event.key.startswith(prefix))
            return _oldest(matching, limit)
        return await self._stored_history(prefix, after=after, limit=limit)

    async def _stored_history(self, prefix: str, *, after: int, limit: int) -> Sequence[Event]:
        """Reads history from the store until there are ``limit`` readable events: fewer mean that there are no more."""
        found: list[Event] = []
        while True:
            events = await self._backend.history(prefix, after=after, limit=limit)
            found += filter(None, map(self._readable_event, events))
            if not limit or len(events) < limit or len(found) >= limit:
                return found
            after = events[-1].revision

    async def _has_reached(self, revision: int) -> bool:
        """True if memory includes a revision; 0 is the current one."""
        if 0 < revision <= self.revision:
            return self._pending is None
        return await self._is_current() and revision <= self.revision

    def _is_complete(self) -> bool:
        """True if memory certainly includes everything that is committed."""
        known = self._backend.known_revision()
        if self.sole_writer:
            return known is not None and self._pending is None and not self._closed
        return known is not None and known <= self.revision and self._pending is None and not self._closed

    async def _is_current(self) -> bool:
        """True once memory includes what was committed at the call; False if that takes too long."""
        if self._is_complete():
            return True
        try:
            revision = await committed_by_now(self._backend)
            if revision > self.revision:
                await self.wait_for(revision)
        except RevisionInFuture:
            return False
        return self._pending is None

    # Writes

    async def create(self, key: str, value: bytes, *, guards: Sequence[Guard] = ()) -> int:
        self._check_open()
        if guards:
            await self._check_guards(guards)
        self._own[key] = value
        try:
            return await self._backend.create(key, value, guards=guards)
        except BaseException:
            self._own.pop(key, None)
            raise

    async def update(
        self, key: str, value: bytes, *, expected: int, known: KeyValue | None = None, guards: Sequence[Guard] = ()
    ) -> int:
        self._check_open()
        if guards:
            await self._check_guards(guards)
        self._own[key] = value
        try:
            return await self._backend.update(
                key, value, expected=expected, known=known or self.get_stale(key), guards=guards
            )
        except BaseException:
            self._own.pop(key, None)
            raise

    async def _check_guards(self, guards: Sequence[Guard]) -> None:
        """Refuses a write that was decided on memory which is being replaced: its revision may be of a lost history."""
        if self._pending is None:
            return
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                await self._wait_until_read()
        except TimeoutError:
            raise StorageUnavailable("events were lost, and everything is being read again") from None
        raise GuardConflict(guards[0].name, revision=self._applied)

    async def delete(self, key: str, *, expected: int, known: KeyValue | None = None) -> int:
        self._check_open()
        return await self._backend.delete(key, expected=expected, known=known or self.get_stale(key))

    # Subscriptions, status, shutdown

    def subscribe(
        self,
        prefix: str,
        sink: Sink,
        *,
        interrupted: Interrupted | None = None,
    ) -> Subscription:
        """As the interface says. The events hold the cached instances; the cache is updated before the sink is called.

        After a gap the cache compares its keys with those of the store. The events of that comparison lead to the
        present state, but not through all states between, and several keys may be deleted at one revision. So a
        subscriber whose own clients resume from events has to start again (``interrupted``, called before them).
        """
        source = self._subscriptions if prefix.startswith(self._prefix) else self._backend
        return source.subscribe(prefix, sink, interrupted=interrupted)

    def count(self, prefix: str) -> int:
        return self._snapshot.count(prefix) if prefix.startswith(self._prefix) else self._backend.count(prefix)

    def problem(self) -> str:
        return _CLOSED if self._closed else self._backend.problem()

    async def compact(self, revision: int) -> None:
        self._check_open()
        await self._backend.compact(revision)
        self._recent.compact(revision)

    async def close(self) -> None:
        """Ends the subscription to the store. The store stays open; its opener closes it."""
        self._closed = True
        self._feed.close()
        for task in self._waiting:
            task.cancel()
        if self._reloading is not None:
            self._reloading.cancel()

    # Reading everything from the store: at the start, and after a gap

    async def _load(self) -> None:
        page = await self._backend.list(self._prefix)
        # Removed one by one, so that the values are not in memory twice: the caller of list may keep the page.
        stored = page.items if isinstance(page.items, list) else list(page.items)
        stored.reverse()
        items = []
        while stored:
            if item := self._accept(stored.pop()):
                items.append(item)
        self._snapshot.load(items)
        self._continue_from(page.revision)

    def _continue_from(self, revision: int) -> None:
        """Applies the events that arrived while everything was read at a revision, and from now on each as it comes."""
        self._recent.restart(revision)
        self._loaded = self._applied = revision
        pending, self._pending = self._pending or [], None
        self._receive(pending)

    def _reload(self) -> None:
        """Events are lost: reads everything and compares it with memory."""
        self._pending = []
        if self._reloading is None or self._reloading.done():
            self._reloading = asyncio.create_task(self._reload_until_done())

    async def _reload_until_done(self) -> None:
        while True:
            try:
                self._replace_all(await self._read_without_gap())
            except StorageError as error:
                _log.warning("the lost events cannot be replaced yet: %s", error)
            except Exception:  # noqa: BLE001 - tried again, or the cache would stay outdated for ever
                _log.exception("replacing the lost events failed")
            else:
                return
            await asyncio.sleep(_RETRY_SECONDS)

    async def _read_without_gap(self) -> Page:
        """Reads everything, and again if more events were lost meanwhile: they may be later than what was read."""
        while True:
            begun = self._pending = [] if self._pending is None else self._pending
            page = await self._read_all()
            if self._pending is begun:
                return page

    def _replace_all(self, page: Page) -> None:
        """Makes memory equal to what was read, and publishes the difference."""
        changes = self._snapshot.changes_to(page.items, revision=page.revision)
        for event in changes:
            self._snapshot.apply(event.key, event.current)
        self._recent.restart(page.revision)
        self._applied = page.revision
        self._subscriptions.interrupt()
        self._subscriptions.publish(changes)
        self._continue_from(page.revision)

    async def _read_all(self) -> Page:
        """Reads all keys. Values that cannot be read are set aside."""
        self._own.clear()
        page = await self._backend.list(self._prefix)
        items: list[KeyValue] = []
        for start in range(0, len(page.items), _SLICE):
            items += filter(None, map(self._accept, page.items[start : start + _SLICE]))
            await asyncio.sleep(0)
        present = {kv.key for kv in page.items}
        for key in [key for key in self.corrupt if key not in present]:
            self.corrupt.discard(key)
        return Page(items, page.revision, 0)

    # Applying events

    def _receive(self, events: Sequence[Event]) -> None:
        if self._pending is not None:
            self._pending.extend(events)
            return
        if events and events[0].revision <= self._loaded:
            # A store with other writers may deliver events late which the list already included.
            events = [event for event in events if event.revision > self._loaded]
        if not events:
            return
        applied = [made for event in events if (made := self._apply(event))]
        self._applied = events[-1].revision
        if applied:
            self._subscriptions.publish(applied)

    def _apply(self, event: Event) -> Event | None:
        """Returns the event to publish; None if neither its previous nor its current value can be read."""
        current = event.current and self._accept(event.current)
        previous = self._snapshot.apply(event.key, current)
        if current is None:
            if event.current is None:
                self.corrupt.discard(event.key)
            if previous is None:
                return None
        event = Event(event.key, event.revision, current, previous)
        self._recent.append(event)
        return event

    def _accept(self, kv: KeyValue) -> KeyValue | None:
        """Returns the key-value to cache; None if its value cannot be read. Each value is checked here, once."""
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
        """The key-values of an earlier revision that can be read."""
        for kv in items:
            try:
                made = self._present(kv)
            except CorruptObject:
                continue
            yield made

    def _readable_event(self, event: Event) -> Event | None:
        """An event of the store's history as it was published when it was committed; None if it was not."""
        current = next(self._readable([event.current] if event.current else []), None)
        previous = next(self._readable([event.previous] if event.previous else []), None)
        return Event(event.key, event.revision, current, previous) if current or previous else None

    def _check_open(self) -> None:
        if self._closed:
            raise StorageUnavailable(_CLOSED)


def _oldest(events: Iterator[Event], limit: int) -> list[Event]:
    """The first ``limit`` (0: all) events, and the others of the last one's revision."""
    found = list(islice(events, limit or None))
    if found:
        last = found[-1].revision
        found += takewhile(lambda event: event.revision == last, events)
    return found
