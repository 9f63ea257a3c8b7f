"""The port, implemented on etcd's transactions, ranges and watches."""

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
from clusterregistry.apiserver.storage.etcd.client import Endpoints
from clusterregistry.apiserver.storage.etcd.key_range import INTERNAL, Range
from clusterregistry.apiserver.storage.etcd.lineage import Lineage, Restored
from clusterregistry.apiserver.storage.etcd.reader import Reader
from clusterregistry.apiserver.storage.etcd.settings import EtcdSettings
from clusterregistry.apiserver.storage.etcd.watch_loop import WatchLoop
from clusterregistry.apiserver.storage.etcd.writer import Writer
from clusterregistry.apiserver.storage.etcd.writer_lease import WriterLease
from clusterregistry.apiserver.storage.interface import (
    Event,
    Interrupted,
    KeyValue,
    Page,
    Progressed,
    Sink,
    Subscription,
)
from clusterregistry.apiserver.storage.revision_waiter import WAIT_SECONDS, RevisionWaiter
from clusterregistry.apiserver.storage.subscriptions import Subscriptions

_COMPACTED = INTERNAL + "compacted"
"""Under this key replicas agree on how far history is forgotten."""

_SOON = 0.005
_LATE = 0.1
"""Seconds: how long an event takes most of the time, and when it does not look as if one comes."""


_log = logging.getLogger(__name__)


