"""Many watches held by one process of their own, as cheaply as may be.

A sample of at most twenty, spread evenly, is decrypted and timed. The others are only drained from their sockets,
without decryption: whether they got everything is judged by bytes.
"""

import json
import multiprocessing
import re
import select
import signal
import socket
import ssl
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

from benchmarks.driver import LoadError, call
from benchmarks.meter import own_cpu
from benchmarks.objects import PATH
from benchmarks.targets import Target

_SAMPLED = 20
_ENOUGH = 0.96
"""Of the bytes of the sampled ones, which a drained watch must have got: record sizes differ a little."""
_AFTER_LAST_WRITE, _QUIET = 20.0, 3.0
"""Seconds to wait for missing events in all, and since anything came."""
_ANSWER_SECONDS, _OPENING_SECONDS = 90.0, 0.05
"""To wait for the process with the watches, and more for each watch that it opens."""
_LARGE = 1 << 20


@dataclass
class Sampled:
    """A watch that is read."""

    socket: socket.socket
    rest: bytes = b""
    seen: list[tuple[int, float]] = field(default_factory=list)
    """Numbers found in events, and when."""
    size: int = 0
    ended: bool = False


@dataclass
class Drained:
    """A watch whose bytes are counted."""

    socket: socket.socket
    size: int = 0


