"""The port, implemented on the writer thread and the readers."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from clusterregistry.apiserver.storage.errors import RevisionInFuture, StorageUnavailable
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
from clusterregistry.apiserver.storage.sqlite import schema
from clusterregistry.apiserver.storage.sqlite.errors import translated
from clusterregistry.apiserver.storage.sqlite.files import FileLock, ServedFiles, behind_link, inspect
from clusterregistry.apiserver.storage.sqlite.integrity import check_at_start
from clusterregistry.apiserver.storage.sqlite.key_index import KeyIndex
from clusterregistry.apiserver.storage.sqlite.reader import Readers
from clusterregistry.apiserver.storage.sqlite.writer import Writer, sweep
from clusterregistry.apiserver.storage.subscriptions import Subscriptions

_log = logging.getLogger(__name__)


class SQLiteStorage:
    """A store in one SQLite file. Every method may raise StorageUnavailable, and does so once it is closed."""

    sole_writer = True
    """No other process writes here: once a write is answered, ``revision`` and all caches have it."""

    def __init__(self, path: Path, opened: _Opened) -> None:
        live = opened.live
        self._lock, self._live = opened.lock, live
        self._closed = f"{path}: the store is closed"
        self._seen = RevisionWaiter(live.revision)
        self._publisher = Subscriptions()
        self._readers = Readers(path, live)
        loop = asyncio.get_running_loop()
        self._writer = Writer(opened.connection, files=opened.files, live=live, loop=loop, publish=self._publish)
        self._closing: asyncio.Future[None] | None = None
        self._damage = ""
        self._stop_checking: Callable[[], None] = lambda: None

    @classmethod
    async def open(cls, path: Path) -> SQLiteStorage:
        """Opens the file, or makes it, for this process alone; StorageUnavailable says why it cannot."""
        with translated(path):
            path = behind_link(path)
        loop = asyncio.get_running_loop()
        storage = cls(path, await loop.run_in_executor(None, _open, path))

        def report(damage: str) -> None:
            loop.call_soon_threadsafe(storage._note_damage, damage)

        try:
            storage._stop_checking = await loop.run_in_executor(None, partial(check_at_start, path, report=report))
        except BaseException:
            await storage.close()
            raise
        return storage

    @property
    def revision(self) -> int:
        return self._seen.value

    async def current_revision(self) -> int:
        # What this process has not yet heard of has not been answered to anyone either.
        self._check_open()
        await self._writer.go_over()
        return self._seen.value

    def known_revision(self) -> int | None:
        """As the port says. None after a commit that may have failed or not: see ``writing``."""
        return self._seen.value if self._writer.certain else None

    async def wait_for(self, revision: int) -> None:
        self._check_open()
        await self._seen.reach(revision, seconds=WAIT_SECONDS)

    def get_cached(self, key: str) -> KeyValue | None:  # noqa: ARG002 - the port's signature
        """Nothing is: that is what caches are for."""
        return None

    def get_stale(self, key: str) -> KeyValue | None:  # noqa: ARG002 - as above
        """Nothing is remembered."""
        return None

    async def get(self, key: str) -> KeyValue | None:
        self._check_open()
        await self._writer.go_over()
        return await self._readers.get(key)

    async def list(self, prefix: str, *, revision: int = 0, after: str = "", limit: int = 0) -> Page:
        """As the port says. A past revision costs a walk over the whole log."""
        self._check_open()
        if not revision:
            await self._writer.go_over()
        return await self._readers.list(prefix, revision=revision, after=after, limit=limit)

    async def history(self, prefix: str, *, after: int, limit: int = 0) -> Sequence[Event]:
        self._check_open()
        return await self._readers.history(prefix, after=after, limit=limit)

    async def create(self, key: str, value: bytes) -> int:
        """As the port says. A key with lone surrogates is a ValueError: it has no UTF-8 form."""
        self._check_open()
        key.encode()
        return await self._writer.write(key, value, expected=None)

    async def update(self, key: str, value: bytes, *, expected: int, known: KeyValue | None = None) -> int:
        self._check_open()
        return await self._writer.write(key, value, expected=expected, known=known)

    async def delete(self, key: str, *, expected: int, known: KeyValue | None = None) -> int:
        self._check_open()
        return await self._writer.write(key, None, expected=expected, known=known)

    def subscribe(
        self,
        prefix: str,
        sink: Sink,
        *,
        progressed: Progressed | None = None,  # noqa: ARG002 - every revision has an event here
        interrupted: Interrupted | None = None,
    ) -> Subscription:
        return self._publisher.subscribe(prefix, sink, interrupted=interrupted)

    def count(self, prefix: str) -> int:
        return self._live.count(prefix)

    def problem(self) -> str:
        """As the port says. It also has a failed writer try again, so that a problem ends without a write."""
        return (self._damage or self._writer.problem()) if self._closing is None else self._closed

    async def compact(self, revision: int) -> None:
        """As the port says, slice by slice between the writes. Idempotent; a lower revision changes nothing."""
        if revision > self._seen.value:
            raise RevisionInFuture(revision, current=self._seen.value)
        done = False
        while not done:
            self._check_open()
            done = await self._writer.transact(partial(sweep, revision=revision))

    async def close(self) -> None:
        if self._closing is None:
            self._seen.give_up(self._closed)
            self._writer.hand_over()
            self._closing = asyncio.get_running_loop().run_in_executor(None, self._close)
        # Once begun it goes through, whoever gives up waiting.
        await asyncio.shield(self._closing)

    def _note_damage(self, damage: str) -> None:
        """A large file is looked at while it is served; what is found then is told by the health checks and the log."""
        self._damage = damage
        if damage:
            _log.error("%s", damage)

    def _close(self) -> None:
        self._stop_checking()
        self._readers.close()
        self._writer.finish()
        self._lock.release()

    def _publish(self, events: Sequence[Event]) -> None:
        self._seen.advance(events[-1].revision)
        self._publisher.publish(events)

    def _check_open(self) -> None:
        if self._closing is not None:
            raise StorageUnavailable(self._closed)


class _Opened(NamedTuple):
    """What a store works with."""

    lock: FileLock
    connection: sqlite3.Connection
    live: KeyIndex
    files: ServedFiles


def _open(path: Path) -> _Opened:
    with translated(path):
        claimed_before = FileLock.exists(path)
        if not claimed_before:
            inspect(path)  # a start that is refused does not even leave a lock file behind
        lock = FileLock(path)
        try:
            if claimed_before:
                inspect(path)
            lock.sign()
            connection = schema.connect_writer(path)
            return _Opened(lock, connection, KeyIndex.load(connection), ServedFiles(path))
        except BaseException:
            lock.release()
            raise
