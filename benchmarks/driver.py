"""The client: requests over some connections at once, kept alive, in one epoll loop on raw sockets.

Not ``clusterregistry.client``: it would take more CPU than the server that is measured on the same machine.
"""

import itertools
import select
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, NamedTuple

from benchmarks.answers import Answer
from benchmarks.meter import Meter, Record, latencies
from benchmarks.targets import Target

PATIENCE = 30.0
"""Seconds without any answer after which a server counts as stuck."""
_PIECE = 262144
_WOULD_BLOCK = (ssl.SSLWantReadError, ssl.SSLWantWriteError, BlockingIOError)


class LoadError(Exception):
    """The server did not do what the load needs; the message says what it did instead."""


class Sending(NamedTuple):
    """A request to send, and the tag that the caller gets back with the answer."""

    data: bytes
    tag: Any = None
    due: float | None = None
    """Seconds from the start, for a fixed rate. Its latency counts from then."""


def forever(make: Callable[[int], Sending]) -> Iterator[Sending]:
    """Requests without an end, each made from its number when it is sent."""
    return map(make, itertools.count())


OnAnswer = Callable[[Any, int, bytes], Sending | None]
"""Called with the tag, the status and the body; may give a request that follows on the same connection."""


def no_follow_up(_tag: object, _status: int, _body: bytes) -> None:
    return None


@dataclass(kw_only=True)
class Load:
    """What is to be sent, and for how long.

    Without due times each connection sends its next request when it has the answer. After ``seconds``, and at least
    ``at_least`` requests, no new request begins; all that have begun end.
    """

    source: Iterator[Sending]
    connections: int = 1
    keep: bool = False
    on_answer: OnAnswer = no_follow_up
    seconds: float | None = None
    at_least: int = 0


@dataclass
class Driven:
    """What came of a load."""

    begun: float
    seconds: float = 0.0
    latencies: list[float] = field(default_factory=list)
    bytes: int = 0
    errors: int = 0
    error_sample: str | None = None

    @property
    def count(self) -> int:
        return len(self.latencies)

    def record(self) -> Record:
        return {
            "n": self.count,
            "seconds": self.seconds,
            "rps": self.count / max(self.seconds, 1e-9),
            "errors": self.errors,
            "error_sample": self.error_sample,
            "bytes": self.bytes / max(self.count, 1),
        } | latencies(self.latencies)


class _Connection:
    __slots__ = ("answer", "begun", "socket", "tag", "unsent")

    def __init__(self, connected: socket.socket) -> None:
        self.socket, self.unsent, self.tag, self.begun = connected, b"", None, 0.0
        self.answer: Answer | None = None


class _Driver:
    """One load on one target."""

    def __init__(self, target: Target, load: Load) -> None:
        self._load = load
        self._poll, self._idle = select.epoll(), []
        self._connections: dict[int, _Connection] = {}
        for _ in range(load.connections):
            connected = target.connect()
            connected.setblocking(False)
            connection = _Connection(connected)
            self._connections[connected.fileno()] = connection
            self._poll.register(connected.fileno(), select.EPOLLIN)
            self._idle.append(connection)
        self._waiting: Sending | None = None
        self._sent, self._exhausted = 0, False
        self.driven = Driven(begun=time.monotonic())

    def run(self) -> Driven:
        while True:
            while self._idle and (sending := self._next()):
                self._send(self._idle.pop(), sending)
            if self._exhausted and self._sent == self.driven.count:
                break
            self._serve(self._wait())
        self.driven.seconds = time.monotonic() - self.driven.begun
        return self.driven

    def close(self) -> None:
        self._poll.close()
        for connection in self._connections.values():
            connection.socket.close()

    def _next(self) -> Sending | None:
        """What is to be sent now, if anything."""
        if self._exhausted or self._time_is_over():
            return None
        sending, self._waiting = self._waiting or next(self._load.source, None), None
        self._exhausted = sending is None
        if sending and sending.due is not None and self.driven.begun + sending.due > time.monotonic():
            self._waiting = sending
            return None
        return sending

    def _time_is_over(self) -> bool:
        load = self._load
        if load.seconds is not None and self._sent >= load.at_least:
            self._exhausted = time.monotonic() - self.driven.begun > load.seconds
        return self._exhausted

    def _send(self, connection: _Connection, sending: Sending) -> None:
        connection.answer = Answer(keep=self._load.keep)
        connection.tag = sending.tag
        connection.begun = time.monotonic() if sending.due is None else self.driven.begun + sending.due
        self._sent += 1
        self._transmit(connection, sending.data)

    def _transmit(self, connection: _Connection, data: bytes) -> None:
        try:
            done = connection.socket.send(data)
        except _WOULD_BLOCK:
            done = 0
        connection.unsent = data[done:]
        if connection.unsent:
            self._poll.modify(connection.socket.fileno(), select.EPOLLIN | select.EPOLLOUT)

    def _wait(self) -> list[tuple[int, int]]:
        pause = PATIENCE
        if self._waiting and self._waiting.due is not None and self._idle:
            pause = max(0.0, self.driven.begun + self._waiting.due - time.monotonic())
        events = self._poll.poll(pause)
        if not events and pause >= PATIENCE:
            under_way = self._sent - self.driven.count
            raise LoadError(f"no answer for {PATIENCE:g} s ({under_way} requests under way)")
        return events

    def _serve(self, events: list[tuple[int, int]]) -> None:
        for number, event in events:
            connection = self._connections[number]
            if event & select.EPOLLOUT and connection.unsent:
                self._poll.modify(number, select.EPOLLIN)
                self._transmit(connection, connection.unsent)
            if event & ~select.EPOLLOUT and self._receive(connection):
                self._finish(connection)

    def _receive(self, connection: _Connection) -> bool:
        """True once the answer is whole."""
        while True:
            try:
                data = connection.socket.recv(_PIECE)
            except _WOULD_BLOCK:
                return False
            if not data:
                raise LoadError(f"the server closed the connection of {connection.tag}")
            if connection.answer and connection.answer.feed(data):
                return True

    def _finish(self, connection: _Connection) -> None:
        answer, driven = connection.answer, self.driven
        assert answer is not None  # it has just been fed
        driven.latencies.append(time.monotonic() - connection.begun)
        driven.bytes += answer.size
        content = answer.content
        if answer.status >= HTTPStatus.BAD_REQUEST:
            driven.errors += 1
            driven.error_sample = driven.error_sample or f"{answer.status} {content[:300].decode(errors='replace')}"
        follow_up = self._load.on_answer(connection.tag, answer.status, content)
        connection.answer = None
        if follow_up:
            self._send(connection, follow_up)
        else:
            self._idle.append(connection)


def drive(target: Target, load: Load) -> Driven:
    """Sends it all. Raises LoadError when the server closes a connection or does not answer."""
    driver = _Driver(target, load)
    try:
        return driver.run()
    finally:
        driver.close()


def measured(target: Target, load: Load) -> Record:
    """What the load cost."""
    with Meter(target) as meter:
        driven = drive(target, load)
    return meter.record(driven.count) | driven.record()


def call(target: Target, method: str, path: str, body: object = None, **more: str) -> tuple[int, bytes]:
    """One request on a connection of its own: status and body."""
    answers: list[tuple[int, bytes]] = []

    def note(_tag: object, status: int, content: bytes) -> None:
        answers.append((status, content))

    source = iter([Sending(target.request(method, path, body, **more))])
    drive(target, Load(source=source, keep=True, on_answer=note))
    return answers[0]
