"""The frames of one filtered watch whose rights arrive late, in between or not at all."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from clusterregistry.apimachinery.meta.errors import APIError
from clusterregistry.apimachinery.meta.field_selectors import parse_field_selector
from clusterregistry.apimachinery.meta.label_selectors import parse_label_selector
from clusterregistry.apiserver.authz.view import View
from clusterregistry.apiserver.registry.broadcaster import Broadcaster, UnfilteredFeed
from clusterregistry.apiserver.registry.filtered import FilteredFeed
from clusterregistry.apiserver.registry.list import ListOptions, list_objects
from clusterregistry.apiserver.registry.object_filter import EVERYTHING, ObjectFilter
from clusterregistry.apiserver.registry.store import Store
from clusterregistry.apiserver.registry.watcher import Delivery
from clusterregistry.apiserver.storage.cacher import Cacher
from clusterregistry.apiserver.storage.errors import StorageError, StorageUnavailable
from clusterregistry.apiserver.storage.interface import KeyValue
from clusterregistry.apiserver.storage.object_bytes import presented, to_stored
from clusterregistry.apiserver.storage.sqlite import SQLiteStorage
from clusterregistry.registry.cluster import cluster_resource


class Rights:
    """Names that a test sets, and that may be a while behind the store."""

    def __init__(self, *names: str) -> None:
        self.now: frozenset[str] | None = frozenset(names)
        self.changed_at = self.granted_at = 0
        self.waits: list[int] = []
        self.known = asyncio.Event()
        self.known.set()
        self.error: StorageError | None = None
        self._listeners: list[Callable[[], None]] = []

    def view(self) -> View | None:
        return None if self.now is None else View(self.now)

    async def caught_up(self, revision: int) -> None:
        if self.error is not None:
            raise self.error
        self.waits.append(revision)
        await self.known.wait()

    def on_change(self, listener: Callable[[], None]) -> Callable[[], None]:
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def become(self, *names: str, revision: int) -> None:
        self.now, self.changed_at = frozenset(names), revision
        for listener in self._listeners:
            listener()


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    backend = await SQLiteStorage.open(tmp_path / "registry.db")
    resource = cluster_resource("off")
    cacher = await Cacher.open(backend, Store(resource, backend, now=str).prefix, present=presented)
    yield Store(resource, cacher, now=str)
    await cacher.close()
    await backend.close()


@pytest.fixture
def broadcaster(store: Store) -> Broadcaster:
    return Broadcaster(store.storage, store.prefix)


def options(visible: ObjectFilter) -> ListOptions:
    return ListOptions(labels=parse_label_selector(""), fields=parse_field_selector(""), visible=visible)


def encode(kind: str, kv: KeyValue) -> bytes:
    return f"{kind} {kv.key[-1]}@{kv.revision}".encode()


@pytest.fixture
def rights() -> Rights:
    return Rights("a", "b")


@pytest.fixture
def feed(broadcaster: Broadcaster, rights: Rights) -> FilteredFeed:
    return FilteredFeed(broadcaster, options=options(rights), encode=encode, on_overflow=lambda: None)


async def write(store: Store, *names: str) -> int:
    """Makes objects, or changes them; returns the revision of the last one. The first write makes revision 2."""
    revision, value = 0, to_stored({"metadata": {"uid": ""}})
    for name in names:
        known = await store.storage.get(store.prefix + name)
        if known is None:
            revision = await store.storage.create(store.prefix + name, value)
        else:
            revision = await store.storage.update(known.key, value, expected=known.revision)
    return revision


async def remove(store: Store, name: str) -> None:
    known = await store.storage.get(store.prefix + name)
    assert known is not None
    await store.storage.delete(known.key, expected=known.revision)


async def begin(feed: FilteredFeed, store: Store) -> list[str]:
    page = await store.storage.list(store.prefix)
    found = [kv.key[-1] for kv in await feed.existing(page)]
    feed.begun(page.revision)
    return found


def sent(delivery: Delivery) -> list[str]:
    return [data.decode() for _, data in delivery.frames]


async def next_frames(feed: FilteredFeed) -> list[str]:
    return sent(await feed.next_delivery(await feed.watcher.next(0)))


async def settle() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


async def test_nothing_is_sent_before_rights_are_known_up_to_its_revision(
    store: Store, feed: FilteredFeed, rights: Rights
) -> None:
    await write(store, "a", "b", "c")
    assert await begin(feed, store) == ["a", "b"]
    rights.known.clear()
    await write(store, "a")
    pending = asyncio.create_task(next_frames(feed))
    await settle()
    assert not pending.done()
    last = await write(store, "c", "b")
    rights.become("b", "c", revision=6)
    rights.known.set()
    assert await pending == ["DELETED a@4", "ADDED c@6", "MODIFIED b@7"]
    assert rights.waits[-1] == last


async def test_what_happens_while_the_beginning_waits_for_rights_is_not_lost(
    store: Store, feed: FilteredFeed, rights: Rights
) -> None:
    await write(store, "a")
    rights.known.clear()
    beginning = asyncio.create_task(begin(feed, store))
    await settle()
    await write(store, "b", "a", "c")
    rights.known.set()
    assert await beginning == ["a"]
    assert await next_frames(feed) == ["ADDED b@3", "MODIFIED a@4"]


async def test_only_events_that_concern_the_client_wait_for_it(store: Store, feed: FilteredFeed) -> None:
    await begin(feed, store)
    await write(store, "c", "d", "a")
    assert [event.key[-1] for event in await feed.watcher.next(0)] == ["a"]


async def test_rights_that_change_wake_the_watch(store: Store, feed: FilteredFeed, rights: Rights) -> None:
    await write(store, "c")
    await begin(feed, store)
    waiting = asyncio.create_task(feed.watcher.next(60))
    await settle()
    rights.become("c", revision=3)
    delivery = await feed.next_delivery(await waiting)
    assert sent(delivery) == ["ADDED c@2"]
    assert delivery.unmarked
    assert not (await feed.next_delivery([])).unmarked


async def test_watches_whose_rights_change_together_leave_turns_to_others(
    store: Store, broadcaster: Broadcaster
) -> None:
    looked_at: list[int] = []
    turn = 0

    class Counted(Rights):
        def view(self) -> View | None:
            looked_at.append(turn)
            return super().view()

    async def count_turns() -> None:
        nonlocal turn
        while True:
            turn += 1
            await asyncio.sleep(0)

    rights = Counted("a")
    feeds = [
        FilteredFeed(broadcaster, options=options(rights), encode=encode, on_overflow=lambda: None) for _ in range(5)
    ]
    await write(store, "a", "b")
    for each in feeds:
        await begin(each, store)
    looked_at.clear()
    counting = asyncio.create_task(count_turns())
    rights.become("a", "b", revision=4)
    deliveries = await asyncio.gather(*(each.next_delivery([]) for each in feeds))
    counting.cancel()
    assert [sent(delivery) for delivery in deliveries] == [["ADDED b@3"]] * 5
    assert len(set(looked_at)) == 5


async def test_what_happened_since_rights_changed_comes_behind_all_that_they_show(
    store: Store, feed: FilteredFeed, rights: Rights
) -> None:
    """Also events that did not concern the client when they were committed, before the change was known."""
    await write(store, "a", "c")
    await begin(feed, store)
    await write(store, "b", "c", "a", "c")
    rights.become("a", "c", revision=4)
    assert await next_frames(feed) == ["ADDED c@3", "MODIFIED c@5", "MODIFIED a@6", "MODIFIED c@7"]


async def test_rights_that_change_between_pages_of_history_are_a_410(
    store: Store, feed: FilteredFeed, rights: Rights
) -> None:
    await write(store, "a", "b", "a")
    await feed.resume(2)
    events = await store.storage.history(store.prefix, after=2)
    assert [data for _, data in await feed.history(events)] == [b"ADDED b@3", b"MODIFIED a@4"]
    assert list(await feed.history([])) == []
    rights.become("a", revision=5)
    with pytest.raises(APIError) as raised:
        await feed.history([])
    assert raised.value.code == 410


async def test_a_version_yet_to_come_is_waited_for(store: Store, feed: FilteredFeed) -> None:
    await write(store, "a")
    await feed.resume(4)
    feed.begun(4)
    await write(store, "b", "a", "a")
    assert await next_frames(feed) == ["MODIFIED a@5"]


async def test_what_a_client_has_seen_at_another_replica_counts_as_sent(store: Store, feed: FilteredFeed) -> None:
    """A replica that lags behind lacks an object that its client got from another one."""
    await write(store, "a")
    await feed.resume(4)
    assert list(await feed.history([])) == []
    feed.begun(4)
    await write(store, "b")
    assert await next_frames(feed) == []
    await write(store, "c", "a", "b")
    assert await next_frames(feed) == ["MODIFIED a@5", "MODIFIED b@6"]
    await remove(store, "b")
    assert await next_frames(feed) == ["DELETED b@7"]


async def test_a_change_of_rights_that_a_client_has_seen_at_another_replica_is_not_sent_again(
    store: Store, feed: FilteredFeed, rights: Rights
) -> None:
    await write(store, "a", "c")
    await feed.resume(5)
    feed.begun(5)
    rights.become("b", "c", revision=4)
    await write(store, "b", "b")
    assert await next_frames(feed) == []
    await write(store, "a", "c")
    assert await next_frames(feed) == ["MODIFIED c@7"]


async def test_a_change_of_rights_after_what_a_client_has_seen_at_another_replica_is_a_410(
    store: Store, feed: FilteredFeed, rights: Rights
) -> None:
    await feed.resume(2)
    feed.begun(2)
    await write(store, "a", "b")
    rights.become("a", revision=3)
    with pytest.raises(APIError) as raised:
        await next_frames(feed)
    assert raised.value.code == 410


async def test_history_that_arrives_while_a_version_is_waited_for_is_sent(store: Store, feed: FilteredFeed) -> None:
    await feed.resume(3)
    await write(store, "a", "b", "b")
    events = await store.storage.history(store.prefix, after=3)
    assert [data for _, data in await feed.history(events)] == [b"MODIFIED b@4"]


async def test_rights_that_cannot_be_known_are_an_error_for_the_client(
    store: Store, feed: FilteredFeed, rights: Rights
) -> None:
    await begin(feed, store)
    rights.error = StorageUnavailable("the disk is full")
    for asked in (feed.next_delivery([]), feed.resume(1), begin(feed, store), list_objects(store, options(rights))):
        with pytest.raises(APIError) as raised:
            await asked
        assert raised.value.code == 503


async def test_objects_that_cannot_be_read_are_an_error_for_the_client(
    store: Store, feed: FilteredFeed, rights: Rights
) -> None:
    await write(store, "a", "b", "a")
    await begin(feed, store)
    rights.become("b", revision=5)
    await store.storage.close()
    with pytest.raises(APIError) as raised:
        await feed.next_delivery([])
    assert raised.value.code == 503


async def test_a_list_waits_for_rights_as_well(store: Store, rights: Rights) -> None:
    await write(store, "a", "b", "c")
    rights.known.clear()
    listing = asyncio.create_task(list_objects(store, options(rights)))
    await settle()
    rights.become("c", revision=4)
    rights.known.set()
    assert [kv.key[-1] for kv in (await listing).items] == ["c"]
    rights.now = None
    assert len((await list_objects(store, options(rights))).items) == 3


async def test_a_feed_that_left_collects_nothing_more(
    store: Store, broadcaster: Broadcaster, feed: FilteredFeed, rights: Rights
) -> None:
    await begin(feed, store)
    assert broadcaster.watchers == 1
    feed.leave()
    assert (broadcaster.watchers, rights._listeners) == (0, [])
    rights.become("c", revision=3)
    assert feed.watcher.ended


async def test_a_closed_broadcaster_ends_filtered_watches_at_once(broadcaster: Broadcaster, rights: Rights) -> None:
    broadcaster.end_all()
    late = FilteredFeed(broadcaster, options=options(rights), encode=encode, on_overflow=lambda: None)
    assert late.watcher.ended
    late.leave()


async def test_an_unfiltered_feed_needs_the_right_to_see_everything_since_its_revision(
    broadcaster: Broadcaster, rights: Rights
) -> None:
    def unfiltered(visible: ObjectFilter) -> UnfilteredFeed:
        return UnfilteredFeed(
            broadcaster, options=options(visible), encode=encode, representation="plain", on_overflow=lambda: None
        )

    assert unfiltered(rights).watcher.ended
    rights.now, rights.granted_at = None, 5
    feed = unfiltered(rights)
    assert not feed.watcher.ended
    await feed.resume(5)
    with pytest.raises(APIError) as raised:
        await feed.resume(4)
    assert raised.value.code == 410
    assert not unfiltered(EVERYTHING).watcher.ended
    await EVERYTHING.caught_up(1)
