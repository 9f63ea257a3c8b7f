"""The storage interface on etcd: transactions, range reads and one watch."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from clusterregistry.apiserver.storage.errors import (
    KeyExists,
    KeyNotFound,
    RevisionCompacted,
    RevisionConflict,
    RevisionInFuture,
    StorageUnavailable,
)
from clusterregistry.apiserver.storage.etcd import errors, messages
from clusterregistry.apiserver.storage.etcd.client import Client, EtcdRestored, RestoreDetector
from clusterregistry.apiserver.storage.etcd.key_range import INTERNAL, KeyRange
from clusterregistry.apiserver.storage.etcd.reader import Reader
from clusterregistry.apiserver.storage.etcd.settings import EtcdSettings
from clusterregistry.apiserver.storage.etcd.watch_loop import WatchLoop
from clusterregistry.apiserver.storage.etcd.writer import Writer
from clusterregistry.apiserver.storage.etcd.writer_lease import WriterLease
from clusterregistry.apiserver.storage.interface import (
    Event,
    Guard,
    Interrupted,
    KeyValue,
    Page,
    Sink,
    Subscription,
)
from clusterregistry.apiserver.storage.subscriptions import WAIT_SECONDS, RevisionWaiter, Subscriptions
from clusterregistry.apiserver.tasks import cancel_and_wait

_COMPACTED = INTERNAL + "compacted"
"""Under this key replicas agree on the revision to compact to."""

_EVENT_SECONDS = 0.005
"""How long an event usually takes to arrive."""

_PROGRESS_SECONDS = 0.1
"""How long to wait between progress requests, and before a write that makes an event."""

_log = logging.getLogger(__name__)


class EtcdStorage:
    """A store in etcd, under one prefix. Every method may raise StorageUnavailable, and does so once it is closed."""

    sole_writer = False
    """Other replicas write here too: their events arrive a moment later."""

    def __init__(self, settings: EtcdSettings) -> None:
        """For ``open``."""
        self._range = KeyRange(settings.prefix)
        self._shown = settings.shown
        self._restored = ""
        """Why the events seen so far are invalid, from the detection of a restore until everything is read again."""
        self._client = Client(settings, RestoreDetector(self._note_restored))
        self._lease = WriterLease(self._client, self._range, is_watching=lambda: not self._watch.problem)
        self._reader = Reader(self._client, self._range)
        self._writer = Writer(self._client, self._range, self._lease)
        self._subscriptions = Subscriptions()
        self._seen = RevisionWaiter(0)
        self._newest_event = 0
        self._watched_since = 0
        """All events after this revision were received."""
        self._history_start = self._lost_until = 0
        """After a restore of etcd: older revisions than the first may belong to the lost history, and so do revisions
        between the current one and the second."""
        self._names: set[str] = set()
        self._watch = WatchLoop(self._client, self._range.bounds(""), handler=self)
        self._tasks: list[asyncio.Task[None]] = []
        self._touched, self._touch_lock = 0, asyncio.Lock()
        self._closing: asyncio.Task[None] | None = None

    @classmethod
    async def open(cls, settings: EtcdSettings) -> EtcdStorage:
        """Connects and watches all changes from now on. Raises StorageUnavailable with the reason if it cannot."""
        storage = cls(settings)
        try:
            revision, is_writable = await storage._read_state(), bool(storage._newest_event)
            watch = storage._watch.run(after=revision, from_next=is_writable)
            storage._tasks.append(asyncio.create_task(watch))
            await storage._watch.wait_until_open()
            if is_writable:
                # The watch starts at the next revision. Until there is one, etcd does not answer progress requests, and
                # a member that does not answer is left.
                with suppress(errors.NoSpaceError):
                    await storage._writer.touch()
            storage._tasks.append(asyncio.create_task(storage._lease.run()))
        except BaseException:
            await storage.close()
            raise
        return storage

    async def _read_state(self) -> int:
        """Reads the keys and returns their revision.

        It is the revision of a write of this process, so that there is an event at it. If etcd accepts no writes, it is
        read all the same; the writer probes until etcd accepts one.
        """
        revision, touched = await self._reader.revision(), 0
        with suppress(errors.NoSpaceError):
            revision = touched = await self._writer.touch()
        self._names = await self._reader.names(revision)
        self._watched_since, self._newest_event = revision, touched
        self._seen.advance(revision)
        return revision

    # Reads

    @property
    def revision(self) -> int:
        return self._seen.value

    async def current_revision(self) -> int:
        self._check_open()
        revision = await self._reader.revision()
        if self._restored:
            raise self._restored_error()
        return revision

    def known_revision(self) -> int | None:
        """As the interface says: known while this replica holds the writer lease and no write is in flight."""
        if self._lease.is_trusted and not self._writer.in_flight and not self._restored:
            return max(self._writer.acknowledged, self._lease.revision)
        return None

    def get_cached(self, key: str) -> KeyValue | None:  # noqa: ARG002 - the interface's signature
        """None: this store has no cache."""
        return None

    def get_stale(self, key: str) -> KeyValue | None:  # noqa: ARG002 - as above
        """None: this store has no cache."""
        return None

    async def get(self, key: str) -> KeyValue | None:
        self._check_open()
        return await self._reader.get(key)

    async def list(self, prefix: str, *, revision: int = 0, after: str = "", limit: int = 0) -> Page:
        self._check_open()
        self._check_history(revision)
        if limit > 0 or after:
            return await self._reader.list(prefix, revision=revision, after=after, limit=limit)
        return await self._reader.list_all(prefix, revision=revision, known=self._names)

    async def history(self, prefix: str, *, after: int, limit: int = 0) -> Sequence[Event]:
        """As the interface says, up to the newest event that was received; subscribers get the later ones."""
        self._check_open()
        self._check_history(after)
        until = self._newest_event
        if not until and after < self._watched_since:
            # etcd does not return where its history ends, and it has not accepted a write that would show it.
            raise RevisionCompacted(after, compacted=self._watched_since)
        if until <= after:
            return ()
        return await self._reader.history(prefix, after=after, until=until, limit=limit)

    async def wait_for(self, revision: int) -> None:
        self._check_open()
        try:
            await self._seen.reach(revision, seconds=_EVENT_SECONDS)
        except RevisionInFuture:
            requesting = asyncio.create_task(self._request_progress(revision))
            try:
                await self._seen.reach(revision, seconds=WAIT_SECONDS)
            finally:
                requesting.cancel()

    async def _request_progress(self, revision: int) -> None:
        """Requests progress in a loop: writes to keys outside of the prefix make revisions without an event."""
        while True:
            if self._watch.has_reliable_progress:
                self._watch.request_progress()
            else:
                await self._make_event_after(revision)
            await asyncio.sleep(_PROGRESS_SECONDS)

    async def _make_event_after(self, revision: int) -> None:
        """For releases of etcd without reliable progress: writes a key, whose event arrives after all before it."""
        with suppress(StorageUnavailable):
            if await self._reader.revision() < revision:
                return
            await asyncio.sleep(_PROGRESS_SECONDS)
            async with self._touch_lock:
                if self._touched < revision:
                    self._touched = await self._writer.touch()

    # Writes

    async def create(self, key: str, value: bytes, *, guards: Sequence[Guard] = ()) -> int:
        self._check_open()
        self._check_guards(guards)
        return await self._writer.create(key, value, guards=guards)

    async def update(
        self,
        key: str,
        value: bytes,
        *,
        expected: int,
        known: KeyValue | None = None,  # noqa: ARG002 - etcd's events hold it
        guards: Sequence[Guard] = (),
    ) -> int:
        self._check_open()
        self._check_guards(guards)
        return await self._writer.update(key, value, expected=expected, guards=guards)

    def _check_guards(self, guards: Sequence[Guard]) -> None:
        """Raises EtcdRestored while the revisions of guards belong to a lost history."""
        if guards and self._restored:
            raise self._restored_error()

    async def delete(self, key: str, *, expected: int, known: KeyValue | None = None) -> int:  # noqa: ARG002 - as above
        self._check_open()
        return await self._writer.delete(key, expected=expected)

    async def compact(self, revision: int) -> None:
        """As the interface says. Of several replicas, the one that writes the revision under the agreed key compacts.

        Other users of the same etcd may compact further.
        """
        self._check_open()
        if revision > self._seen.value and revision > (current := await self._reader.revision()):
            raise RevisionInFuture(revision, current=current)
        if revision > 0 and await self._agree_to_compact(revision):
            with suppress(errors.CompactedError):
                await self._client.call("compact", messages.CompactionRequest(revision=revision))

    async def _agree_to_compact(self, revision: int) -> bool:
        """True if this replica is the one that compacts to the revision."""
        agreed = await self._reader.get(_COMPACTED)
        text = b"%d" % revision
        if agreed is not None and agreed.value.isdigit() and int(agreed.value) >= revision:
            return False
        try:
            if agreed is None:
                await self._writer.create(_COMPACTED, text)
            else:
                await self._writer.update(_COMPACTED, text, expected=agreed.revision)
        except (KeyExists, KeyNotFound, RevisionConflict):
            return False
        return True

    # Watch

    def subscribe(
        self,
        prefix: str,
        sink: Sink,
        *,
        interrupted: Interrupted | None = None,
    ) -> Subscription:
        return self._subscriptions.subscribe(prefix, sink, interrupted=interrupted)

    def on_events(self, events: Sequence[Any]) -> None:
        """From the watch loop. Subscribers get the events before the revision counts as seen."""
        objects = self._range.events(events)
        for event in objects:
            if event.current is None:
                self._names.discard(event.key)
            else:
                self._names.add(event.key)
        self._newest_event = events[-1].kv.mod_revision
        self._client.restore_detector.observe(self._newest_event)
        if len(objects) < len(events):
            self._lease.observe(events)
        if objects and not self._writer.may_be_own(objects[-1].revision):
            self._lease.yield_lease()
        self._subscriptions.publish(objects)
        self.on_progress(self._newest_event)

    def on_progress(self, revision: int) -> None:
        """From the watch loop."""
        self._seen.advance(revision)

    async def on_gap(self) -> int:
        """From the watch loop."""
        lost = self._seen.value
        if self._restored:
            self._client.restore_detector.reset()
            self._writer.reset()
        revision = await self._read_state()
        if self._restored:
            self._history_start, self._lost_until = revision, max(lost, self._lost_until)
            self._restored = ""
            _log.warning(
                "%s: everything was read again at revision %d; clients have to list again",
                self._shown,
                self._watched_since,
            )
        self._subscriptions.interrupt()
        return revision

    async def verify(self, last: Any) -> None:
        """From the watch loop."""
        if not self._restored and last is not None and not await self._reader.has_event(last):
            self._client.restore_detector.report(f"its history no longer holds revision {last.kv.mod_revision}")
        elif not self._restored:
            await self._reader.revision()
        if self._restored:
            raise self._restored_error()

    # After a restore of etcd

    def _note_restored(self, reason: str) -> None:
        """From the restore detector: a response does not continue the history that was seen."""
        self._restored = reason
        _log.error(
            "%s was restored from a snapshot, or is another cluster: %s. Everything is read again. What to do next "
            "time: stop the registry, restore with --bump-revision and --mark-compacted, start it",
            self._shown,
            reason,
        )
        self._lease.abandon()
        self._watch.restart(self._restored_error())

    def _restored_error(self) -> EtcdRestored:
        return EtcdRestored(f"{self._shown} was restored ({self._restored}); everything is being read again")

    def _check_history(self, revision: int) -> None:
        """Raises RevisionCompacted for a revision that belongs, or may belong, to a history lost by a restore."""
        if 0 < revision < self._history_start or self._seen.value < revision <= self._lost_until:
            raise RevisionCompacted(revision, compacted=self._history_start)

    # Status and shutdown

    def count(self, prefix: str) -> int:
        return sum(name.startswith(prefix) for name in self._names)

    def problem(self) -> str:
        if self._closing is not None:
            return self._client.closed_message
        return self._writer.problem or self._watch.problem

    async def close(self) -> None:
        if self._closing is None:
            self._seen.fail(self._client.closed_message)
            self._closing = asyncio.create_task(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        self._lease.close()
        await self._writer.close()  # before the lease is released: without it the writes in flight would be refused
        await cancel_and_wait(self._tasks)
        await self._lease.release()
        await self._client.close()

    def _check_open(self) -> None:
        if self._closing is not None:
            raise StorageUnavailable(self._client.closed_message)
