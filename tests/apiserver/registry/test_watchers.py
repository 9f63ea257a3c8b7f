"""The hub: who gets which frames, and who is ended."""

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


class Feed:
    """As much of a storage as a hub needs."""

    def __init__(self) -> None:
        self.revision = 1000
        self.sink: Sink | None = None
        self.interrupted: Interrupted = lambda: None

    def subscribe(self, _: str, sink: Sink, *, interrupted: Interrupted) -> Subscription:
        self.sink, self.interrupted = sink, interrupted
        return self

    def close(self) -> None:
        self.sink = None

    def tell(self, *events: Event) -> None:
        assert self.sink is not None
        self.sink(events)


@pytest.fixture
def feed() -> Feed:
    return Feed()


@pytest.fixture
def hub(feed: Feed) -> Broadcaster:
    return Broadcaster(feed, PREFIX)  # type: ignore[arg-type]


def encode(kind: str, found: KeyValue) -> bytes:
    return f"{kind} {found.key.removeprefix(PREFIX)}@{found.revision};".encode()


def join(
    hub: Broadcaster, labels: str = "", representation: str = "plain", on_overflow: Callable[[], None] = lambda: None
) -> FrameWatcher:
    return hub.join(options(labels), representation=representation, encode=encode, on_overflow=on_overflow)


async def told() -> None:
    """Waits until all who are to be told something were told."""
    for _ in range(20):
        await asyncio.sleep(0)


async def taken(watcher: FrameWatcher) -> str:
    await told()
    return b"".join(data for _, data in await watcher.next(0)).decode()


class Client:
    """An outlet: a client that reads, until it does not."""

    def __init__(self) -> None:
        self.reads = True
        self.heard: list[bytes] = []

    async def send(self, data: bytes) -> None:
        self.heard.append(data)

    def offer(self, batch: SharedPiece) -> bool:
        if self.reads:
            self.heard.append(batch.data)
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
    ("before", "after", "told"),
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
def test_what_an_event_is_to_a_selection(
    before: dict[str, str] | None, after: dict[str, str] | None, told: str | None
) -> None:
    previous = None if before is None else kv("a", 4, **before)
    current = None if after is None else kv("a", 7, **after)
    change = seen_through(options("x=1"), event(previous, current, 7))
    assert (change and change.type) == told
    if change:
        assert change.kv.revision == 7
        shown = current if told in (ADDED, MODIFIED) else previous
        assert shown
        assert change.kv == at_revision(shown, 7)


def test_without_a_selection_every_event_is_told() -> None:
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


async def test_every_watcher_gets_the_frames_of_its_selection(hub: Broadcaster, feed: Feed) -> None:
    everything, some = join(hub), join(hub, "x=1")
    feed.tell(event(None, kv("a", 1, x="1"), 1), event(None, kv("b", 2), 2))
    assert await taken(everything) == "ADDED a@1;ADDED b@2;"
    assert await taken(some) == "ADDED a@1;"


async def test_a_frame_is_encoded_once_for_all_who_want_it_so(hub: Broadcaster, feed: Feed) -> None:
    counter = itertools.count(1)

    def counted(_: str, __: KeyValue) -> bytes:
        return str(next(counter)).encode()

    watchers = [hub.join(options(), representation="same", encode=counted, on_overflow=lambda: None) for _ in range(50)]
    feed.tell(event(None, kv("a", 1), 1))
    assert [await taken(watcher) for watcher in watchers] == ["1"] * 50


async def test_a_watcher_hears_nothing_from_before_it_came_or_after_it_left(hub: Broadcaster, feed: Feed) -> None:
    feed.tell(event(None, kv("a", 1), 1))
    watcher = join(hub)
    assert await taken(watcher) == ""
    hub.leave(watcher)
    feed.tell(event(None, kv("b", 2), 2))
    assert await taken(watcher) == ""
    assert hub.watchers == 0
    hub.leave(watcher)


