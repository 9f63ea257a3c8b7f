"""The load: eight writers, some readers and some watchers at a time, for as long as something else goes on.

Given the addresses of one or more replicas. All choices come from a seed; how they fall together in time does not.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TypeVar

from tests.system.faults.clients import Client, Reader, Watcher, Writer
from tests.system.faults.connections import PATIENCE, Target
from tests.system.faults.records import Action, Intent, Operation, Record, Selection, Version, WatchRecord

KEYS = ("alder", "birch", "cedar", "dogwood", "elm", "fir", "ginkgo", "hazel")
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
    """Of everything."""
    selective_watchers: int = 1


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
        listed = await self._in_time(self._observer.perform_until_ok(Intent(action=Action.LIST)), "a list")
        await self._watchers_reach((listed.items or {}).values())

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
        listed = await self._observer.perform_until_ok(Intent(action=Action.LIST))
        self._start, self._initial = listed.revision, dict(listed.items or {})

    def _begin_watches(self, group: asyncio.TaskGroup) -> list[asyncio.Task[None]]:
        of_all = [WatchRecord(name=f"watcher-{n}", start=self._start) for n in range(self._size.watchers)]
        of_some = [
            WatchRecord(name=f"selective-watcher-{n}", start=self._start, selection=Selection.PATCHED)
            for n in range(self._size.selective_watchers)
        ]
        return [self._begin_watch(group, record) for record in (*of_all, *of_some)]

    def _begin_watch(self, group: asyncio.TaskGroup, record: WatchRecord) -> asyncio.Task[None]:
        shifted, rng = self._shifted(len(self._watchers)), self._rng(record.name)
        watcher = Watcher(record, shifted, rng=rng, patience=self._patience)
        self._watchers.append(watcher)
        return group.create_task(watcher.work())

    def _begin_work(self, group: asyncio.TaskGroup, stopping: asyncio.Event) -> list[asyncio.Task[None]]:
        known = dict(self._initial)
        workers: list[Writer | Reader] = []
        for number in range(self._size.writers):
            name = f"writer-{number}"
            client, elsewhere = self._client(name, shift=number), self._client(f"{name} elsewhere", shift=number + 1)
            workers.append(Writer(client, elsewhere=elsewhere, keys=KEYS, known=known, rng=self._rng(name)))
        for number in range(self._size.readers):
            name = f"reader-{number}"
            workers.append(Reader(self._client(name, shift=number), keys=KEYS, rng=self._rng(name)))
        return [group.create_task(worker.work(stopping)) for worker in workers]

    async def _finish(self, group: asyncio.TaskGroup) -> list[asyncio.Task[None]]:
        """Makes one last change that every watcher must get, and has one more watcher read the past again."""
        await self.checkpoint()
        last = await self._in_time(self._last_change(), "a create and a patch")
        self._end = last.revision
        late = WatchRecord(name="late-watcher", start=max(self._start, self._end - REREAD_REVISIONS))
        task = self._begin_watch(group, late)
        await self._watchers_reach([last])
        return [task]

    async def _last_change(self) -> Version:
        """A patch of a new object, which enters every selection; each attempt has a name and a token of its own."""
        attempt = 0
        while True:
            attempt += 1
            name = f"{SENTINEL}-{attempt}"
            await self._observer.perform(Intent(action=Action.CREATE, key=name, token=name))
            outcome = await self._observer.perform(Intent(action=Action.PATCH, key=name, token=f"{name}-patched"))
            if outcome.version:
                return outcome.version

    async def _in_time(self, work: Awaitable[T], what: str) -> T:
        try:
            async with asyncio.timeout(CATCH_UP_SECONDS):
                return await work
        except TimeoutError as error:
            trouble = f"no replica did {what} within {CATCH_UP_SECONDS:g} s"
            self._troubles.append(trouble)
            raise StalledError(trouble) from error

    async def _watchers_reach(self, versions: Iterable[Version]) -> None:
        """Waits until all watchers got those of their selections.

        Revisions without such a cluster, such as that of the list itself, have no event for them.
        """
        known = list(versions)
        for watcher in self._watchers:
            concerned = (version.revision for version in known if watcher.record.selection.has(version.value))
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
