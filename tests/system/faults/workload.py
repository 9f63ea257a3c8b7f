"""The load: eight writers, some readers and some watchers at a time, for as long as something else goes on.

They work on clusters, and on Leases that have the same names in each of three namespaces. One of these is deleted and
created again all the time, with whatever is in it.

Given the addresses of one or more replicas. All choices come from a seed; how they fall together in time does not.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TypeVar

from tests.system.faults.clients import Client, Lifecycle, Reader, Watcher, Writer, collections_of
from tests.system.faults.connections import PATIENCE, Target
from tests.system.faults.records import (
    LEASES,
    NAMESPACES,
    Action,
    Intent,
    Operation,
    Record,
    Selection,
    Version,
    WatchRecord,
    is_in,
)
from tests.system.faults.resources import RESOURCES

NAMES = ("alder", "birch", "cedar", "dogwood", "elm", "fir", "ginkgo", "hazel")
PASSING = "amber"
LASTING = ("green", "red")
KEYS = NAMES + tuple(f"{LEASES}/{namespace}/{name}" for namespace in (PASSING, *LASTING) for name in NAMES[:3])
COLLECTIONS = (*collections_of(KEYS), NAMESPACES)
SENTINEL = "sentinel"
CATCH_UP_SECONDS = 60.0
REREAD_REVISIONS = 50_000
"""How far back the whole history is read again at the end: well within what a store keeps."""

T = TypeVar("T")


class StalledError(AssertionError):
    """A watcher did not get its events, or no replica answered any more; the record has it too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How many do what."""

    writers: int = 8
    readers: int = 2
    watchers: int = 2
    """Of all clusters. There is one more of each other collection."""
    selective_watchers: int = 1
    """Of clusters, and of Leases in all namespaces."""


class Workload:
    """Use it as ``async with workload.running():``; the record is complete after that.

    After an error it ends there, and can still be checked: late events are then no violation.
    """

    def __init__(
        self, targets: Sequence[Target], *, seed: int, size: Size | None = None, patience: float = PATIENCE
    ) -> None:
        self._targets, self._seed, self._size = list(targets), seed, size or Size()
        self._patience = patience
        self._operations: list[Operation] = []
        self._clients: list[Client] = []
        self._watchers: list[Watcher] = []
        self._observer = self._client("observer")
        self._notes: list[tuple[float, str]] = []
        self._troubles: list[str] = []
        self._start, self._end = 0, 0
        self._initial: dict[str, Version] = {}

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Works while the block runs, then stops, and has all watchers come to the end. Raises StalledError."""
        stopping = asyncio.Event()
        try:
            await self._look_around()
            async with asyncio.TaskGroup() as group:
                watches = self._begin_watches(group)
                working = self._begin_work(group, stopping)
                yield
                stopping.set()
                await asyncio.wait(working)
                watches += await self._finish(group)
                for watch in watches:
                    watch.cancel()
        finally:
            for client in self._clients:
                client.close()

    async def checkpoint(self) -> None:
        """Lists everything, for the check to compare with what was known, and waits for all watchers to have it."""
        _, listed = await self._in_time(self._list(), "a list")
        await self._watchers_reach(listed)

    @property
    def operations(self) -> int:
        """How many were done so far."""
        return len(self._operations)

    @property
    def events(self) -> int:
        """How many events all watchers together got so far, bookmarks included."""
        return sum(len(watcher.record.sights) for watcher in self._watchers)

    def note(self, text: str) -> None:
        """Keeps in the record what happens now."""
        self._notes.append((time.monotonic(), text))

    def record(self) -> Record:
        """All that was done and seen."""
        return Record(
            start=self._start,
            initial=self._initial,
            operations=self._operations,
            watches=[watcher.record for watcher in self._watchers],
            end=self._end,
            notes=self._notes,
            troubles=self._troubles,
        )

    async def _look_around(self) -> None:
        settler = Client("settler", self._targets, operations=[], patience=self._patience)  # before the record begins
        for namespace in (PASSING, *LASTING):
            await self._lifecycle(settler, namespace).create(asyncio.Event())
        settler.close()
        self._start, self._initial = await self._list()

    async def _list(self) -> tuple[int, dict[str, Version]]:
        """All objects of all resources, and the revision that all of them are at least of."""
        revision, listed = 0, dict[str, Version]()
        for resource in RESOURCES:
            intent = Intent(action=Action.LIST, collection=resource.collection)
            outcome = await self._observer.perform_until_ok(intent)
            revision = max(revision, outcome.revision)
            listed.update(outcome.items or {})
        return revision, listed

    def _begin_watches(self, group: asyncio.TaskGroup) -> list[asyncio.Task[None]]:
        start, records = self._start, list[WatchRecord]()
        for collection in COLLECTIONS:
            for number in range(1 if collection else self._size.watchers):
                name = _watcher("watcher", number, collection)
                records.append(WatchRecord(name=name, start=start, collection=collection))
        for collection in ("", LEASES):
            for number in range(self._size.selective_watchers):
                name, some = _watcher("selective-watcher", number, collection), Selection.PATCHED
                records.append(WatchRecord(name=name, start=start, selection=some, collection=collection))
        return [self._begin_watch(group, record) for record in records]

    def _begin_watch(self, group: asyncio.TaskGroup, record: WatchRecord) -> asyncio.Task[None]:
        shifted, rng = self._shifted(len(self._watchers)), self._rng(record.name)
        watcher = Watcher(record, shifted, rng=rng, patience=self._patience)
        self._watchers.append(watcher)
        return group.create_task(watcher.work())

    def _begin_work(self, group: asyncio.TaskGroup, stopping: asyncio.Event) -> list[asyncio.Task[None]]:
        known = dict(self._initial)
        workers: list[Writer | Reader | Lifecycle] = [self._lifecycle(self._client("lifecycle"), PASSING)]
        for number in range(self._size.writers):
            name = f"writer-{number}"
            client, elsewhere = self._client(name, shift=number), self._client(f"{name} elsewhere", shift=number + 1)
            workers.append(Writer(client, elsewhere=elsewhere, keys=KEYS, known=known, rng=self._rng(name)))
        for number in range(self._size.readers):
            name = f"reader-{number}"
            workers.append(Reader(self._client(name, shift=number), keys=KEYS, rng=self._rng(name)))
        return [group.create_task(worker.work(stopping)) for worker in workers]

    async def _finish(self, group: asyncio.TaskGroup) -> list[asyncio.Task[None]]:
        """Makes last changes that every watcher must get, and has more watchers read the past again."""
        await self.checkpoint()
        passing = self._lifecycle(self._client("last-lifecycle"), PASSING)
        await self._in_time(passing.end(), "the end of a namespace")
        await self._in_time(passing.create(asyncio.Event()), "a create of a namespace")
        last: dict[str, Version] = {}
        for collection in COLLECTIONS:
            if collection != LEASES:  # its namespaces have one each
                key, version = await self._in_time(self._last_change(collection), "a create and a patch")
                last[key] = version
        self._end = min(version.revision for version in last.values())
        late = max(self._start, self._end - REREAD_REVISIONS)
        records = [
            WatchRecord(name=_watcher("late-watcher", None, each), start=late, collection=each) for each in COLLECTIONS
        ]
        tasks = [self._begin_watch(group, record) for record in records]
        await self._watchers_reach(last)
        return tasks

    async def _last_change(self, collection: str) -> tuple[str, Version]:
        """A patch of a new object, which enters every selection; each attempt has a name and a token of its own."""
        attempt = 0
        while True:
            attempt += 1
            name = f"{SENTINEL}-{attempt}"
            key = f"{collection}/{name}" if collection else name
            token = f"{key.replace('/', '.')}-{self._seed}"
            await self._observer.perform(Intent(action=Action.CREATE, key=key, token=token))
            outcome = await self._observer.perform(Intent(action=Action.PATCH, key=key, token=f"{token}-patched"))
            if outcome.version:
                return key, outcome.version

    async def _in_time(self, work: Awaitable[T], what: str) -> T:
        try:
            async with asyncio.timeout(CATCH_UP_SECONDS):
                return await work
        except TimeoutError as error:
            trouble = f"no replica did {what} within {CATCH_UP_SECONDS:g} s"
            self._troubles.append(trouble)
            raise StalledError(trouble) from error

    async def _watchers_reach(self, versions: Mapping[str, Version]) -> None:
        """Waits until all watchers got those of their collections and selections.

        Revisions without such an object, such as that of the list itself, have no event for them.
        """
        for watcher in self._watchers:
            selection, collection = watcher.record.selection, watcher.record.collection
            concerned = (
                version.revision
                for key, version in versions.items()
                if is_in(key, collection) and selection.has(version.value)
            )
            await self._watcher_reaches(watcher, max(concerned, default=0))

    async def _watcher_reaches(self, watcher: Watcher, revision: int) -> None:
        """However long that takes, as long as it gets on."""
        last = -1
        while watcher.last < revision:
            if watcher.last == last:
                trouble = f"it had not got revision {revision} after {CATCH_UP_SECONDS:g} s"
                watcher.record.troubles.append(trouble)
                raise StalledError(f"{watcher.record.name}: {trouble}")
            last = watcher.last
            with suppress(TimeoutError):
                async with asyncio.timeout(CATCH_UP_SECONDS):
                    await watcher.reach(revision)

    def _lifecycle(self, client: Client, namespace: str) -> Lifecycle:
        return Lifecycle(client, key=f"{NAMESPACES}/{namespace}", rng=self._rng(f"{client.name} {namespace}"))

    def _client(self, name: str, *, shift: int = 0) -> Client:
        client = Client(name, self._shifted(shift), operations=self._operations, patience=self._patience)
        self._clients.append(client)
        return client

    def _shifted(self, number: int) -> list[Target]:
        """The replicas in turn, so that the clients spread over them."""
        number %= len(self._targets)
        return self._targets[number:] + self._targets[:number]

    def _rng(self, name: str) -> random.Random:
        return random.Random(f"{self._seed} {name}")


def _watcher(name: str, number: int | None, collection: str) -> str:
    """The name of a watcher: those of clusters have no addition."""
    numbered = name if number is None else f"{name}-{number}"
    return f"{numbered} of {collection}" if collection else numbered
