"""What a test records to compare a store with: the writes it made, and the events it received."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Iterable, Sequence

from clusterregistry.apiserver.storage.errors import RevisionCompacted
from clusterregistry.apiserver.storage.interface import Event, KeyValue, Page, Storage, Subscription


class Chronicle:
    """Writes to stores, one write at a time, and records the states and events that they must return afterwards."""

    def __init__(self, start: int) -> None:
        self.start = start
        self.events: list[Event] = []
        self._now: dict[str, KeyValue] = {}
        self._states: dict[int, dict[str, KeyValue]] = {start: {}}

    @classmethod
    async def of(cls, store: Storage) -> Chronicle:
        """For an empty store without other writers."""
        return cls(await store.current_revision())

    @property
    def revisions(self) -> list[int]:
        """The one before the first write, and that of each write."""
        return list(self._states)

    @property
    def last(self) -> int:
        return self.revisions[-1]

    async def put(self, store: Storage, key: str, value: bytes = b"") -> int:
        """Creates a key, or changes it."""
        before = self._now.get(key)
        if before is None:
            revision = await store.create(key, value)
        else:
            revision = await store.update(key, value, expected=before.revision)
        self._note(key, revision, KeyValue(key, value, revision))
        return revision

    async def delete(self, store: Storage, key: str) -> int:
        revision = await store.delete(key, expected=self._now[key].revision)
        self._note(key, revision, None)
        return revision

    async def scribble(self, *stores: Storage, writes: int, chance: random.Random) -> None:
        """Makes writes of every kind to a few keys, each through one of the stores."""
        for turn in range(writes):
            key, store = f"/{chance.choice('ab')}/{chance.randrange(6)}", chance.choice(stores)
            if key in self._now and chance.random() < 0.4:
                await self.delete(store, key)
            else:
                await self.put(store, key, b"%d" % turn)

    def state(self, revision: int, prefix: str = "/") -> list[KeyValue]:
        """The keys with a prefix at one of the revisions, in their order."""
        found = self._states[revision]
        return [found[key] for key in sorted(found) if key.startswith(prefix)]

    def page(self, revision: int, *, prefix: str, after: str, limit: int) -> Page:
        """What a list must give."""
        behind = [item for item in self.state(revision, prefix) if item.key > after]
        items = behind[: limit or None]
        return Page(items, revision, len(behind) - len(items))

    def history(self, *, after: int, prefix: str = "/") -> list[Event]:
        return [event for event in self.events if event.revision > after and event.key.startswith(prefix)]

    def histories(self, revisions: Sequence[int], *, prefix: str = "/") -> list[list[Event]]:
        """What ``histories`` must give."""
        return [self.history(after=revision, prefix=prefix) for revision in revisions]

    def _note(self, key: str, revision: int, current: KeyValue | None) -> None:
        self.events.append(Event(key, revision, current, self._now.pop(key, None)))
        if current is not None:
            self._now[key] = current
        self._states[revision] = dict(self._now)


class Watch:
    """A watch from a revision, put together as a server does: subscribe, read the past, skip what came twice."""

    def __init__(self) -> None:
        self._after = 0
        self._past: list[Event] = []
        self._live: list[Event] = []

    async def start(self, store: Storage, *, after: int, prefix: str = "/") -> Subscription:
        self._after = after
        subscription = store.subscribe(prefix, self._live.extend)
        self._past.extend(await store.history(prefix, after=after))
        return subscription

    @property
    def events(self) -> Sequence[Event]:
        """What it has seen so far. What came twice as a live event stays twice: that would be the store's fault."""
        last = self._past[-1].revision if self._past else self._after
        return [*self._past, *(event for event in self._live if event.revision > last)]

    @property
    def revisions(self) -> list[int]:
        return [event.revision for event in self.events]


async def histories(store: Storage, revisions: Sequence[int], *, prefix: str = "/") -> list[list[Event]]:
    """The history behind each of the revisions; asked for at once, since an engine may take its time for each."""
    found = await asyncio.gather(*(store.history(prefix, after=revision) for revision in revisions))
    return [list(events) for events in found]


async def refusals(reads: Iterable[Awaitable[object]]) -> list[tuple[int, int]]:
    """The requested revision and the oldest one kept, as each of some reads of compacted revisions reports them."""
    outcomes = await asyncio.gather(*reads, return_exceptions=True)
    assert {type(outcome) for outcome in outcomes} == {RevisionCompacted}
    return [(each.requested, each.compacted) for each in outcomes if isinstance(each, RevisionCompacted)]


def keys(page: Page) -> list[str]:
    return [item.key for item in page.items]


async def fill(store: Storage, *names: str) -> list[int]:
    """Creates keys, each with its name as the value; returns their revisions."""
    return [await store.create(name, name.encode()) for name in names]
