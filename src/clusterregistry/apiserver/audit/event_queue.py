"""The queue of audit events, and the one thread that renders and writes them.

The loop only appends, and never waits. While the log cannot be written, the thread retries and events queue up; when
the queue is full, new events are dropped and counted.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from clusterregistry.apiserver.audit.settings import Counts, Limits

E = TypeVar("E")

_SLICE = 16
_SHARE = 8
"""Rendering holds the GIL: the thread yields it after so many events, or after this share of the queue.

A busy loop returns the GIL only after five milliseconds: slices that did not grow with the queue would let it
overflow.
"""

_BATCH = 256
"""Events that are written together."""

_log = logging.getLogger(__name__)


class Log(Protocol):
    """An output for lines. Only the thread uses it."""

    def append(self, lines: list[bytes]) -> None:
        """Writes the lines, each with its newline, and removes the written ones from the list. Raises OSError."""
        ...

    def close(self) -> None: ...


class EventQueue(Generic[E]):
    """A bounded queue from the loop to its own thread."""

    def __init__(self, log: Log, render: Callable[[E], bytes], counts: Counts, limits: Limits | None = None) -> None:
        self._log, self._render, self._counts, self._limits = log, render, counts, limits or Limits()
        self._waiting: deque[tuple[E, int]] = deque()
        # Monotonic counters with one writer each: the queue's size is the difference, without a lock.
        self._put_events = self._put_bytes = 0
        self._taken_events = self._taken_bytes = 0
        self._dropped_before = -1
        """The count of dropped events when the queue became full; negative while it is not full."""
        self._signalled = False
        self._wake = threading.Event()
        self._ending = threading.Event()
        self._end_by = 0.0
        self._is_failing = self._is_render_broken = False
        self._thread = threading.Thread(target=self._work, name="audit log", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def put(self, event: E, size: int) -> None:
        """Queues an event, or drops it. Only the loop calls this."""
        limits = self._limits
        if (
            self._put_events - self._taken_events >= limits.most_events
            or self._put_bytes - self._taken_bytes + size > limits.most_bytes
        ):
            self._drop()
            return
        if self._dropped_before >= 0:
            self._log_room()
        self._put_events += 1
        self._put_bytes += size
        self._waiting.append((event, size))
        if not self._signalled:
            self._signalled = True
            self._wake.set()

    def close(self) -> None:
        """Waits until everything is written, for ``Limits.farewell`` seconds at most."""
        self._end_by = time.monotonic() + self._limits.farewell
        self._ending.set()
        self._wake.set()
        self._thread.join(self._limits.farewell + 1.0)
        if self._thread.is_alive():
            left = self._put_events - self._taken_events
            _log.error("the audit log cannot be written: the last %d events are not in it", left)

    def _drop(self) -> None:
        if self._dropped_before < 0:
            self._dropped_before = self._counts.dropped
            _log.error("too many audit events wait to be written: new ones are dropped until there is room")
        self._counts.dropped += 1

    def _log_room(self) -> None:
        _log.warning("audit events are recorded again; %d were dropped", self._counts.dropped - self._dropped_before)
        self._dropped_before = -1

    def _work(self) -> None:
        try:
            while not self._ending.is_set():
                self._wake.wait()
                self._ending.wait(self._limits.gathering)
                # In this order: an event put after this line sets it again, and events put before are written now.
                self._wake.clear()
                self._signalled = False
                self._write_waiting()
            self._write_waiting()
        finally:
            with contextlib.suppress(OSError):
                self._log.close()

    def _write_waiting(self) -> None:
        while self._waiting:
            lines: list[bytes] = []
            turn = max(_SLICE, len(self._waiting) // _SHARE)
            count = size = 0
            while self._waiting and count < _BATCH:
                event, its_size = self._waiting.popleft()
                lines += self._rendered(event)
                count, size = count + 1, size + its_size
                if count % turn == 0:
                    time.sleep(0)
            self._write(lines)
            self._taken_events += count
            self._taken_bytes += size

    def _rendered(self, event: E) -> list[bytes]:
        try:
            return [self._render(event)]
        except Exception:  # noqa: BLE001 - a bug of ours must not end the log
            self._counts.lost += 1
            if not self._is_render_broken:
                self._is_render_broken = True
                _log.exception("an audit event cannot be rendered; the next ones are only counted")
            return []

    def _write(self, lines: list[bytes]) -> None:
        """Retries until all lines are written, or until the shutdown's time is over."""
        while lines:
            try:
                self._log.append(lines)
            except OSError as error:
                self._counts.failed_writes += 1
                self._note_failure(error)
                if self._ending.is_set() and time.monotonic() + self._limits.retry > self._end_by:
                    self._counts.lost += len(lines)
                    return
                self._pause()
            else:
                self._note_success()

    def _pause(self) -> None:
        if self._ending.wait(self._limits.retry):
            time.sleep(min(self._limits.retry, max(0.0, self._end_by - time.monotonic())))

    def _note_failure(self, error: OSError) -> None:
        if not self._is_failing:
            self._is_failing = True
            _log.error("the audit log cannot be written: %s; events wait, and are dropped when too many do", error)

    def _note_success(self) -> None:
        if self._is_failing:
            self._is_failing = False
            _log.warning("the audit log is written again")
