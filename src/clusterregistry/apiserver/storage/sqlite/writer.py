"""The writer thread: the only thread that changes the file, with group commit.

It commits all writes that have queued up since the last commit as one batch, so that they share the cost of making them
durable. The event loop is woken once per batch: first the events are published, then the writes are acknowledged. So a
caller that was acknowledged finds its write in every cache.

A commit whose sync failed is not certainly undone: its frames are in the write-ahead log, and after a crash SQLite
would treat them as committed, until a later commit overwrites them. Until one has succeeded, ``is_certain`` is false.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from asyncio import AbstractEventLoop, Future
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TypeVar

from clusterregistry.apiserver.storage.errors import StorageError, StorageUnavailable
from clusterregistry.apiserver.storage.interface import Event, Guard, KeyValue
from clusterregistry.apiserver.storage.sqlite import schema
from clusterregistry.apiserver.storage.sqlite.batch import MOST_ROWS, Batch, Write
from clusterregistry.apiserver.storage.sqlite.errors import leaves_outcome_unknown, unavailable
from clusterregistry.apiserver.storage.sqlite.files import ServedFiles
from clusterregistry.apiserver.storage.sqlite.key_index import KeyIndex

_COLLECT_SECONDS = 0.004
"""How long a write waits at most for others before it is handed to the thread."""

SLICE_ROWS = 500
"""Rows of one compaction slice: some milliseconds of work, for which a write may have to wait."""

_NEXT_ROWS = """SELECT revision, prev_revision, value IS NULL FROM log
    WHERE revision > ? AND revision <= ? ORDER BY revision LIMIT ?"""

_log = logging.getLogger(__name__)

T = TypeVar("T")
Job = Callable[[], None]


class Writer:
    """Executes writes and other jobs in their order. Created and called on the event loop's thread."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        *,
        files: ServedFiles,
        index: KeyIndex,
        loop: AbstractEventLoop,
        publish: Callable[[Sequence[Event]], None],
    ) -> None:
        self._connection, self._files, self._path, self._index = connection, files, files.path, index
        self._loop, self._publish = loop, publish
        self._queue: SimpleQueue[list[Write] | Job] = SimpleQueue()
        self._collected: list[Write] = []
        self._due = 0.0
        self._stopped = False
        self._problem = ""
        self._probe: Future[None] | None = None
        self.is_certain = True
        """True if a crash would leave exactly what was acknowledged. The thread sets it before it acknowledges."""
        self._thread = Thread(target=self._work, name="sqlite-writer", daemon=True)
        self._thread.start()

    # On the event loop

    def write(
        self,
        key: str,
        value: bytes | None,
        *,
        expected: int | None,
        known: KeyValue | None = None,
        guards: Sequence[Guard] = (),
    ) -> Future[int]:
        """Queues a write; the future returns its revision once it is durable, or raises."""
        future: Future[int] = self._loop.create_future()
        if not self._collected:
            self._due = self._loop.time() + _COLLECT_SECONDS
            self._loop.call_soon(self._collect_more, 0)
        self._collected.append(Write(key, value, expected, known, future, guards))
        return future

    def _collect_more(self, before: int) -> None:
        """Hands the writes to the thread once a turn of the loop brought no further one, or there are enough.

        A thread that starts with the first of many only competes with the loop for the interpreter lock, and commits
        the others later: with 16 clients there are half as many commits, and a quarter of the lock contention.
        """
        found = len(self._collected)
        if before < found < MOST_ROWS and self._loop.time() < self._due:
            self._loop.call_soon(self._collect_more, found)
        else:
            self.hand_over()

    def hand_over(self) -> None:
        """Hands the collected writes to the thread."""
        if self._collected:
            self._queue.put(self._collected)
            self._collected = []

    def transact(self, work: Callable[[sqlite3.Connection], T]) -> Future[T]:
        """Queues other work on the file, in a transaction of its own."""
        self.hand_over()
        future: Future[T] = self._loop.create_future()
        self._queue.put(partial(self._run, work, future))
        return future

    def problem(self) -> str:
        """Why writes fail; empty when they succeed. After a failure each call starts a probe."""
        if self._problem:
            self._start_probe()
        return self._files.problem() or self._problem

    async def ensure_certain(self) -> None:
        """Returns once a commit has overwritten those that failed, at once if none has. Raises StorageUnavailable."""
        if self.is_certain:
            return
        if self._probe is not None and not self._probe.done():
            with suppress(StorageUnavailable):  # it began before this call, maybe before the cause was removed
                await asyncio.shield(self._probe)
        if self.is_certain:
            return
        try:
            await asyncio.shield(self._start_probe())
        except StorageUnavailable as error:
            raise StorageUnavailable(
                f"{error}; it is not known whether the writes before this were done", remedy=error.remedy
            ) from error

    def _start_probe(self) -> Future[None]:
        if self._probe is None or self._probe.done():
            self._probe = self.transact(schema.probe)
            self._probe.add_done_callback(Future.exception)  # marks it as retrieved: ``problem`` reports it
        return self._probe

    def finish(self) -> None:
        """Executes what was handed over, then closes the connection. Blocks; not for the loop's thread."""
        self._queue.put(self._stop)
        self._thread.join()

    # On the writer thread

    def _work(self) -> None:
        while not self._stopped:
            writes, job = self._next()
            for start in range(0, len(writes), MOST_ROWS):
                self._commit(writes[start : start + MOST_ROWS])
            if job is not None:
                job()

    def _next(self) -> tuple[list[Write], Job | None]:
        """All queued writes up to the next job, and that job."""
        writes: list[Write] = []
        job = self._queue.get()
        while isinstance(job, list):
            writes += job
            if len(writes) >= MOST_ROWS:
                return writes, None
            try:
                job = self._queue.get_nowait()
            except Empty:
                return writes, None
        return writes, job

    def _commit(self, writes: Sequence[Write]) -> None:
        batch = Batch.of(writes, self._index)
        if batch.rows:
            try:
                self._files.check()
                batch.commit(self._connection)
            except Exception as error:  # noqa: BLE001 - the thread survives any error
                # All fail, also the refused ones: they may have been refused because of a write that just failed.
                self._call(_fail, [write.future for write in writes], self._commit_error(self._roll_back(error)))
                return
            self._note_success()
            self._index.apply(batch.changes, revision=batch.revision)
            self._index.guards.update(batch.guards)
        self._call(self._acknowledge, batch)

    def _acknowledge(self, batch: Batch) -> None:
        if batch.events:
            self._publish(batch.events)
        for future, outcome in batch.outcomes:
            _settle(future, outcome)

    def _run(self, work: Callable[[sqlite3.Connection], T], future: Future[T]) -> None:
        outcome: T | StorageError
        try:
            with self._transaction():
                outcome = work(self._connection)
        except StorageError as error:
            outcome = error
        self._call(_settle, future, outcome)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """Commits the work inside, or rolls it back and raises a StorageError."""
        try:
            self._files.check()
            self._connection.execute("BEGIN IMMEDIATE")
            yield
            self._connection.execute("COMMIT")
        except Exception as error:
            raise self._roll_back(error) from error
        self._note_success()

    def _note_success(self) -> None:
        self._problem, self.is_certain = "", True

    def _roll_back(self, error: Exception) -> StorageUnavailable:
        """Rolls a failed transaction back, and returns the error for its caller and the health checks."""
        self._undo()
        failure = self._translate(error)
        problem = f"{failure}; {failure.remedy}" if failure.remedy else str(failure)
        if problem != self._problem:
            _log.error("writes fail: %s", problem)
        self._problem = problem
        if leaves_outcome_unknown(error):
            self.is_certain = self._overwrite_failed_commit()
        return failure

    def _overwrite_failed_commit(self) -> bool:
        """True if a commit without effect succeeds in place of the one that failed."""
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            schema.probe(self._connection)
            self._connection.execute("COMMIT")
        except sqlite3.Error:
            self._undo()
            return False
        self._problem = ""
        return True

    def _commit_error(self, failure: StorageUnavailable) -> StorageUnavailable:
        """The error of the writes whose commit failed, after the rollback."""
        unknown = not self.is_certain
        outcome = "it is not known whether this write was done" if unknown else "nothing was written"
        return StorageUnavailable(f"{failure}; {outcome}", remedy=failure.remedy, outcome_unknown=unknown)

    def _translate(self, error: Exception) -> StorageUnavailable:
        if isinstance(error, StorageUnavailable):
            return error if error.remedy else StorageUnavailable(f"{self._path}: {error}")
        if isinstance(error, sqlite3.Error):
            return unavailable(self._path, error)
        _log.error("a transaction on %s failed unexpectedly", self._path, exc_info=error)
        return StorageUnavailable(f"{self._path}: internal error: {error}")

    def _undo(self) -> None:
        # SQLite has often rolled back itself, such as on a full disk.
        with suppress(sqlite3.Error):
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")

    def _stop(self) -> None:
        self._stopped = True
        if self._files.problem():
            self._leak_connection()
            return
        with suppress(sqlite3.Error):  # everything is committed; the next start makes up for a failed checkpoint
            self._connection.close()

    def _leak_connection(self) -> None:
        """Leaves the files alone: on close SQLite removes the log by name, even if that is another file by now."""
        import ctypes  # noqa: PLC0415 - hardly ever needed

        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._connection))  # not even the end of the process closes it

    def _call(self, function: Callable[..., None], *arguments: object) -> None:
        with suppress(RuntimeError):  # the loop is closed, and no caller waits any more
            self._loop.call_soon_threadsafe(function, *arguments)


