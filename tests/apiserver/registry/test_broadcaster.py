"""The broadcaster: which watcher gets which frames, and which is ended."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from clusterregistry.apimachinery.meta.field_selectors import parse_field_selector
from clusterregistry.apimachinery.meta.label_selectors import parse_label_selector
from clusterregistry.apiserver.http.response import SharedPiece
from clusterregistry.apiserver.registry import broadcaster
from clusterregistry.apiserver.registry import watcher as watchers
from clusterregistry.apiserver.registry.broadcaster import ADDED, DELETED, MODIFIED, Broadcaster, seen_through
from clusterregistry.apiserver.registry.list import ListOptions
from clusterregistry.apiserver.registry.watcher import FrameWatcher
from clusterregistry.apiserver.storage.interface import Event, Interrupted, KeyValue, Sink, Subscription
from clusterregistry.apiserver.storage.object_bytes import at_revision, presented, to_stored

PREFIX = "/registry/example.com/things/"


def kv(name: str, revision: int, **labels: str) -> KeyValue:
    return presented(KeyValue(PREFIX + name, to_stored({"metadata": {"labels": labels, "uid": ""}}), revision))


def options(labels: str = "", fields: str = "") -> ListOptions:
    return ListOptions(labels=parse_label_selector(labels), fields=parse_field_selector(fields))


def event(previous: KeyValue | None, current: KeyValue | None, revision: int) -> Event:
    known = current or previous
    assert known is not None
    return Event(known.key, revision, current, previous)


class FakeStorage:
    """As much of a storage as a broadcaster needs."""

    def __init__(self) -> None:
        self.revision = 1000
        self.sink: Sink | None = None
        self.interrupted: Interrupted = lambda: None

    def subscribe(self, _: str, sink: Sink, *, interrupted: Interrupted) -> Subscription:
        self.sink, self.interrupted = sink, interrupted
        return self

    def close(self) -> None:
        self.sink = None

    def commit(self, *events: Event) -> None:
        assert self.sink is not None
        self.sink(events)


@pytest.fixture
def storage() -> FakeStorage:
    return FakeStorage()


@pytest.fixture
def hub(storage: FakeStorage) -> Broadcaster:
    return Broadcaster(storage, PREFIX)  # type: ignore[arg-type]


def encode(kind: str, found: KeyValue) -> bytes:
    return f"{kind} {found.key.removeprefix(PREFIX)}@{found.revision};".encode()


def join(
    hub: Broadcaster, labels: str = "", representation: str = "plain", on_overflow: Callable[[], None] = lambda: None
) -> FrameWatcher:
    return hub.join(options(labels), representation=representation, encode=encode, on_overflow=on_overflow)


async def delivered() -> None:
    """Waits until all frames are delivered."""
    for _ in range(20):
        await asyncio.sleep(0)


async def taken(watcher: FrameWatcher) -> str:
    await delivered()
    return b"".join(data for _, data in await watcher.next(0)).decode()


class Client:
    """An outlet: a client that reads, until it does not."""

    def __init__(self) -> None:
        self.reads = True
        self.received: list[bytes] = []

    async def send(self, data: bytes) -> None:
        self.received.append(data)

    def offer(self, batch: SharedPiece) -> bool:
        if self.reads:
            self.received.append(batch.data)
        return self.reads


async def several(hub: Broadcaster, count: int = 3) -> tuple[list[Client], list[FrameWatcher], list[asyncio.Task[Any]]]:
    """Clients that keep up, their watchers, and the tasks that wait for these."""
    clients = [Client() for _ in range(count)]
    joined = [join(hub) for _ in clients]
    waiting = [asyncio.create_task(watcher.next(30, client)) for watcher, client in zip(joined, clients, strict=True)]
    await asyncio.sleep(0)
    return clients, joined, waiting


OUT, IN = {"x": "0"}, {"x": "1"}


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (None, IN, ADDED),
        (None, OUT, None),
        (OUT, IN, ADDED),
        (IN, IN, MODIFIED),
        (IN, OUT, DELETED),
        (OUT, OUT, None),
        (IN, None, DELETED),
        (OUT, None, None),
    ],
)
def test_the_change_that_an_event_is_through_a_selector(
    before: dict[str, str] | None, after: dict[str, str] | None, expected: str | None
) -> None:
    previous = None if before is None else kv("a", 4, **before)
    current = None if after is None else kv("a", 7, **after)
    change = seen_through(options("x=1"), event(previous, current, 7))
    assert (change and change.type) == expected
    if change:
        assert change.kv.revision == 7
        shown = current if expected in (ADDED, MODIFIED) else previous
        assert shown
        assert change.kv == at_revision(shown, 7)


def test_without_a_selector_every_event_is_a_change() -> None:
    kinds = [
        seen_through(options(), each)
        for each in (
            event(None, kv("a", 1), 1),
            event(kv("a", 1), kv("a", 2), 2),
            event(kv("a", 2), None, 3),
        )
    ]
    assert [(change.type, change.kv.revision) for change in kinds if change] == [
        (ADDED, 1),
        (MODIFIED, 2),
        (DELETED, 3),
    ]


async def test_every_watcher_gets_the_frames_of_its_selector(hub: Broadcaster, storage: FakeStorage) -> None:
    everything, some = join(hub), join(hub, "x=1")
    storage.commit(event(None, kv("a", 1, x="1"), 1), event(None, kv("b", 2), 2))
    assert await taken(everything) == "ADDED a@1;ADDED b@2;"
    assert await taken(some) == "ADDED a@1;"


async def test_a_frame_is_encoded_once_for_all_watchers_of_a_channel(hub: Broadcaster, storage: FakeStorage) -> None:
    counter = itertools.count(1)

    def counted(_: str, __: KeyValue) -> bytes:
        return str(next(counter)).encode()

    watchers = [hub.join(options(), representation="same", encode=counted, on_overflow=lambda: None) for _ in range(50)]
    storage.commit(event(None, kv("a", 1), 1))
    assert [await taken(watcher) for watcher in watchers] == ["1"] * 50


async def test_a_watcher_gets_nothing_from_before_it_joined_or_after_it_left(
    hub: Broadcaster, storage: FakeStorage
) -> None:
    storage.commit(event(None, kv("a", 1), 1))
    watcher = join(hub)
    assert await taken(watcher) == ""
    hub.leave(watcher)
    storage.commit(event(None, kv("b", 2), 2))
    assert await taken(watcher) == ""
    assert hub.watchers == 0
    hub.leave(watcher)


@pytest.mark.parametrize(("limit", "value"), [("FRAMES_LIMIT", 3), ("BYTES_LIMIT", 30)])
async def test_a_slow_watcher_is_aborted_and_the_others_are_not(
    hub: Broadcaster, storage: FakeStorage, monkeypatch: pytest.MonkeyPatch, limit: str, value: int
) -> None:
    monkeypatch.setattr(watchers, limit, value)
    aborted: list[str] = []
    slow = join(hub, on_overflow=lambda: aborted.append("slow"))
    quick = join(hub, on_overflow=lambda: aborted.append("quick"))
    frames = ""
    for revision in range(1, 9):
        storage.commit(event(None, kv("a", revision), revision))
        frames += await taken(quick)
    assert frames.count("ADDED") == 8
    assert aborted == ["slow"]
    assert slow.ended
    assert await taken(slow) == ""


async def test_frames_that_were_taken_no_longer_count(
    hub: Broadcaster, storage: FakeStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watchers, "BYTES_LIMIT", 15)
    watcher = join(hub)
    for revision in range(1, 6):
        storage.commit(event(None, kv("a", revision), revision))
        assert await taken(watcher)
    assert not watcher.ended


async def test_waiting_ends_with_a_frame(hub: Broadcaster, storage: FakeStorage) -> None:
    watcher = join(hub)
    waiting = asyncio.create_task(watcher.next(30))
    await asyncio.sleep(0)
    storage.commit(event(None, kv("a", 1), 1))
    assert [revision for revision, _ in await waiting] == [1]


async def test_a_waiting_watcher_is_written_to_without_being_woken(hub: Broadcaster, storage: FakeStorage) -> None:
    watcher, client = join(hub), Client()
    waiting = asyncio.create_task(watcher.next(30, client))
    await asyncio.sleep(0)
    storage.commit(event(None, kv("a", 1), 1), event(None, kv("b", 2), 2))
    await delivered()
    storage.commit(event(None, kv("c", 3), 3))
    await delivered()
    assert client.received == [b"ADDED a@1;ADDED b@2;", b"ADDED c@3;"]
    assert watcher.seen == 3
    assert not waiting.done()
    watcher.end()
    assert await waiting == []


async def test_what_cannot_be_written_at_once_waits_for_the_task_in_order(
    hub: Broadcaster, storage: FakeStorage
) -> None:
    watcher, client = join(hub), Client()
    waiting = asyncio.create_task(watcher.next(30, client))
    await asyncio.sleep(0)
    client.reads = False
    storage.commit(event(None, kv("a", 1), 1))
    await delivered()
    client.reads = True
    storage.commit(event(None, kv("b", 2), 2))
    await delivered()
    assert client.received == []
    assert await waiting == [(1, b"ADDED a@1;")]
    assert await taken(watcher) == "ADDED b@2;"


async def test_what_a_client_knows_from_the_beginning_is_not_written_again(
    hub: Broadcaster, storage: FakeStorage
) -> None:
    watcher, client = join(hub), Client()
    watcher.seen = 1
    waiting = asyncio.create_task(watcher.next(30, client))
    await asyncio.sleep(0)
    storage.commit(event(None, kv("a", 1), 1), event(None, kv("b", 2), 2))
    assert await waiting == [(1, b"ADDED a@1;"), (2, b"ADDED b@2;")]
    assert client.received == []


async def test_a_batch_too_large_for_every_client_at_once_waits_for_the_tasks(
    hub: Broadcaster, storage: FakeStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watchers, "AT_ONCE", 10)
    watcher, client = join(hub), Client()
    waiting = asyncio.create_task(watcher.next(30, client))
    await asyncio.sleep(0)
    storage.commit(event(None, kv("a", 1), 1), event(None, kv("b", 2), 2))
    assert [revision for revision, _ in await waiting] == [1, 2]
    assert client.received == []


async def test_many_watchers_are_delivered_to_in_turns_and_later_events_as_one_batch(
    hub: Broadcaster, storage: FakeStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broadcaster, "_WATCHERS_PER_TURN", 2)
    clients, joined, waiting = await several(hub, 5)
    storage.commit(event(None, kv("a", 1), 1))
    await asyncio.sleep(0)
    assert [len(client.received) for client in clients] == [1, 1, 0, 0, 0]
    assert [hub.delivered(watcher) for watcher in joined] == [1, 1, 0, 0, 0]
    storage.commit(event(None, kv("b", 2), 2))
    storage.commit(event(None, kv("c", 3), 3))
    await delivered()
    assert [client.received for client in clients] == [[b"ADDED a@1;", b"ADDED b@2;ADDED c@3;"]] * 5
    assert [hub.delivered(watcher) for watcher in joined] == [1000] * 5
    hub.end_all()
    await asyncio.gather(*waiting)


async def test_many_watchers_get_a_single_event_at_once_and_the_next_after_the_interval(
    hub: Broadcaster, storage: FakeStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broadcaster, "_UNDELAYED_WATCHERS", 2)
    monkeypatch.setattr(broadcaster, "_BATCH_INTERVAL", 3600)
    clients, joined, waiting = await several(hub)
    storage.commit(event(None, kv("a", 1), 1))
    await delivered()
    storage.commit(event(None, kv("b", 2), 2))
    await delivered()
    assert [client.received for client in clients] == [[b"ADDED a@1;"]] * 3
    assert [hub.delivered(watcher) for watcher in joined] == [1] * 3
    hub.end_all()
    await asyncio.gather(*waiting)


async def test_after_the_interval_everything_is_delivered_in_order(
    hub: Broadcaster, storage: FakeStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broadcaster, "_UNDELAYED_WATCHERS", 2)
    monkeypatch.setattr(broadcaster, "_BATCH_INTERVAL", 0.01)
    clients, joined, waiting = await several(hub)
    for revision in range(1, 21):
        storage.commit(event(None, kv("a", revision), revision))
        await asyncio.sleep(0.001)
    async with asyncio.timeout(20):
        while hub.delivered(joined[0]) != 1000:  # noqa: ASYNC110 - no event is set when all is delivered
            await asyncio.sleep(0.01)
    everything = b"".join(b"ADDED a@%d;" % revision for revision in range(1, 21))
    assert [b"".join(client.received) for client in clients] == [everything] * 3
    hub.end_all()
    await asyncio.gather(*waiting)


async def test_a_channel_with_too_many_frames_aborts_its_watchers(
    hub: Broadcaster, storage: FakeStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watchers, "FRAMES_LIMIT", 3)
    aborted: list[str] = []
    watcher = join(hub, on_overflow=lambda: aborted.append("one"))
    for revision in range(1, 6):  # within one turn of the loop
        storage.commit(event(None, kv("a", revision), revision))
    assert watcher.ended
    assert aborted == ["one"]
    await delivered()
    assert await taken(watcher) == ""


async def test_waiting_ends_with_the_watch(hub: Broadcaster) -> None:
    watcher = join(hub)
    waiting = asyncio.create_task(watcher.next(30))
    await asyncio.sleep(0)
    hub.end_all()
    assert await waiting == []
    assert watcher.ended


async def test_waiting_ends_with_its_time(hub: Broadcaster) -> None:
    assert await join(hub).next(0.01) == []


async def test_after_the_end_a_watcher_that_joins_is_ended(hub: Broadcaster) -> None:
    hub.end_all()
    assert join(hub).ended
    assert hub.watchers == 0


async def test_when_events_are_missing_the_watches_end_and_new_ones_may_begin(
    hub: Broadcaster, storage: FakeStorage
) -> None:
    before = join(hub)
    storage.interrupted()
    storage.commit(event(None, kv("a", 2), 2))
    assert before.ended
    assert await taken(before) == ""
    after = join(hub)
    storage.commit(event(None, kv("b", 3), 3))
    assert await taken(after) == "ADDED b@3;"


async def test_when_revisions_have_gone_back_the_watches_are_interrupted(
    hub: Broadcaster, storage: FakeStorage
) -> None:
    before = join(hub)
    storage.commit(event(None, kv("a", 20), 20))
    storage.revision = 12
    storage.interrupted()
    assert (before.ended, before.interrupted) == (True, True)
    after = join(hub)
    storage.commit(event(None, kv("b", 13), 13))
    assert await taken(after) == "ADDED b@13;"
    storage.revision = 14
    storage.interrupted()
    assert (after.ended, after.interrupted) == (True, False)


async def test_watchers_whose_frames_cannot_be_encoded_are_interrupted_and_the_others_are_not(
    hub: Broadcaster, storage: FakeStorage
) -> None:
    def fails(_: str, found: KeyValue) -> bytes:
        raise ValueError(found.key)

    failing = hub.join(options(), representation="broken", encode=fails, on_overflow=lambda: None)
    other = join(hub)
    storage.commit(event(None, kv("a", 2), 2), event(None, kv("b", 3), 3))
    assert (failing.ended, failing.interrupted) == (True, True)
    assert await taken(other) == "ADDED a@2;ADDED b@3;"


async def test_the_broadcaster_counts_its_watchers(hub: Broadcaster) -> None:
    watchers: Sequence[FrameWatcher] = [
        join(hub),
        join(hub, "x=1"),
        join(hub, "x=1"),
        join(hub, representation="table"),
    ]
    assert hub.watchers == 4
    for watcher in watchers:
        hub.leave(watcher)
    assert hub.watchers == 0


async def test_closing_ends_the_subscription(hub: Broadcaster, storage: FakeStorage) -> None:
    hub.close()
    assert storage.sink is None


async def test_a_watch_of_one_name_is_offered_the_events_of_that_name(storage: FakeStorage, hub: Broadcaster) -> None:
    def watch(fields: str, labels: str = "") -> FrameWatcher:
        return hub.join(options(labels, fields), representation="plain", encode=encode, on_overflow=lambda: None)

    a, b, also = watch("metadata.name=a"), watch("metadata.name=b"), watch("metadata.name=a", "x=1")
    other, both = watch("metadata.name!=a"), watch("")
    storage.commit(event(None, kv("a", 1001), 1001), event(None, kv("b", 1002, x="1"), 1002))
    storage.commit(event(kv("a", 1001), kv("a", 1003, x="1"), 1003))
    assert await taken(a) == "ADDED a@1001;MODIFIED a@1003;"
    assert await taken(b) == "ADDED b@1002;"
    assert await taken(also) == "ADDED a@1003;"
    assert await taken(other) == "ADDED b@1002;"
    assert await taken(both) == "ADDED a@1001;ADDED b@1002;MODIFIED a@1003;"
    for each in (a, also, other):
        hub.leave(each)
    storage.commit(event(kv("a", 1003), None, 1004), event(kv("b", 1002), None, 1005))
    assert await taken(b) == "DELETED b@1005;"
    assert await taken(both) == "DELETED a@1004;DELETED b@1005;"
    assert await taken(watch("metadata.name=a")) == ""


async def test_events_cost_no_more_with_a_watch_of_each_object(storage: FakeStorage, hub: Broadcaster) -> None:
    asked: list[str] = []

    class Counting(ListOptions):
        def selects(self, found: KeyValue) -> bool:
            asked.append(found.key)
            return super().selects(found)

    for number in range(100):
        selector = parse_field_selector(f"metadata.name=n{number}")
        counting = Counting(labels=parse_label_selector(""), fields=selector)
        hub.join(counting, representation="plain", encode=encode, on_overflow=lambda: None)
    storage.commit(event(None, kv("n7", 1001), 1001))
    await delivered()
    assert asked == [f"{PREFIX}n7"]
