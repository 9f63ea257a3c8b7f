"""What every store does for a watch: past events by ``history``, then the coming ones by ``subscribe``."""

import asyncio
import random
from collections.abc import Sequence

import pytest

from clusterregistry.apiserver.storage.interface import Event, KeyValue, Storage
from tests.apiserver.storage.engines import settled
from tests.apiserver.storage.recording import Chronicle, Watch, fill, histories


async def test_a_subscriber_gets_what_is_created_changed_and_deleted(store: Storage) -> None:
    received: list[Event] = []
    store.subscribe("/", received.extend)
    created = await store.create("/a", b"1")
    updated = await store.update("/a", b"2", expected=created)
    deleted = await store.delete("/a", expected=updated)
    await settled(store)
    first, second = KeyValue("/a", b"1", created), KeyValue("/a", b"2", updated)
    assert received == [
        Event("/a", created, current=first, previous=None),
        Event("/a", updated, current=second, previous=first),
        Event("/a", deleted, current=None, previous=second),
    ]
    assert list(await store.history("/", after=created - 1)) == received


async def test_a_key_that_is_made_again_has_no_previous_value(store: Storage) -> None:
    received: list[Event] = []
    store.subscribe("/", received.extend)
    created = await store.create("/a", b"1")
    deleted = await store.delete("/a", expected=created)
    again = await store.create("/a", b"2")
    await settled(store)
    assert received[2:] == [Event("/a", again, current=KeyValue("/a", b"2", again), previous=None)]
    assert list(await store.history("/", after=deleted)) == received[2:]


async def test_events_arrive_before_the_write_returns_where_nobody_else_writes(sole_store: Storage) -> None:
    received: list[Event] = []
    sole_store.subscribe("/", received.extend)

    async def write(n: int) -> None:
        revision = await sole_store.create(f"/{n}", b"")
        assert revision in {event.revision for event in received}

    await asyncio.gather(*(write(n) for n in range(50)))


async def test_events_arrive_once_each_and_in_order_whoever_writes(store: Storage) -> None:
    received: list[Event] = []
    store.subscribe("/", received.extend)
    revisions = await asyncio.gather(*(store.create(f"/{n}", b"") for n in range(600)))
    await settled(store)
    assert [event.revision for event in received] == sorted(revisions)
    assert {event.key: event.revision for event in received} == {f"/{n}": at for n, at in enumerate(revisions)}


async def test_changes_of_one_key_in_quick_succession_are_chained(store: Storage) -> None:
    written = await Chronicle.of(store)
    received: list[Event] = []
    store.subscribe("/", received.extend)
    for turn in range(10):
        await written.put(store, "/a", b"%d" % turn)
        if turn % 4 == 3:
            await written.delete(store, "/a")
    await settled(store)
    assert received == written.events


async def test_changes_of_one_key_in_one_batch_are_chained(sole_store: Storage) -> None:
    received: list[Event] = []
    sole_store.subscribe("/", received.extend)
    next_one = sole_store.revision + 1
    await asyncio.gather(
        sole_store.create("/a", b"1"),
        sole_store.update("/a", b"2", expected=next_one),
        sole_store.delete("/a", expected=next_one + 1),
        sole_store.create("/a", b"3"),
    )
    first, second = KeyValue("/a", b"1", next_one), KeyValue("/a", b"2", next_one + 1)
    assert [event.previous for event in received] == [None, first, second, None]


async def test_a_subscriber_gets_only_its_prefix(store: Storage) -> None:
    received: dict[str, list[Event]] = {prefix: [] for prefix in ("/a/", "/a", "/a/1", "/c", "")}
    for prefix, events in received.items():
        store.subscribe(prefix, events.extend)
    start = await store.current_revision()
    await fill(store, "/b/1", "/a/1", "/ab/1", "/a", "/a/1/2")
    await settled(store)
    assert {prefix: [event.key for event in events] for prefix, events in received.items()} == {
        "/a/": ["/a/1", "/a/1/2"],
        "/a": ["/a/1", "/ab/1", "/a", "/a/1/2"],
        "/a/1": ["/a/1", "/a/1/2"],
        "/c": [],
        "": ["/b/1", "/a/1", "/ab/1", "/a", "/a/1/2"],
    }
    for prefix, events in received.items():
        assert list(await store.history(prefix, after=start)) == events


async def test_a_refused_write_makes_no_event(store: Storage) -> None:
    received: list[Event] = []
    created = await store.create("/a", b"")
    await settled(store)
    store.subscribe("/", received.extend)
    outcomes = await asyncio.gather(
        store.create("/a", b""),
        store.delete("/b", expected=created),
        store.update("/a", b"", expected=created + 1),
        return_exceptions=True,
    )
    assert all(isinstance(outcome, Exception) for outcome in outcomes)
    await settled(store)
    assert received == []
    assert list(await store.history("/", after=created)) == []


async def test_a_closed_subscription_gets_nothing_more(store: Storage) -> None:
    received: list[Event] = []
    subscription = store.subscribe("/", received.extend)
    await store.create("/a", b"")
    await settled(store)
    subscription.close()
    subscription.close()
    await store.create("/b", b"")
    await settled(store)
    assert [event.key for event in received] == ["/a"]


async def test_subscribers_do_not_share_what_they_get(store: Storage) -> None:
    first, second = list[Event](), list[Event]()
    one = store.subscribe("/", first.extend)
    store.subscribe("/", second.extend)
    store.subscribe("/", second.extend)
    await store.create("/a", b"")
    await settled(store)
    one.close()
    await store.create("/b", b"")
    await settled(store)
    assert [event.key for event in first] == ["/a"]
    assert [event.key for event in second] == ["/a", "/a", "/b", "/b"]