@pytest.mark.parametrize(("limit", "value"), [("FRAMES_LIMIT", 3), ("BYTES_LIMIT", 30)])
async def test_one_that_does_not_keep_up_is_ended_and_the_others_are_not(
    hub: Broadcaster, feed: Feed, monkeypatch: pytest.MonkeyPatch, limit: str, value: int
) -> None:
    monkeypatch.setattr(watchers, limit, value)
    given_up: list[str] = []
    slow = join(hub, on_overflow=lambda: given_up.append("slow"))
    quick = join(hub, on_overflow=lambda: given_up.append("quick"))
    heard = ""
    for revision in range(1, 9):
        feed.tell(event(None, kv("a", revision), revision))
        heard += await taken(quick)
    assert heard.count("ADDED") == 8
    assert given_up == ["slow"]
    assert slow.ended
    assert await taken(slow) == ""


async def test_what_was_read_no_longer_counts(hub: Broadcaster, feed: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watchers, "BYTES_LIMIT", 15)
    watcher = join(hub)
    for revision in range(1, 6):
        feed.tell(event(None, kv("a", revision), revision))
        assert await taken(watcher)
    assert not watcher.ended


async def test_waiting_ends_with_a_frame(hub: Broadcaster, feed: Feed) -> None:
    watcher = join(hub)
    waiting = asyncio.create_task(watcher.next(30))
    await asyncio.sleep(0)
    feed.tell(event(None, kv("a", 1), 1))
    assert [revision for revision, _ in await waiting] == [1]


async def test_one_that_waits_is_written_to_without_being_woken(hub: Broadcaster, feed: Feed) -> None:
    watcher, client = join(hub), Client()
    waiting = asyncio.create_task(watcher.next(30, client))
    await asyncio.sleep(0)
    feed.tell(event(None, kv("a", 1), 1), event(None, kv("b", 2), 2))
    await told()
    feed.tell(event(None, kv("c", 3), 3))
    await told()
    assert client.heard == [b"ADDED a@1;ADDED b@2;", b"ADDED c@3;"]
    assert watcher.seen == 3
    assert not waiting.done()
    watcher.end()
    assert await waiting == []


async def test_what_cannot_be_written_at_once_waits_for_the_task_in_order(hub: Broadcaster, feed: Feed) -> None:
    watcher, client = join(hub), Client()
    waiting = asyncio.create_task(watcher.next(30, client))
    await asyncio.sleep(0)
    client.reads = False
    feed.tell(event(None, kv("a", 1), 1))
    await told()
    client.reads = True
    feed.tell(event(None, kv("b", 2), 2))
    await told()
    assert client.heard == []
    assert await waiting == [(1, b"ADDED a@1;")]
    assert await taken(watcher) == "ADDED b@2;"


async def test_what_a_client_knows_from_the_beginning_is_not_written_again(hub: Broadcaster, feed: Feed) -> None:
    watcher, client = join(hub), Client()
    watcher.seen = 1
    waiting = asyncio.create_task(watcher.next(30, client))
    await asyncio.sleep(0)
    feed.tell(event(None, kv("a", 1), 1), event(None, kv("b", 2), 2))
    assert await waiting == [(1, b"ADDED a@1;"), (2, b"ADDED b@2;")]
    assert client.heard == []


async def test_a_batch_too_large_for_every_client_at_once_waits_for_the_tasks(
    hub: Broadcaster, feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watchers, "AT_ONCE", 10)
    watcher, client = join(hub), Client()
    waiting = asyncio.create_task(watcher.next(30, client))
    await asyncio.sleep(0)
    feed.tell(event(None, kv("a", 1), 1), event(None, kv("b", 2), 2))
    assert [revision for revision, _ in await waiting] == [1, 2]
    assert client.heard == []


async def test_many_are_told_some_at_a_time_and_what_comes_meanwhile_is_told_together(
    hub: Broadcaster, feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broadcaster, "_AT_A_TIME", 2)
    clients, joined, waiting = await several(hub, 5)
    feed.tell(event(None, kv("a", 1), 1))
    await asyncio.sleep(0)
    assert [len(client.heard) for client in clients] == [1, 1, 0, 0, 0]
    assert [hub.told(watcher, revision=1) for watcher in joined] == [1, 1, 0, 0, 0]
    feed.tell(event(None, kv("b", 2), 2))
    feed.tell(event(None, kv("c", 3), 3))
    await told()
    assert [client.heard for client in clients] == [[b"ADDED a@1;", b"ADDED b@2;ADDED c@3;"]] * 5
    assert [hub.told(watcher, revision=7) for watcher in joined] == [7] * 5
    hub.end_all()
    await asyncio.gather(*waiting)