class WatcherProcess:
    """What runs in the process: opens the watches, then reads until it knows how much to expect, and has it."""

    def __init__(self, target: Target, *, count: int, version: str, pattern: re.Pattern[bytes]) -> None:
        self._pattern = pattern
        self._poll = select.epoll()
        self._sampled: dict[int, Sampled] = {}
        self._drained: dict[int, Drained] = {}
        self._buffer = bytearray(_LARGE)
        self._closed, self._last = 0, time.monotonic()
        request = target.request("GET", f"{PATH}?watch=1&resourceVersion={version}&timeoutSeconds=600")
        step = max(1, -(-count // _SAMPLED))
        for number in range(count):
            self._open(target, request, sampled=number % step == 0)

    def _open(self, target: Target, request: bytes, *, sampled: bool) -> None:
        connected = target.connect()
        connected.sendall(request)
        head = b""
        while b"\r\n\r\n" not in head:
            data = connected.recv(65536)
            if not data:
                raise LoadError("a watch was closed at once")
            head += data
        if b" 200 " not in head[:20]:
            raise LoadError(f"watch: {head[:500]!r}")
        if not sampled:  # the TLS layer is left away, and its memory with it
            connected = socket.socket(fileno=connected.detach())
        connected.setblocking(False)
        if sampled:
            self._sampled[connected.fileno()] = Sampled(connected)
        else:
            self._drained[connected.fileno()] = Drained(connected)
        self._poll.register(connected.fileno(), select.EPOLLIN)

    def run(self, pipe: Connection) -> None:
        """Sends over the pipe that it is ready, receives the number of events, and sends what came."""
        self._poll.register(pipe.fileno(), select.EPOLLIN)
        opening = own_cpu()
        pipe.send("ready")
        expected, deadline = None, 0.0
        while True:
            for number, _ in self._poll.poll(0.2):
                if number == pipe.fileno():
                    expected, deadline = pipe.recv(), time.monotonic() + _AFTER_LAST_WRITE
                else:
                    self._read(number)
            if expected is not None and (why := self._why_to_stop(expected, deadline)):
                cpu = {"cpu": own_cpu() - opening, "cpu_opening": opening}
                pipe.send(self._outcome(expected) | {"why": why} | cpu)
                return

    def _read(self, number: int) -> None:
        if number in self._drained:
            self._drain(self._drained[number])
        else:
            self._sample(self._sampled[number])

    def _drain(self, watch: Drained) -> None:
        try:
            size = watch.socket.recv_into(self._buffer, _LARGE, socket.MSG_TRUNC)
        except BlockingIOError:
            return
        except OSError:
            size = 0
        watch.size += size
        if size:
            self._last = time.monotonic()
        else:
            self._forget(watch.socket)

    def _sample(self, watch: Sampled) -> None:
        while True:
            try:
                data = watch.socket.recv(65536)
            except (ssl.SSLWantReadError, BlockingIOError):
                return
            except OSError:
                data = b""
            if not data:
                self._forget(watch.socket)
                return
            now = self._last = time.monotonic()
            watch.size += len(data)
            *lines, watch.rest = (watch.rest + data).split(b"\n")
            # The last chunk: the server ended this watch; the connection may stay open.
            watch.ended = watch.ended or b"0\r" in lines
            watch.seen += [(int(found[1]), now) for found in map(self._pattern.search, lines) if found]

    def _forget(self, connected: socket.socket) -> None:
        self._closed += 1
        self._poll.unregister(connected.fileno())

    def _plain(self) -> float:
        return statistics.mean(watch.size for watch in self._sampled.values())

    def _why_to_stop(self, expected: int, deadline: float) -> str:
        now = time.monotonic()
        if self._short(expected, self._plain()) == 0:
            return "complete"
        if now > deadline:
            return f"{_AFTER_LAST_WRITE:g} s after the last write"
        return f"nothing for {_QUIET:g} s" if now - self._last > _QUIET else ""

    def _short(self, expected: int, plain: float) -> int:
        """How many watches lack something."""
        return sum(len(watch.seen) < expected for watch in self._sampled.values()) + sum(
            watch.size < _ENOUGH * plain for watch in self._drained.values()
        )

    def _outcome(self, expected: int) -> dict[str, Any]:
        return {
            "samples": [watch.seen for watch in self._sampled.values()],
            "plain": self._plain(),
            "drained": [watch.size for watch in self._drained.values()],
            "last": self._last,
            "closed": self._closed,
            "ended": sum(watch.ended for watch in self._sampled.values()),
            "short": self._short(expected, max(watch.size for watch in self._sampled.values())),
        }


def ignore_interrupts() -> None:
    """For a client process: Ctrl-C is for the process that started it, which ends it with SIGTERM."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _run(target: Target, count: int, version: str, pipe: Connection, pattern: re.Pattern[bytes]) -> None:
    ignore_interrupts()
    try:
        WatcherProcess(target, count=count, version=version, pattern=pattern).run(pipe)
    except Exception as error:  # noqa: BLE001 - the other process raises it
        with suppress(OSError):
            pipe.send({"error": repr(error)})


class Watchers:
    """The process with the watches, seen from the one that writes."""

    def __init__(self, target: Target, count: int, *, pattern: re.Pattern[bytes]) -> None:
        _, body = call(target, "GET", f"{PATH}?limit=1")
        version = json.loads(body)["metadata"]["resourceVersion"]
        begun = time.monotonic()
        self._pipe, theirs = multiprocessing.Pipe()
        self._process = multiprocessing.get_context("fork").Process(
            target=_run, args=(target, count, version, theirs, pattern), daemon=True
        )
        self._process.start()
        theirs.close()
        self._get(within=_ANSWER_SECONDS + count * _OPENING_SECONDS)
        self.opened_after = time.monotonic() - begun

    def finish(self, writes: int) -> dict[str, Any]:
        """Waits until every watch has got so many events, or gets no more, and returns what came."""
        self._pipe.send(writes)
        outcome = self._get()
        self._process.join()
        assert isinstance(outcome, dict)  # the protocol of the pipe
        return outcome

    def abandon(self) -> None:
        """Ends the process, whatever it does."""
        if self._process.is_alive():
            self._process.terminate()
            self._process.join()

    def _get(self, *, within: float = _ANSWER_SECONDS) -> dict[str, Any] | str:
        if not self._pipe.poll(within):
            self.abandon()
            raise LoadError(f"watchers: no answer for {within:g} s")
        try:
            said: dict[str, Any] | str = self._pipe.recv()
        except EOFError:
            raise LoadError("watchers: their process ended") from None
        if isinstance(said, dict) and "error" in said:
            self._process.join()
            raise LoadError(f"watchers: {said['error']}")
        return said


@contextmanager
def open_watches(target: Target, count: int, pattern: re.Pattern[bytes]) -> Iterator[Watchers]:
    """Watches for the time of a block."""
    watchers = Watchers(target, count, pattern=pattern)
    try:
        yield watchers
    finally:
        watchers.abandon()