class EtcdStorage:
    """A store in etcd, under one prefix. Every method may raise StorageUnavailable, and does so once it is closed."""

    sole_writer = False
    """Other replicas write here too: what they wrote is heard of a moment later."""

    def __init__(self, settings: EtcdSettings) -> None:
        """For ``open``."""
        self._range = Range(settings.prefix)
        self._shown = settings.shown
        self._restored = ""
        """Why what we have heard of counts no longer; empty when it does."""
        self._endpoints = Endpoints(settings, Lineage(self._note_restored))
        self._claim = WriterLease(self._endpoints, self._range, listens=lambda: not self._follower.problem)
        self._reader = Reader(self._endpoints, self._range)
        self._writer = Writer(self._endpoints, self._range, self._claim)
        self._publisher = Subscriptions()
        self._seen = RevisionWaiter(0)
        self._newest_event = 0
        self._begun = 0
        """Since which revision we have heard of everything."""
        self._kept_from = self._lost_to = 0
        """After etcd was restored: what is older than the one is not known to be of this past, and what lies between
        the present and the other was of the past that is gone."""
        self._names: set[str] = set()
        self._follower = WatchLoop(self._endpoints, self._range.bounds(""), listener=self)
        self._running: list[asyncio.Task[None]] = []
        self._touched, self._touching = 0, asyncio.Lock()
        self._closing: asyncio.Task[None] | None = None

    @classmethod
    async def open(cls, settings: EtcdSettings) -> EtcdStorage:
        """Connects, and follows all changes from now on; StorageUnavailable says why it cannot."""
        storage = cls(settings)
        try:
            revision, takes_writes = await storage._begin(), bool(storage._newest_event)
            following = storage._follower.run(after=revision, from_next=takes_writes)
            storage._running.append(asyncio.create_task(following))
            await storage._follower.wait_until_open()
            if takes_writes:
                # The watch begins with the next revision. Until there is one, etcd answers no question about progress,
                # and a member that does not answer is left.
                with suppress(errors.NoSpaceError):
                    await storage._writer.touch()
            storage._running.append(asyncio.create_task(storage._claim.run()))
        except BaseException:
            await storage.close()
            raise
        return storage

    async def _begin(self) -> int:
        """Takes note of all that is there, and returns the revision that this is from.

        It is that of a write of ours, so that there is an event at it. An etcd that takes no writes is read all the
        same; as soon as it takes some, one is made (``Writer``).
        """
        revision, touched = await self._reader.revision(), 0
        with suppress(errors.NoSpaceError):
            revision = touched = await self._writer.touch()
        self._names = await self._reader.names(revision)
        self._begun, self._newest_event = revision, touched
        self._seen.advance(revision)
        return revision

    # Reading

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
        """As the port says: while nobody else can write, and nothing of ours is on its way, we have heard of it all."""
        if self._claim.is_certain and not self._writer.under_way and not self._restored:
            return max(self._writer.answered, self._claim.revision)
        return None

    def get_cached(self, key: str) -> KeyValue | None:  # noqa: ARG002 - the port's signature
        """Nothing is: that is what caches are for."""
        return None

    def get_stale(self, key: str) -> KeyValue | None:  # noqa: ARG002 - as above
        """Nothing is remembered."""
        return None

    async def get(self, key: str) -> KeyValue | None:
        self._check_open()
        return await self._reader.get(key)

    async def list(self, prefix: str, *, revision: int = 0, after: str = "", limit: int = 0) -> Page:
        self._check_open()
        self._check_kept(revision)
        if limit > 0 or after:
            return await self._reader.list(prefix, revision=revision, after=after, limit=limit)
        return await self._reader.list_all(prefix, revision=revision, known=self._names)

    async def history(self, prefix: str, *, after: int, limit: int = 0) -> Sequence[Event]:
        """As the port says, up to what this store has heard of; the rest reaches those who have subscribed.

        Others may have changed several keys in one revision: then there can be more than ``limit``.
        """
        self._check_open()
        self._check_kept(after)
        until = self._newest_event
        if not until and after < self._begun:
            # etcd does not say where its history ends, and a write that would show it was not taken yet.
            raise RevisionCompacted(after, compacted=self._begun)
        if until <= after:
            return ()
        return await self._reader.history(prefix, after=after, until=until, limit=limit)

    async def wait_for(self, revision: int) -> None:
        self._check_open()
        try:
            await self._seen.reach(revision, seconds=_SOON)
        except RevisionInFuture:
            pressing = asyncio.create_task(self._press_for(revision))
            try:
                await self._seen.reach(revision, seconds=WAIT_SECONDS)
            finally:
                pressing.cancel()

    async def _press_for(self, revision: int) -> None:
        """Revisions of others' keys make no event of ours: etcd has to be asked whether there is one to come."""
        while True:
            if self._follower.progress_is_true:
                self._follower.ask_for_progress()
            else:
                await self._have_event_behind(revision)
            await asyncio.sleep(_LATE)

    async def _have_event_behind(self, revision: int) -> None:
        """For releases of etcd that cannot be asked. A write of ours is told after all that was before it."""
        with suppress(StorageUnavailable):
            if await self._reader.revision() < revision:
                return
            await asyncio.sleep(_LATE)
            async with self._touching:
                if self._touched < revision:
                    self._touched = await self._writer.touch()

    # Writing

    async def create(self, key: str, value: bytes) -> int:
        self._check_open()
        return await self._writer.create(key, value)

    async def update(self, key: str, value: bytes, *, expected: int, known: KeyValue | None = None) -> int:  # noqa: ARG002 - etcd knows
        self._check_open()
        return await self._writer.update(key, value, expected=expected)

    async def delete(self, key: str, *, expected: int, known: KeyValue | None = None) -> int:  # noqa: ARG002 - as above
        self._check_open()
        return await self._writer.delete(key, expected=expected)

    async def compact(self, revision: int) -> None:
        """As the port says, by one replica: the one that gets its revision under an agreed key.

        etcd's history belongs to all who use it; what others have compacted is gone for us too.
        """
        self._check_open()
        if revision > self._seen.value and revision > (current := await self._reader.revision()):
            raise RevisionInFuture(revision, current=current)
        if revision > 0 and await self._agree_to_compact(revision):
            with suppress(errors.CompactedError):
                await self._endpoints.call("compact", messages.CompactionRequest(revision=revision))

    async def _agree_to_compact(self, revision: int) -> bool:
        """Whether it is for us to do."""
        noted = await self._reader.get(_COMPACTED)
        text = b"%d" % revision
        if noted is not None and noted.value.isdigit() and int(noted.value) >= revision:
            return False
        try:
            if noted is None:
                await self._writer.create(_COMPACTED, text)
            else:
                await self._writer.update(_COMPACTED, text, expected=noted.revision)
        except (KeyExists, KeyNotFound, RevisionConflict):
            return False
        return True

    # Following

    def subscribe(
        self,
        prefix: str,
        sink: Sink,
        *,
        progressed: Progressed | None = None,
        interrupted: Interrupted | None = None,
    ) -> Subscription:
        return self._publisher.subscribe(prefix, sink, progressed=progressed, interrupted=interrupted)

    def happened(self, events: Sequence[Any]) -> None:
        """From the follower. Subscribers have the events when the revision counts as seen."""
        own = self._range.events(events)
        for event in own:
            if event.current is None:
                self._names.discard(event.key)
            else:
                self._names.add(event.key)
        self._newest_event = events[-1].kv.mod_revision
        self._endpoints.lineage.heard(self._newest_event)
        if len(own) < len(events):
            self._claim.heard(events)
        if own and not self._writer.may_be_ours(own[-1].revision):
            self._claim.give_way()
        self._publisher.publish(own)
        self.progressed(self._newest_event)

    def progressed(self, revision: int) -> None:
        """From the follower."""
        self._publisher.progress(revision)
        self._seen.advance(revision)

    async def interrupted(self) -> int:
        """From the follower."""
        lost = self._seen.value
        if self._restored:
            self._endpoints.lineage.begin_anew()
            self._writer.begin_anew()
        revision = await self._begin()
        if self._restored:
            self._kept_from, self._lost_to = revision, max(lost, self._lost_to)
            self._restored = ""
            _log.warning("%s: all was read anew at revision %d; clients have to list anew", self._shown, self._begun)
        self._publisher.interrupt()
        return revision

    async def verify(self, last: Any) -> None:
        """From the follower."""
        if not self._restored and last is not None and not await self._reader.still_has(last):
            self._endpoints.lineage.broke(f"what it had at revision {last.kv.mod_revision} is not there any longer")
        elif not self._restored:
            await self._reader.revision()
        if self._restored:
            raise self._restored_error()

    def _note_restored(self, reason: str) -> None:
        """An answer of etcd does not belong to what we have heard of."""
        self._restored = reason
        _log.error(
            "%s was restored from a snapshot, or is another one: %s. Everything is read anew. What to do next time: "
            "stop the registry, restore with --bump-revision and --mark-compacted, start it",
            self._shown,
            reason,
        )
        self._claim.give_up()
        self._follower.start_anew(self._restored_error())

    def _restored_error(self) -> Restored:
        return Restored(f"{self._shown} was restored ({self._restored}); everything is being read anew")

    def _check_kept(self, revision: int) -> None:
        """Raises RevisionCompacted for a revision that is, or may be, of a past that etcd was turned back from."""
        if 0 < revision < self._kept_from or self._seen.value < revision <= self._lost_to:
            raise RevisionCompacted(revision, compacted=self._kept_from)

    # The rest

    def count(self, prefix: str) -> int:
        return sum(name.startswith(prefix) for name in self._names)

    def problem(self) -> str:
        if self._closing is not None:
            return self._endpoints.closed_message
        return self._writer.problem or self._follower.problem

    async def close(self) -> None:
        if self._closing is None:
            self._seen.give_up(self._endpoints.closed_message)
            self._closing = asyncio.create_task(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        self._claim.close()
        await self._writer.close()  # without the claim, its writes would be refused
        for running in self._running:
            running.cancel()
        if self._running:
            await asyncio.wait(self._running)
        await self._claim.let_go()
        await self._endpoints.close()

    def _check_open(self) -> None:
        if self._closing is not None:
            raise StorageUnavailable(self._endpoints.closed_message)
