"""A store whose events come late, as they do from a server somewhere else."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

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
from clusterregistry.apiserver.storage.subscriptions import WAIT_SECONDS, RevisionWaiter, Subscriptions

DELAY = 0.002
"""Seconds; longer than a write takes."""


class Lagging:
    """A store as one of several writers sees it: reads are current, and events arrive a little later."""

    sole_writer = False

    def __init__(self, inner: Storage) -> None:
        self._inner = inner
        self._seen = RevisionWaiter(inner.revision)
        self._subscriptions = Subscriptions()
        self._feed = inner.subscribe("", self._receive)

    @property
    def revision(self) -> int:
        return self._seen.value

    async def current_revision(self) -> int:
        return await self._inner.current_revision()

    def known_revision(self) -> int | None:
        return None  # others write too

    async def wait_for(self, revision: int) -> None:
        await self._seen.reach(revision, seconds=WAIT_SECONDS)

    def get_cached(self, key: str) -> KeyValue | None:
        return self._inner.get_cached(key)

    def get_stale(self, key: str) -> KeyValue | None:
        return self._inner.get_stale(key)

    async def get(self, key: str) -> KeyValue | None:
        return await self._inner.get(key)

    async def list(self, prefix: str, *, revision: int = 0, after: str = "", limit: int = 0) -> Page:
        return await self._inner.list(prefix, revision=revision, after=after, limit=limit)

    async def create(self, key: str, value: bytes, *, guards: Sequence[Guard] = ()) -> int:
        return await self._inner.create(key, value, guards=guards)

    async def update(
        self, key: str, value: bytes, *, expected: int, known: KeyValue | None = None, guards: Sequence[Guard] = ()
    ) -> int:
        return await self._inner.update(key, value, expected=expected, known=known, guards=guards)

    async def delete(self, key: str, *, expected: int, known: KeyValue | None = None) -> int:
        return await self._inner.delete(key, expected=expected, known=known)

    async def history(self, prefix: str, *, after: int, limit: int = 0) -> Sequence[Event]:
        return await self._inner.history(prefix, after=after, limit=limit)

    def subscribe(
        self,
        prefix: str,
        sink: Sink,
        *,
        interrupted: Interrupted | None = None,
    ) -> Subscription:
        return self._subscriptions.subscribe(prefix, sink, interrupted=interrupted)

    def count(self, prefix: str) -> int:
        return self._inner.count(prefix)

    def problem(self) -> str:
        return self._inner.problem()

    async def compact(self, revision: int) -> None:
        await self._inner.compact(revision)

    async def close(self) -> None:
        self._feed.close()
        await self._inner.close()

    def _receive(self, events: Sequence[Event]) -> None:
        # The loop calls back in the order of the times, so the events keep theirs.
        asyncio.get_running_loop().call_later(DELAY, self._hand_out, events)

    def _hand_out(self, events: Sequence[Event]) -> None:
        self._subscriptions.publish(events)
        self._seen.advance(events[-1].revision)
