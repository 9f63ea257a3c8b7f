"""The queue: no request waits, and every lost event is counted."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator

import pytest
from prometheus_client.parser import text_string_to_metric_families

from clusterregistry.apiserver.audit.event_queue import EventQueue
from clusterregistry.apiserver.audit.settings import Counts, Limits
from clusterregistry.apiserver.filters.metrics import Measures, RequestMetrics

PATIENCE = 30.0
QUICK = Limits(gathering=0.0, retry=0.001, farewell=PATIENCE)


class Lines:
    """A log that can be made to wait or to fail, and records what happened."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.failures = 0
        self.closed = False
        self.may_go_on = threading.Event()
        self.may_go_on.set()
        self.tried = threading.Semaphore(0)

    def append(self, lines: list[bytes]) -> None:
        self.tried.release()
        assert self.may_go_on.wait(PATIENCE)
        if self.failures:
            self.failures -= 1
            raise OSError(28, "No space left on device")
        self.written += lines
        lines.clear()

    def wait_until_tried(self) -> None:
        assert self.tried.acquire(timeout=PATIENCE)

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def log() -> Lines:
    return Lines()


@pytest.fixture
def counts() -> Counts:
    return Counts()


Start = Callable[..., EventQueue[bytes]]


@pytest.fixture
def start(log: Lines, counts: Counts) -> Iterator[Start]:
    started: list[EventQueue[bytes]] = []

    def begin(limits: Limits = QUICK, render: Callable[[bytes], bytes] = bytes) -> EventQueue[bytes]:
        queue = EventQueue(log, render, counts, limits)
        queue.start()
        started.append(queue)
        return queue

    yield begin
    log.may_go_on.set()
    for queue in started:
        queue.close()


def test_events_are_written_in_their_order_and_all_of_them_at_the_end(start: Start, log: Lines, counts: Counts) -> None:
    queue = start()
    sent = [b"%d" % number for number in range(2000)]
    for event in sent:
        queue.put(event, 1)
    queue.close()
    assert log.written == sent
    assert log.closed
    assert (counts.dropped, counts.lost) == (0, 0)


def test_events_that_wait_are_written_together(start: Start, log: Lines) -> None:
    queue = start()
    log.may_go_on.clear()
    queue.put(b"first", 1)
    log.wait_until_tried()
    for _ in range(100):
        queue.put(b"later", 1)
    log.may_go_on.set()
    log.wait_until_tried()
    queue.close()
    assert not log.tried.acquire(blocking=False)
    assert log.written == [b"first"] + [b"later"] * 100


@pytest.mark.parametrize("limits", [Limits(gathering=0.0, most_events=3), Limits(gathering=0.0, most_bytes=30)])
def test_a_full_queue_drops_and_says_so_once(
    limits: Limits, start: Start, log: Lines, counts: Counts, caplog: pytest.LogCaptureFixture
) -> None:
    queue = start(limits)
    log.may_go_on.clear()
    queue.put(b"0", 10)
    log.wait_until_tried()
    for number in range(1, 10):
        queue.put(b"%d" % number, 10)
    assert counts.dropped == 7
    assert [record.levelno for record in caplog.records] == [logging.ERROR]
    log.may_go_on.set()
    queue.close()
    assert log.written == [b"0", b"1", b"2"]


def test_when_there_is_room_again_it_says_how_many_are_missing(
    start: Start, log: Lines, caplog: pytest.LogCaptureFixture
) -> None:
    queue = start(Limits(gathering=0.0, most_events=1))
    log.may_go_on.clear()
    queue.put(b"a", 1)
    log.wait_until_tried()
    queue.put(b"dropped", 1)
    queue.put(b"dropped", 1)
    log.may_go_on.set()
    for _ in range(10_000):  # until the thread has said that it is done with the first
        if queue._taken_events:
            break
        threading.Event().wait(0.002)
    queue.put(b"b", 1)
    queue.close()
    assert log.written == [b"a", b"b"]
    assert "2 were dropped" in caplog.text


def test_a_log_that_fails_is_tried_until_it_works(
    start: Start, log: Lines, counts: Counts, caplog: pytest.LogCaptureFixture
) -> None:
    queue = start()
    log.failures = 3
    queue.put(b"a", 1)
    for _ in range(4):
        log.wait_until_tried()
    queue.put(b"b", 1)
    queue.close()
    assert log.written == [b"a", b"b"]
    assert (counts.failed_writes, counts.lost) == (3, 0)
    assert [record.levelno for record in caplog.records] == [logging.ERROR, logging.WARNING]
    assert "No space left on device" in caplog.text


def test_the_end_does_not_wait_for_a_log_that_fails(start: Start, log: Lines, counts: Counts) -> None:
    log.failures = 1_000_000_000
    queue = start(Limits(gathering=0.0, retry=0.001, farewell=0.05))
    queue.put(b"a", 1)
    log.wait_until_tried()
    queue.put(b"b", 1)
    queue.close()
    assert counts.lost == 2
    assert log.closed


def test_the_end_does_not_wait_for_a_log_that_hangs(start: Start, log: Lines, caplog: pytest.LogCaptureFixture) -> None:
    log.may_go_on.clear()
    queue = start(Limits(gathering=0.0, farewell=0.0))
    queue.put(b"a", 1)
    log.wait_until_tried()
    queue.close()
    assert "the last 1 events are not in it" in caplog.text


def test_an_event_that_cannot_be_rendered_is_counted_and_the_others_are_written(
    start: Start, log: Lines, counts: Counts, caplog: pytest.LogCaptureFixture
) -> None:
    def render(event: bytes) -> bytes:
        if event == b"bad":
            raise ValueError("our bug")
        return event

    queue = start(QUICK, render)
    for event in (b"a", b"bad", b"b", b"bad"):
        queue.put(event, 1)
    queue.close()
    assert log.written == [b"a", b"b"]
    assert counts.lost == 2
    assert len(caplog.records) == 1


def test_what_is_lost_is_in_the_metrics() -> None:
    counts = Counts()
    counts.dropped, counts.lost, counts.events, counts.failed_writes = 2, 1, 9, 4
    counts.levels[1] = 5
    text = Measures(RequestMetrics({}), program="test", audit=counts, objects={}, watches=lambda: 0).rendered().decode()
    shown = {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert shown["apiserver_audit_error_total", "log"] == 3
    assert shown["apiserver_audit_dropped_total",] == 2
    assert shown["apiserver_audit_event_total",] == 9
    assert shown["apiserver_audit_failed_writes_total",] == 4
    assert shown["apiserver_audit_level_total", "Metadata"] == 5
    assert shown["apiserver_audit_level_total", "None"] == 0
