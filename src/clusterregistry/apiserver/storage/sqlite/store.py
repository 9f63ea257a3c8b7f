"""The storage interface on SQLite: one writer thread, a pool of readers, and an index of keys in memory."""

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
    Guard,
    Interrupted,
    KeyValue,
    Page,
    Sink,
    Subscription,
)
from clusterregistry.apiserver.storage.sqlite import schema
from clusterregistry.apiserver.storage.sqlite.errors import translated
from clusterregistry.apiserver.storage.sqlite.files import FileLock, ServedFiles, inspect, resolve_link
from clusterregistry.apiserver.storage.sqlite.integrity import check_at_start
from clusterregistry.apiserver.storage.sqlite.key_index import KeyIndex
from clusterregistry.apiserver.storage.sqlite.reader import Readers
from clusterregistry.apiserver.storage.sqlite.writer import Writer, compact_slice
from clusterregistry.apiserver.storage.subscriptions import WAIT_SECONDS, RevisionWaiter, Subscriptions

_log = logging.getLogger(__name__)


class SQLiteStorage:
    """A store in one SQLite file. Every method may raise StorageUnavailable, and does so once it is closed."""

    sole_writer = True
    """No other process writes here: once a write is acknowledged, ``revision`` and all caches include it."""

    def __init__(self, path: Path, opened: _Opened) -> None:
        """For ``open``."""
        index = opened.keys
        self._lock, self._index = opened.lock, index
        self._closed = f"{path}: the store is closed"
        self._seen = RevisionWaiter(index.revision)
        self._subscriptions = Subscriptions()
        self._readers = Readers(path, index)
        loop = asyncio.get_running_loop()
        self._writer = Writer(opened.connection, files=opened.files, index=index, loop=loop, publish=self._publish)
        self._closing: asyncio.Future[None] | None = None
        self._damage = ""
        self._stop_checking: Callable[[], None] = lambda: None

    @classmethod
    async def open(cls, path: Path) -> SQLiteStorage:
        """Opens the file, or creates it, for this process alone. Raises StorageUnavailable with the reason."""
        with translated(path):
            path = resolve_link(path)
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
        # A commit that is not published yet has not been acknowledged either.
        self._check_open()
        await self._writer.ensure_certain()
        return self._seen.value

    def known_revision(self) -> int | None:
        """As the interface says. None after a commit whose outcome is unknown: see ``writer``."""
        return self._seen.value if self._writer.is_certain else None

    async def wait_for(self, revision: int) -> None:
        self._check_open()
        await self._seen.reach(revision, seconds=WAIT_SECONDS)

    def get_cached(self, key: str) -> KeyValue | None:  # noqa: ARG002 - the interface's signature
        """None: this store has no cache."""
        return None

    def get_stale(self, key: str) -> KeyValue | None:  # noqa: ARG002 - as above
        """None: this store has no cache."""
        return None

    async def get(self, key: str) -> KeyValue | None:
        self._check_open()
        await self._writer.ensure_certain()
        return await self._readers.get(key)

    async def list(self, prefix: str, *, revision: int = 0, after: str = "", limit: int = 0) -> Page:
        """As the interface says. A past revision takes a scan of the whole log."""
        self._check_open()
        if not revision:
            await self._writer.ensure_certain()
        return await self._readers.list(prefix, revision=revision, after=after, limit=limit)

    async def history(self, prefix: str, *, after: int, limit: int = 0) -> Sequence[Event]:
        self._check_open()
        return await self._readers.history(prefix, after=after, limit=limit)

    async def create(self, key: str, value: bytes, *, guards: Sequence[Guard] = ()) -> int:
        """As the interface says. Raises ValueError for a key with lone surrogates, which has no UTF-8 form."""
        self._check_open()
        key.encode()
        return await self._writer.write(key, value, expected=None, guards=guards)

    async def update(
        self, key: str, value: bytes, *, expected: int, known: KeyValue | None = None, guards: Sequence[Guard] = ()
    ) -> int:
        self._check_open()
        return await self._writer.write(key, value, expected=expected, known=known, guards=guards)

    async def delete(self, key: str, *, expected: int, known: KeyValue | None = None) -> int:
        self._check_open()
        return await self._writer.write(key, None, expected=expected, known=known)

    def subscribe(
        self,
        prefix: str,
        sink: Sink,
        *,
        interrupted: Interrupted | None = None,
    ) -> Subscription:
        return self._subscriptions.subscribe(prefix, sink, interrupted=interrupted)

    def count(self, prefix: str) -> int:
        return self._index.count(prefix)

    def problem(self) -> str:
        """As the interface says. After a failure it also probes, so that the problem ends without a write."""
        return (self._damage or self._writer.problem()) if self._closing is None else self._closed

    async def compact(self, revision: int) -> None:
        """As the interface says, slice by slice between the writes. Idempotent; a lower revision changes nothing."""
        if revision > self._seen.value:
            raise RevisionInFuture(revision, current=self._seen.value)
        done = False
        while not done:
            self._check_open()
            done = await self._writer.transact(partial(compact_slice, revision=revision))

    async def close(self) -> None:
        if self._closing is None:
            self._seen.fail(self._closed)
            self._writer.hand_over()
            self._closing = asyncio.get_running_loop().run_in_executor(None, self._close)
        # Once begun it completes, even if the caller is cancelled.
        await asyncio.shield(self._closing)

    def _note_damage(self, damage: str) -> None:
        """Records what the check of a large file found while it is served: for health checks and the log."""
        self._damage = damage
        if damage:
            _log.error("%s", damage)

    def _close(self) -> None:
        self._stop_checking()
        self._readers.close()
        self._writer.finish()
        self._lock.release()

    def _publish(self, events: Sequence[Event]) -> None:
        self._subscriptions.publish(events)
        self._seen.advance(events[-1].revision)

    def _check_open(self) -> None:
        if self._closing is not None:
            raise StorageUnavailable(self._closed)


class _Opened(NamedTuple):
    """The parts of an open store."""

    lock: FileLock
    connection: sqlite3.Connection
    keys: KeyIndex
    files: ServedFiles


def _open(path: Path) -> _Opened:
    with translated(path):
        was_locked_before = FileLock.exists(path)
        if not was_locked_before:
            inspect(path)  # before the lock: a refused start does not even leave a lock file
        lock = FileLock(path)
        try:
            if was_locked_before:
                inspect(path)
            lock.write_pid()
            connection = schema.connect_writer(path)
            return _Opened(lock, connection, KeyIndex.load(connection), ServedFiles(path))
        except BaseException:
            lock.release()
            raise
