"""What every store does for a watch: past events by ``history``, then the coming ones by ``subscribe``."""

import asyncio
from collections.abc import Sequence

import pytest

from clusterregistry.storage.interface import Event, KeyValue, Storage, Subscription
from tests.storage.engines import Engine


class Watch:
    """A watch from a revision, put together as a server does: subscribe, read the past, skip what came twice."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._live: list[Event] = []

    async def start(self, store: Storage, *, after: int, prefix: str = "/") -> Subscription:
        subscription = store.subscribe(prefix, self._live.extend)
        self.events.extend(await store.history(prefix, after=after))
        return subscription

    def finish(self) -> Sequence[Event]:
        last = self.events[-1].revision if self.events else 0
        return [*self.events, *(event for event in self._live if event.revision > last)]


async def test_a_subscriber_gets_what_is_created_changed_and_deleted(store: Storage) -> None:
    received: list[Event] = []
    store.subscribe("/", received.extend)
    await store.create("/a", b"1")
    await store.update("/a", b"2", expected=2)
    await store.delete("/a", expected=3)
    first, second = KeyValue("/a", b"1", 2), KeyValue("/a", b"2", 3)
    assert received == [
        Event("/a", 2, current=first, previous=None),
        Event("/a", 3, current=second, previous=first),
        Event("/a", 4, current=None, previous=second),
    ]
    assert list(await store.history("/", after=1)) == received


async def test_events_arrive_before_the_write_returns(store: Storage) -> None:
    received: list[Event] = []
    store.subscribe("/", received.extend)

    async def write(n: int) -> None:
        revision = await store.create(f"/{n}", b"")
        assert revision in {event.revision for event in received}

    await asyncio.gather(*(write(n) for n in range(50)))


async def test_events_arrive_once_each_and_in_order_whoever_writes(store: Storage) -> None:
    received: list[Event] = []
    store.subscribe("/", received.extend)
    await asyncio.gather(*(store.create(f"/{n}", b"") for n in range(600)))
    assert [event.revision for event in received] == list(range(2, 602))


async def test_changes_of_one_key_in_one_batch_are_chained(store: Storage) -> None:
    received: list[Event] = []
    store.subscribe("/", received.extend)
    await asyncio.gather(
        store.create("/a", b"1"),
        store.update("/a", b"2", expected=2),
        store.delete("/a", expected=3),
        store.create("/a", b"3"),
    )
    assert [event.previous for event in received] == [None, KeyValue("/a", b"1", 2), KeyValue("/a", b"2", 3), None]


async def test_a_subscriber_gets_only_its_prefix(store: Storage) -> None:
    received: list[Event] = []
    store.subscribe("/a/", received.extend)
    for key in ("/b/1", "/a/1", "/ab/1"):
        await store.create(key, b"")
    assert [event.key for event in received] == ["/a/1"]
    assert [event.key for event in await store.history("/a/", after=1)] == ["/a/1"]


async def test_a_failed_write_makes_no_event(store: Storage) -> None:
    received: list[Event] = []
    await store.create("/a", b"")
    store.subscribe("/", received.extend)
    await asyncio.gather(store.create("/a", b""), store.delete("/b", expected=1), return_exceptions=True)
    assert received == []


async def test_a_closed_subscription_gets_nothing_more(store: Storage) -> None:
    received: list[Event] = []
    subscription = store.subscribe("/", received.extend)
    await store.create("/a", b"")
    subscription.close()
    subscription.close()
    await store.create("/b", b"")
    assert [event.key for event in received] == ["/a"]


async def test_subscribers_may_close_themselves_and_others_and_open_more_while_events_are_handed_out(
    store: Storage,
) -> None:
    received: dict[str, list[int]] = {"first": [], "second": [], "late": []}

    def note(name: str, events: Sequence[Event]) -> None:
        received[name].extend(event.revision for event in events)

    def first(events: Sequence[Event]) -> None:
        note("first", events)
        subscriptions[0].close()
        subscriptions[1].close()
        store.subscribe("/", lambda events: note("late", events))

    subscriptions = [store.subscribe("/", first), store.subscribe("/", lambda events: note("second", events))]
    await store.create("/a", b"")
    await store.create("/b", b"")
    assert received == {"first": [2], "second": [], "late": [3]}


async def test_a_subscriber_that_raises_harms_nobody_else(store: Storage, caplog: pytest.LogCaptureFixture) -> None:
    received: list[Event] = []

    def broken(_: Sequence[Event]) -> None:
        raise RuntimeError("a bug")

    store.subscribe("/", broken)
    store.subscribe("/", received.extend)
    assert await store.create("/a", b"") == 2
    assert [event.revision for event in received] == [2]
    assert "a bug" in caplog.text


async def test_history_of_nothing_new_is_empty(store: Storage) -> None:
    await store.create("/a", b"")
    for after in (2, 3, 2**63, 2**80):
        assert list(await store.history("/", after=after)) == []


async def test_a_fresh_store_has_its_whole_history(store: Storage) -> None:
    await store.create("/a", b"")
    assert [event.revision for event in await store.history("/", after=0)] == [2]


async def test_a_watch_that_begins_during_writes_misses_and_repeats_nothing(store: Storage) -> None:
    watches = [Watch() for _ in range(5)]

    async def write(writer: int) -> None:
        for n in range(20):
            await store.create(f"/{writer}-{n}", b"")

    async def begin(watch: Watch) -> None:
        await asyncio.sleep(0.001)
        await watch.start(store, after=1)

    await asyncio.gather(*(write(n) for n in range(5)), *(begin(watch) for watch in watches))
    for watch in watches:
        assert [event.revision for event in watch.finish()] == list(range(2, 102))


async def test_a_watch_resumes_exactly_where_it_was_after_a_restart(engine: Engine) -> None:
    seen: list[Event] = []
    store = await engine.open()
    first = Watch()
    await first.start(store, after=1)
    await store.create("/a", b"1")
    seen.extend(first.finish())
    await store.update("/a", b"2", expected=2)
    await store.delete("/a", expected=3)
    await engine.close()

    store = await engine.open()
    second = Watch()
    await second.start(store, after=seen[-1].revision)
    await store.create("/a", b"3")
    seen.extend(second.finish())
    assert [(event.revision, event.current and event.current.value) for event in seen] == [
        (2, b"1"),
        (3, b"2"),
        (4, None),
        (5, b"3"),
    ]
    assert seen[2].previous == KeyValue("/a", b"2", 3)
    assert seen[3].previous is None


async def test_a_restart_keeps_keys_values_and_revisions(engine: Engine) -> None:
    store = await engine.open()
    await store.create("/a", b"1")
    await store.create("/b", b"1")
    await store.update("/a", b"2", expected=2)
    await store.delete("/b", expected=3)
    await engine.close()
    store = await engine.open()
    assert (await store.list("/")).items == [KeyValue("/a", b"2", 4)]
    assert store.revision == 5
    assert await store.update("/a", b"3", expected=4) == 6


async def test_history_comes_in_pages(store: Storage) -> None:
    for number in range(5):
        await store.create(f"/a/{number}", b"")
        await store.create(f"/b/{number}", b"")
    seen: list[str] = []
    after, page = 1, await store.history("/a/", after=1, limit=2)
    while page:
        assert len(page) <= 2
        seen += [event.key for event in page]
        after = page[-1].revision
        page = await store.history("/a/", after=after, limit=2)
    assert seen == [f"/a/{number}" for number in range(5)]
