"""The writer thread: the only one that changes the file.

It takes whatever has queued up since the last commit and commits it at once, so the cost of making a
write durable is shared by all that wait for it. The loop is woken once a batch: events first, then the
answers, hence who has been answered finds the write in every cache that is fed by the events.

A commit whose sync failed is not undone for certain: its frames are in the write-ahead log, and after a crash SQLite
would take them for committed. Only a later commit goes over them. Until one has succeeded, ``certain`` is false.
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
from clusterregistry.apiserver.storage.interface import Event, KeyValue
from clusterregistry.apiserver.storage.sqlite import schema
from clusterregistry.apiserver.storage.sqlite.batch import MOST_ROWS, Batch, Write
from clusterregistry.apiserver.storage.sqlite.errors import leaves_doubt, unavailable
from clusterregistry.apiserver.storage.sqlite.files import ServedFiles
from clusterregistry.apiserver.storage.sqlite.key_index import KeyIndex

SLICE_ROWS = 500
"""Some milliseconds of work: that is how long a write may wait behind a slice."""

_NEXT = """SELECT revision, prev_revision, value IS NULL FROM log
    WHERE revision > ? AND revision <= ? ORDER BY revision LIMIT ?"""


def sweep(connection: sqlite3.Connection, *, revision: int) -> bool:
    """One slice of compacting to a revision, inside the caller's transaction. True when nothing is left.

    From the first slice on older revisions count as compacted: no read meets one half removed.
    """
    numbers = schema.numbers(connection)
    target = max(revision, numbers["compacted"])
    if target == numbers["swept"]:
        return True
    rows = connection.execute(_NEXT, (numbers["swept"], target, SLICE_ROWS)).fetchall()
    dead = [(previous,) for _, previous, _ in rows if previous]
    dead += [(changed,) for changed, _, deleted in rows if deleted]
    connection.executemany("DELETE FROM log WHERE revision = ?", dead)
    done = len(rows) < SLICE_ROWS
    swept = target if done else rows[-1][0]
    connection.executemany(
        "UPDATE meta SET value = ? WHERE name = ?",
        [(target, "compacted"), (swept, "swept")],
    )
    return done


_PATIENCE = 0.004
"""Seconds that a write waits at most for others to come before it is handed over."""

_log = logging.getLogger(__name__)

T = TypeVar("T")
Errand = Callable[[], None]


class Writer:
    """Does writes and errands in the order they come. Made, and handed work, on the loop's thread."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        *,
        files: ServedFiles,
        live: KeyIndex,
        loop: AbstractEventLoop,
        publish: Callable[[Sequence[Event]], None],
    ) -> None:
        self._connection, self._files, self._path, self._live = connection, files, files.path, live
        self._loop, self._publish = loop, publish
        self._queue: SimpleQueue[list[Write] | Errand] = SimpleQueue()
        self._collected: list[Write] = []
        self._due = 0.0
        self._stopped = False
        self._problem = ""
        self._probe: Future[None] | None = None
        self.certain = True
        """Whether all that was answered is what a crash would leave. The thread sets it before it answers."""
        self._thread = Thread(target=self._work, name="sqlite-writer", daemon=True)
        self._thread.start()

    def write(
        self, key: str, value: bytes | None, *, expected: int | None, known: KeyValue | None = None
    ) -> Future[int]:
        """Queues a write; the future gives its revision once it is durable, or the error."""
        future: Future[int] = self._loop.create_future()
        if not self._collected:
            self._due = self._loop.time() + _PATIENCE
            self._loop.call_soon(self._wait_for_more, 0)
        self._collected.append(Write(key, value, expected, known, future))
        return future

    def _wait_for_more(self, before: int) -> None:
        """Hands the writes over once a turn of the loop has brought no further one, or enough have come.

        A thread that begins with the first of many only fights with the loop for the interpreter, and commits the
        others later: with 16 clients there are half as many commits, and a quarter of the fights.
        """
        found = len(self._collected)
        if before < found < MOST_ROWS and self._loop.time() < self._due:
            self._loop.call_soon(self._wait_for_more, found)
        else:
            self.hand_over()

    def hand_over(self) -> None:
        """Gives the thread the writes that are collected."""
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
        """Why writes cannot be taken; empty when they can. After a failure each call has them tried anew."""
        if self._problem:
            self._try_again()
        return self._files.problem() or self._problem

    async def go_over(self) -> None:
        """Returns once a commit has gone over those that failed, at once when none has. Raises StorageUnavailable."""
        if self.certain:
            return
        if self._probe is not None and not self._probe.done():
            with suppress(StorageUnavailable):  # it began before this call, maybe before the cause was removed
                await asyncio.shield(self._probe)
        if self.certain:
            return
        try:
            await asyncio.shield(self._try_again())
        except StorageUnavailable as error:
            raise StorageUnavailable(
                f"{error}; it is not known whether the writes before this were done", remedy=error.remedy
            ) from error

    def _try_again(self) -> Future[None]:
        if self._probe is None or self._probe.done():
            self._probe = self.transact(schema.probe)
            self._probe.add_done_callback(Future.exception)  # it is known as the problem
        return self._probe

    def finish(self) -> None:
        """Does what is handed over, then closes the connection. Blocks; not for the loop's thread."""
        self._queue.put(self._stop)
        self._thread.join()

    def _work(self) -> None:
        while not self._stopped:
            writes, errand = self._gather()
            for start in range(0, len(writes), MOST_ROWS):
                self._commit(writes[start : start + MOST_ROWS])
            if errand is not None:
                errand()

    def _gather(self) -> tuple[list[Write], Errand | None]:
        """All writes that wait, or the errand that is before, or in the way of, more of them."""
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
        batch = Batch.of(writes, self._live)
        if batch.rows:
            try:
                self._files.check()
                batch.commit(self._connection)
            except Exception as error:  # noqa: BLE001 - whatever it is, the thread lives on
                # Also for those that were refused: what refused them may be a write that has just failed.
                self._call(_fail, [write.future for write in writes], self._refusal(self._undone(error)))
                return
            self._succeeded()
            self._live.apply(batch.changes, revision=batch.revision)
        self._call(self._answer, batch)

    def _answer(self, batch: Batch) -> None:
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
        """Commits what is done inside, or undoes it and raises a StorageError."""
        try:
            self._files.check()
            self._connection.execute("BEGIN IMMEDIATE")
            yield
            self._connection.execute("COMMIT")
        except Exception as error:
            raise self._undone(error) from error
        self._succeeded()

    def _succeeded(self) -> None:
        self._problem, self.certain = "", True

    def _undone(self, error: Exception) -> StorageUnavailable:
        """Undoes what went wrong, and says what it was: to who asked for it, and to the health checks."""
        self._roll_back()
        failure = self._failure(error)
        problem = f"{failure}; {failure.remedy}" if failure.remedy else str(failure)
        if problem != self._problem:
            _log.error("writes fail: %s", problem)
        self._problem = problem
        if leaves_doubt(error):
            self.certain = self._has_gone_over()
        return failure

    def _has_gone_over(self) -> bool:
        """Whether a commit that changes nothing succeeds in the place of the one that failed."""
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            schema.probe(self._connection)
            self._connection.execute("COMMIT")
        except sqlite3.Error:
            self._roll_back()
            return False
        self._problem = ""
        return True

    def _refusal(self, failure: StorageUnavailable) -> StorageUnavailable:
        """What those are told whose commit failed, once that is undone as far as it can be."""
        outcome = "nothing was written" if self.certain else "it is not known whether this write was done"
        return StorageUnavailable(f"{failure}; {outcome}", remedy=failure.remedy)

    def _failure(self, error: Exception) -> StorageUnavailable:
        if isinstance(error, StorageUnavailable):
            return error if error.remedy else StorageUnavailable(f"{self._path}: {error}")
        if isinstance(error, sqlite3.Error):
            return unavailable(self._path, error)
        _log.error("a transaction on %s failed unexpectedly", self._path, exc_info=error)
        return StorageUnavailable(f"{self._path}: internal error: {error}")

    def _roll_back(self) -> None:
        # SQLite has often done so itself, such as on a full disk.
        with suppress(sqlite3.Error):
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")

    def _stop(self) -> None:
        self._stopped = True
        if self._files.problem():
            self._abandon_connection()
            return
        with suppress(sqlite3.Error):  # all is committed; a checkpoint that fails is made up for at the next start
            self._connection.close()

    def _abandon_connection(self) -> None:
        """Leaves the files as they are: at its end SQLite removes the log by name, whatever has that name by now."""
        import ctypes  # noqa: PLC0415 - hardly ever needed

        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._connection))  # not even the end of the process closes it

    def _call(self, function: Callable[..., None], *arguments: object) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody waits for an answer any more
            self._loop.call_soon_threadsafe(function, *arguments)


def _settle(future: Future[T], outcome: T | StorageError) -> None:
    if future.done():  # its caller was cancelled
        return
    if isinstance(outcome, StorageError):
        future.set_exception(outcome)
    else:
        future.set_result(outcome)


def _fail(futures: Sequence[Future[int]], failure: StorageUnavailable) -> None:
    for future in futures:  # one error for each: a traceback grows with everybody who raises it
        _settle(future, StorageUnavailable(str(failure), remedy=failure.remedy))