def _settle(future: Future[T], outcome: T | StorageError) -> None:
    if future.done():  # its caller was cancelled
        return
    if isinstance(outcome, StorageError):
        future.set_exception(outcome)
    else:
        future.set_result(outcome)


def _fail(futures: Sequence[Future[int]], failure: StorageUnavailable) -> None:
    for future in futures:  # one exception each: a shared one would collect the tracebacks of all callers
        _settle(future, StorageUnavailable(str(failure), remedy=failure.remedy))


def compact_slice(connection: sqlite3.Connection, *, revision: int) -> bool:
    """Compacts one slice of the log to a revision, inside the caller's transaction. True when nothing is left.

    From the first slice on, older revisions count as compacted, so no read sees one that is partly removed.
    """
    numbers = schema.numbers(connection)
    target = max(revision, numbers["compacted"])
    if target == numbers["swept"]:
        return True
    rows = connection.execute(_NEXT_ROWS, (numbers["swept"], target, SLICE_ROWS)).fetchall()
    superseded = [(previous,) for _, previous, _ in rows if previous]
    superseded += [(changed,) for changed, _, deleted in rows if deleted]
    connection.executemany("DELETE FROM log WHERE revision = ?", superseded)
    done = len(rows) < SLICE_ROWS
    swept = target if done else rows[-1][0]
    connection.executemany(
        "UPDATE meta SET value = ? WHERE name = ?",
        [(target, "compacted"), (swept, "swept")],
    )
    return done
