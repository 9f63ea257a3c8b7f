"""Scenarios of watching: what it costs to deliver an event, and a mix of heartbeats, watches and reads."""

import re
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

from benchmarks import objects
from benchmarks.driver import Driven, Load, Sending, drive
from benchmarks.meter import Meter, Record, latencies, usage
from benchmarks.objects import PATH, fresh_numbers
from benchmarks.targets import Target
from benchmarks.watchers import open_watches
from benchmarks.write_load import spread

_IN_ANNOTATION = re.compile(rb'"bench/seq":\s*"(\d+)"')
_IN_STATUS = re.compile(rb'"name":\s*"bench/beat",\s*"value":\s*"(\d+)"')
_WRITERS = 16
_BEATS, _GETS, _MIXED_WATCHERS = 100, 20, 50
"""Of the mix: heartbeats and GETs a second, and watches."""
_MIXED_SECONDS = 8


class Numbered:
    """Writes with a number in each, which events carry to the watches."""

    def __init__(self, writes: int) -> None:
        self.numbers = [next(fresh_numbers) for _ in range(writes)]
        self.sent: dict[int, float] = {}
        self.acknowledged: dict[int, float] = {}

    def sending(self, index: int) -> int:
        self.sent[self.numbers[index]] = time.monotonic()
        return self.numbers[index]

    def answered(self, index: int, _status: int, _body: bytes) -> None:
        self.acknowledged[self.numbers[index]] = time.monotonic()

    def due_at(self, begun: float, rate: float) -> None:
        """Counts from when each was due, not from when it was sent."""
        self.sent = {number: begun + index / rate for index, number in enumerate(self.numbers)}


def deliver(target: Target, *, watchers: int, rate: int | None, writes: int) -> Record:
    """So many updates, at full speed or at a fixed rate. A request is an event that is delivered to one watch."""
    numbered = Numbered(writes)

    def source() -> Iterator[Sending]:
        for index in range(writes):
            body = b'{"metadata":{"annotations":{"bench/seq":"%d"}}}' % numbered.sending(index)
            request = target.request("PATCH", f"{PATH}/{spread(target, index)}", body, content_type=objects.MERGE_PATCH)
            yield Sending(request, index, index / rate if rate else None)

    with ExitStack() as stack:
        with Meter(target) as opening:
            held = stack.enter_context(open_watches(target, watchers, _IN_ANNOTATION))
        with Meter(target) as meter:
            driven = drive(target, Load(source=source(), connections=_WRITERS, on_answer=numbered.answered))
            outcome = held.finish(writes)
    if rate:
        numbered.due_at(driven.begun, rate)
    meter.client -= outcome["cpu_opening"]  # the process has ended, so all its time is in there
    record = meter.record(watchers * writes) | deliveries(outcome, numbered, driven, watchers=watchers)
    opened = {"open_cpu_us": opening.cpu / watchers * 1e6, "open_seconds": held.opened_after}
    return record | _of_the_writes(driven, meter) | opened


def memory_with(target: Target, *, watchers: int) -> float:
    """What the server takes while so many watches are open and idle, in MB."""
    with open_watches(target, watchers, _IN_ANNOTATION):
        return usage(target.pids).rss


def _of_the_writes(driven: Driven, meter: Meter) -> Record:
    return {
        "errors": driven.errors,
        "error_sample": driven.error_sample,
        "write_rps": driven.record()["rps"],
        "cpu_us_per_write": meter.cpu / max(1, driven.count) * 1e6,
        "write": latencies(driven.latencies),
    }


def deliveries(outcome: dict[str, Any], numbered: Numbered, driven: Driven, *, watchers: int) -> Record:
    """What arrived, of this run's writes only and each once, and how long it took."""
    writes = len(numbered.numbers)
    samples = [
        [(number, at) for number, at in dict(seen).items() if number in numbered.sent] for seen in outcome["samples"]
    ]
    each = [pair for sample in samples for pair in sample]
    per_watch = len(each) / len(samples)
    share = per_watch / outcome["plain"] if outcome["plain"] else 0.0
    total = len(each) + sum(min(writes, size * share) for size in outcome["drained"])
    return (
        latencies(at - numbered.sent[number] for number, at in each)
        | latencies(
            (at - numbered.acknowledged[number] for number, at in each if number in numbered.acknowledged), "ack_"
        )
        | {
            "n": round(total),
            "rps": total / max(1e-9, outcome["last"] - driven.begun),
            "expected": watchers * writes,
            "delivered_pct": 100 * total / max(1, watchers * writes),
            "closed": outcome["closed"],
            "stopped": outcome["why"],
            "short_watchers": outcome["short"],
            "ended_of_sampled": f"{outcome['ended']}/{len(samples)}",
            "watcher_cpu_s": outcome["cpu"],
        }
    )


def mixed(target: Target, *, factor: float) -> Record:
    """1000 clusters with a heartbeat (PATCH of the status) each 10 s, 50 watches, 20 GETs a second."""
    span = _MIXED_SECONDS * factor
    beats = Numbered(int(_BEATS * span))
    beats_done: list[tuple[float, float]] = []
    gets_done: list[tuple[float, float]] = []

    def answered(tag: tuple[int | None, float], status: int, body: bytes) -> None:
        index, due = tag
        if index is None:
            gets_done.append((due, time.monotonic()))
        else:
            beats.answered(index, status, body)
            beats_done.append((due, time.monotonic()))

    with open_watches(target, _MIXED_WATCHERS, _IN_STATUS) as watches, Meter(target) as meter:
        source = _mixed_requests(target, beats, gets=int(_GETS * span))
        driven = drive(target, Load(source=source, connections=32, on_answer=answered))
        outcome = watches.finish(len(beats.numbers))
    beats.due_at(driven.begun, _BEATS)
    meter.client -= outcome["cpu_opening"]
    delivered = deliveries(outcome, beats, driven, watchers=_MIXED_WATCHERS)
    record = meter.record(driven.count) | delivered | driven.record()
    record |= {"watch": {name: delivered[name] for name in ("p50_ms", "p95_ms", "p99_ms", "max_ms")}}
    record |= {"get": latencies(at - driven.begun - due for due, at in gets_done)}
    record |= latencies(at - driven.begun - due for due, at in beats_done)
    wanted = 0.98 * (_BEATS + _GETS)
    return record | {"sustained": record["rps"] > wanted and not driven.errors and record["delivered_pct"] > 99}  # noqa: PLR2004


def _mixed_requests(target: Target, beats: Numbered, *, gets: int) -> Iterator[Sending]:
    plan = [(index / _BEATS, True, index) for index in range(len(beats.numbers))]
    plan += [(index / _GETS + 0.003, False, index) for index in range(gets)]
    for due, beat, index in sorted(plan):
        if beat:
            yield Sending(_heartbeat(target, index, beats.sending(index)), (index, due), due)
        else:
            yield Sending(target.request("GET", f"{PATH}/{spread(target, index)}"), (None, due), due)


def _heartbeat(target: Target, index: int, number: int) -> bytes:
    """The number travels in a property of the status."""
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    beat = {"name": "bench/beat", "value": str(number)}
    body = {"status": {"properties": [beat], "conditions": [objects.ready_condition(now)]}}
    path = f"{PATH}/{spread(target, index)}/status"
    return target.request("PATCH", path, body, content_type=objects.MERGE_PATCH)
