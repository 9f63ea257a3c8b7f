"""The stores that the conformance suite of the storage port runs over.

The suite is test_writes, test_lists, test_pages, test_watches, test_compaction, test_concurrency, test_restarts and
test_availability: whatever ``storage/interface.py`` promises, and nothing of one engine alone.

A new engine joins in three steps:

1. Write a class with the methods of ``Engine``. It is made with an empty directory, for one test, and its first
   ``open`` gives an empty store with all of its history. A real server behind it may serve several tests, if none
   sees another's keys.
2. Does only one process at a time write to a store of its kind? Then it is one line in ``SOLE_WRITERS``. Can several
   do so at once? Then it has ``open_second`` too, and is one line in ``SHARED``.
3. A second line, ``CachedEngine(YourEngine(directory))``, runs the suite over the cache around it.

Tests take revisions from what writes return, never from counting: whether an empty store is at revision 1, and whether
a compaction uses a revision of its own, is left to the engine. Events may come a little after the write is answered
where several write, so a test calls ``settled`` before it looks at what subscribers got.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from clusterregistry.apiserver.storage.cacher import Cacher
from clusterregistry.apiserver.storage.errors import RevisionInFuture
from clusterregistry.apiserver.storage.interface import Storage
from clusterregistry.apiserver.storage.sqlite import SQLiteStorage
from tests.apiserver.storage.etcd_engine import EtcdEngine
from tests.apiserver.storage.lagging import Lagging


class Engine(Protocol):
    """One store that can be closed and opened again, as a restart of the server does."""

    async def open(self) -> Storage:
        """Opens the store with all that was written to it before."""

    async def close(self) -> None:
        """Closes whatever is open. Idempotent."""

    async def fail(self) -> None:
        """From now on writes of ``LARGE`` values cannot be taken: the disk is full, the servers are gone."""

    async def mend(self) -> None:
        """Ends what ``fail`` began."""


class SharedEngine(Engine, Protocol):
    """An engine whose store several processes may write to at once."""

    async def open_second(self) -> Storage:
        """Opens what ``open`` has opened once more, as another replica does; ``close`` closes both."""


LARGE = b"x" * 100_000
"""More than fits into what a full disk has left."""


SETTLE_SECONDS = 30.0


async def settled(store: Storage) -> int:
    """Returns once the store has seen, and told its subscribers, all that is committed; says which revision that is."""
    revision = await store.current_revision()
    async with asyncio.timeout(SETTLE_SECONDS):
        while True:
            # A store gives up after a few seconds; on a busy machine news may take longer.
            with suppress(RevisionInFuture):
                await store.wait_for(revision)
                return revision


class SQLiteEngine:
    def __init__(self, directory: Path) -> None:
        self._path = directory / "registry.db"
        self._storage: SQLiteStorage | None = None

    async def open(self) -> SQLiteStorage:
        self._storage = await SQLiteStorage.open(self._path)
        return self._storage

    async def close(self) -> None:
        if self._storage is not None:
            await self._storage.close()

    async def fail(self) -> None:
        await self._limit_pages(1)  # fewer than there are: the file may not grow, as on a full disk

    async def mend(self) -> None:
        await self._limit_pages(1_000_000)

    async def _limit_pages(self, most: int) -> None:
        assert self._storage is not None
        statement = f"PRAGMA max_page_count = {most}"
        await self._storage._writer.transact(lambda connection: connection.execute(statement).fetchall())


class CachedEngine:
    """A cache around another engine's store."""

    def __init__(self, inner: Engine, *, most_events: int = 10_000) -> None:
        self.inner, self._most_events = inner, most_events
        self._cachers: list[Cacher] = []

    async def open(self) -> Cacher:
        return await self._around(await self.inner.open())

    async def close(self) -> None:
        while self._cachers:
            await self._cachers.pop().close()
        await self.inner.close()

    async def fail(self) -> None:
        await self.inner.fail()

    async def mend(self) -> None:
        await self.inner.mend()

    async def _around(self, store: Storage) -> Cacher:
        cacher = await Cacher.open(store, "/", most_events=self._most_events)
        self._cachers.append(cacher)
        return cacher


class SharedCachedEngine(CachedEngine):
    """Caches around the stores of an engine that can be opened twice, as in two replicas."""

    def __init__(self, inner: SharedEngine, *, most_events: int = 10_000) -> None:
        super().__init__(inner, most_events=most_events)
        self._shared = inner

    async def open_second(self) -> Cacher:
        return await self._around(await self._shared.open_second())


class LaggingEngine(SQLiteEngine):
    """A store that tells its events late, to any number of those who opened it: what a replica's cache has to bear."""

    _lagging: Lagging | None = None

    async def open(self) -> Lagging:  # type: ignore[override]  # what is opened is the store with the delay
        self._lagging = Lagging(await super().open())
        return self._lagging

    async def open_second(self) -> Lagging:
        # Fed by the first, hence later still: it also hears of what was on its way when it joined.
        assert self._lagging is not None
        return Lagging(self._lagging)


SOLE_WRITERS: dict[str, Callable[[Path], Engine]] = {
    "sqlite": SQLiteEngine,
    "cacher": lambda directory: CachedEngine(SQLiteEngine(directory)),
    # Its memory is of no use for the past: everything old comes from the store behind.
    "forgetful-cacher": lambda directory: CachedEngine(SQLiteEngine(directory), most_events=1),
}

SHARED: dict[str, Callable[[Path], SharedEngine]] = {
    "etcd": EtcdEngine,
    "cached-etcd": lambda directory: SharedCachedEngine(EtcdEngine(directory)),
    "lagging-cacher": lambda directory: SharedCachedEngine(LaggingEngine(directory)),
}

ENGINES: dict[str, Callable[[Path], Engine]] = {**SOLE_WRITERS, **SHARED}