async def test_subscribers_may_close_themselves_and_others_and_open_more_while_events_are_handed_out(
    store: Storage,
) -> None:
    received: dict[str, list[str]] = {"first": [], "second": [], "late": []}

    def note(name: str, events: Sequence[Event]) -> None:
        received[name].extend(event.key for event in events)

    def first(events: Sequence[Event]) -> None:
        note("first", events)
        subscriptions[0].close()
        subscriptions[1].close()
        store.subscribe("/", lambda events: note("late", events))

    subscriptions = [store.subscribe("/", first), store.subscribe("/", lambda events: note("second", events))]
    await store.create("/a", b"")
    await settled(store)
    await store.create("/b", b"")
    await settled(store)
    assert received == {"first": ["/a"], "second": [], "late": ["/b"]}


async def test_a_subscriber_that_raises_harms_nobody_else(store: Storage, caplog: pytest.LogCaptureFixture) -> None:
    received: list[Event] = []

    def broken(_: Sequence[Event]) -> None:
        raise RuntimeError("a bug")

    store.subscribe("/", broken)
    store.subscribe("/", received.extend)
    revisions = [await store.create("/a", b""), await store.create("/b", b"")]
    await settled(store)
    assert [event.revision for event in received] == revisions
    assert "a bug" in caplog.text


async def test_a_subscriber_may_write(store: Storage) -> None:
    answers: list[asyncio.Future[int]] = []

    def answer(events: Sequence[Event]) -> None:
        answers.extend(
            asyncio.ensure_future(store.create(event.key.replace("asked", "answered"), b"")) for event in events
        )

    store.subscribe("/asked/", answer)
    (asked,) = await fill(store, "/asked/1")
    await settled(store)
    assert await answers[0] == asked + 1


async def test_history_of_nothing_new_is_empty(store: Storage) -> None:
    created = await store.create("/a", b"")
    await settled(store)
    for after in (created, created + 1, 2**63 - 1, 2**63, 2**80):
        assert list(await store.history("/", after=after)) == []


async def test_a_fresh_store_has_its_whole_history(store: Storage) -> None:
    revisions = await fill(store, "/a", "/b")
    await settled(store)
    for after in (0, 1):
        assert [event.revision for event in await store.history("/", after=after)] == revisions


@pytest.mark.parametrize("seed", range(3))
async def test_history_behind_any_revision_is_the_log_from_there(store: Storage, seed: int) -> None:
    written = await Chronicle.of(store)
    await written.scribble(store, writes=60, chance=random.Random(seed))
    await settled(store)
    for prefix in ("/", "/a/", "/b", "/a/3"):
        found = await histories(store, written.revisions, prefix=prefix)
        assert found == written.histories(written.revisions, prefix=prefix)


async def test_history_comes_in_pages_of_any_size(store: Storage) -> None:
    written = await Chronicle.of(store)
    await written.scribble(store, writes=20, chance=random.Random(4))
    await settled(store)

    async def read(limit: int) -> list[Event]:
        seen: list[Event] = []
        page = await store.history("/a/", after=written.start, limit=limit)
        while page:
            assert len(page) <= limit
            seen += page
            page = await store.history("/a/", after=page[-1].revision, limit=limit)
        return seen

    found = await asyncio.gather(*map(read, (1, 2, 5, 100)))
    assert found == [written.history(after=written.start, prefix="/a/")] * 4


async def test_a_watch_from_any_revision_sees_the_rest_of_the_log_once_and_in_order(store: Storage) -> None:
    written, chance = await Chronicle.of(store), random.Random(5)
    watches: dict[int, Watch] = {}
    for _ in range(8):
        await written.scribble(store, writes=7, chance=chance)
        begun = {revision: Watch() for revision in chance.sample(written.revisions, 4)}
        await asyncio.gather(*(watch.start(store, after=revision) for revision, watch in begun.items()))
        watches |= begun
    await settled(store)
    for revision, watch in watches.items():
        assert list(watch.events) == written.history(after=revision)


async def test_a_watch_that_begins_during_writes_misses_and_repeats_nothing(store: Storage) -> None:
    start = await store.current_revision()
    watches = [Watch() for _ in range(5)]
    some_written = asyncio.Event()
    revisions: list[int] = []

    async def write(writer: int) -> None:
        for n in range(20):
            revisions.append(await store.create(f"/{writer}-{n}", b""))
            if len(revisions) > 10:
                some_written.set()

    async def begin(watch: Watch) -> None:
        await some_written.wait()
        await watch.start(store, after=start)

    await asyncio.gather(*(write(n) for n in range(5)), *(begin(watch) for watch in watches))
    await settled(store)
    for watch in watches:
        assert watch.revisions == sorted(revisions)


async def test_the_events_of_a_watch_lead_from_one_state_to_the_other(store: Storage) -> None:
    # What a client does: a list, a watch from the list's revision, and each event applied to what it has.
    written, chance = await Chronicle.of(store), random.Random(6)
    await written.scribble(store, writes=20, chance=chance)
    page, watch = await store.list("/"), Watch()
    state = {item.key: item for item in page.items}
    await written.scribble(store, writes=20, chance=chance)
    await watch.start(store, after=page.revision)
    await written.scribble(store, writes=20, chance=chance)
    await settled(store)
    for event in watch.events:
        assert state.pop(event.key, None) == event.previous
        if event.current is not None:
            state[event.key] = event.current
    assert [state[key] for key in sorted(state)] == written.state(written.last)