async def test_many_are_told_at_once_what_happens_now_and_then_and_more_after_a_pause(
    hub: Broadcaster, feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broadcaster, "_FEW", 2)
    monkeypatch.setattr(broadcaster, "_PAUSE", 3600)
    clients, joined, waiting = await several(hub)
    feed.tell(event(None, kv("a", 1), 1))
    await told()
    feed.tell(event(None, kv("b", 2), 2))
    await told()
    assert [client.heard for client in clients] == [[b"ADDED a@1;"]] * 3
    assert [hub.told(watcher, revision=2) for watcher in joined] == [1] * 3
    hub.end_all()
    await asyncio.gather(*waiting)


async def test_after_the_pause_they_are_told_everything_in_order(
    hub: Broadcaster, feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broadcaster, "_FEW", 2)
    monkeypatch.setattr(broadcaster, "_PAUSE", 0.01)
    clients, joined, waiting = await several(hub)
    for revision in range(1, 21):
        feed.tell(event(None, kv("a", revision), revision))
        await asyncio.sleep(0.001)
    async with asyncio.timeout(20):
        while hub.told(joined[0], revision=20) != 20:  # noqa: ASYNC110 - nobody tells when all were told
            await asyncio.sleep(0.01)
    everything = b"".join(b"ADDED a@%d;" % revision for revision in range(1, 21))
    assert [b"".join(client.heard) for client in clients] == [everything] * 3
    hub.end_all()
    await asyncio.gather(*waiting)


async def test_when_more_happens_than_can_be_told_all_are_ended(
    hub: Broadcaster, feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watchers, "FRAMES_LIMIT", 3)
    given_up: list[str] = []
    watcher = join(hub, on_overflow=lambda: given_up.append("one"))
    for revision in range(1, 6):  # within one turn of the loop
        feed.tell(event(None, kv("a", revision), revision))
    assert watcher.ended
    assert given_up == ["one"]
    await told()
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


async def test_after_the_end_nobody_joins(hub: Broadcaster) -> None:
    hub.end_all()
    assert join(hub).ended
    assert hub.watchers == 0


async def test_when_events_are_missing_the_watches_end_and_new_ones_may_begin(hub: Broadcaster, feed: Feed) -> None:
    before = join(hub)
    feed.interrupted()
    feed.tell(event(None, kv("a", 2), 2))
    assert before.ended
    assert await taken(before) == ""
    after = join(hub)
    feed.tell(event(None, kv("b", 3), 3))
    assert await taken(after) == "ADDED b@3;"


async def test_when_revisions_have_gone_back_the_watches_are_told_to_list_anew(hub: Broadcaster, feed: Feed) -> None:
    before = join(hub)
    feed.tell(event(None, kv("a", 20), 20))
    feed.revision = 12
    feed.interrupted()
    assert (before.ended, before.interrupted) == (True, True)
    after = join(hub)
    feed.tell(event(None, kv("b", 13), 13))
    assert await taken(after) == "ADDED b@13;"
    feed.revision = 14
    feed.interrupted()
    assert (after.ended, after.interrupted) == (True, False)


async def test_those_who_cannot_be_told_are_interrupted_and_the_others_are_told_all(
    hub: Broadcaster, feed: Feed
) -> None:
    def fails(_: str, found: KeyValue) -> bytes:
        raise ValueError(found.key)

    failing = hub.join(options(), representation="broken", encode=fails, on_overflow=lambda: None)
    other = join(hub)
    feed.tell(event(None, kv("a", 2), 2), event(None, kv("b", 3), 3))
    assert (failing.ended, failing.interrupted) == (True, True)
    assert await taken(other) == "ADDED a@2;ADDED b@3;"


async def test_the_hub_counts_its_watchers(hub: Broadcaster) -> None:
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


async def test_closing_ends_the_subscription(hub: Broadcaster, feed: Feed) -> None:
    hub.close()
    assert feed.sink is None
