"""The background compaction, with time that passes when the test says so."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from clusterregistry.apiserver.storage.compaction import Retention, keep_compacting
from clusterregistry.apiserver.storage.errors import RevisionCompacted, StorageUnavailable
from clusterregistry.apiserver.storage.sqlite import SQLiteStorage


class FakeClock:
    def __init__(self) -> None:
        self._now = 0.0
        self._asleep = asyncio.Event()
        self._wake: asyncio.Future[None] | None = None

    def now(self) -> float:
        return self._now

    async def sleep(self, seconds: float) -> None:
        self._wake = asyncio.get_running_loop().create_future()
        self._asleep.set()
        await self._wake
        self._now += seconds

    async def turn(self) -> None:
        """Lets one interval pass and what follows it happen."""
        await self._asleep.wait()
        self._asleep.clear()
        assert self._wake is not None
        self._wake.set_result(None)
        await self._asleep.wait()


@asynccontextmanager
async def compacting(storage: SQLiteStorage, **options: float) -> AsyncIterator[FakeClock]:
    clock = FakeClock()
    most = int(options.pop("most_revisions", 1000))
    task = asyncio.ensure_future(keep_compacting(storage, clock, most_revisions=most, **options))
    yield clock
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def oldest(storage: SQLiteStorage) -> int:
    try:
        await storage.history("/", after=-1)
    except RevisionCompacted as error:
        return error.compacted
    raise AssertionError("a negative revision is always compacted")


def test_a_store_that_went_back_is_observed_anew() -> None:
    """Restored from a backup, it must not be compacted to revisions that it has yet to come to."""
    retention = Retention(seconds=100, most_revisions=1000)
    retention.observe(500, now=0.0)
    assert retention.observe(600, now=100.0) == 500
    assert retention.observe(300, now=110.0) == 0
    assert retention.observe(320, now=200.0) == 0
    assert retention.observe(330, now=210.0) == 300


async def test_what_is_older_than_the_retention_is_compacted_and_nothing_younger(sqlite: SQLiteStorage) -> None:
    async with compacting(sqlite, interval=60, retention=180) as clock:
        found = []
        for n in range(6):
            await sqlite.create(f"/{n}", b"")
            await clock.turn()
            found.append(await oldest(sqlite))
    # At 180 s the revision that was current at 0 s goes, then that of 60 s, and so on.
    assert found == [0, 0, found[2], found[2] + 1, found[2] + 2, found[2] + 3]
    assert found[2] in {1, 2}


async def test_never_more_than_so_many_revisions_are_kept(sqlite: SQLiteStorage) -> None:
    async with compacting(sqlite, interval=60, retention=1e9, most_revisions=10) as clock:
        for n in range(25):
            await sqlite.create(f"/{n}", b"")
        await clock.turn()
        await clock.turn()
        assert await oldest(sqlite) == sqlite.revision - 10


async def test_a_compaction_that_fails_is_logged_and_made_up_for(
    sqlite: SQLiteStorage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    compact: Callable[[int], object] = sqlite.compact

    async def failing(_: int) -> None:
        raise StorageUnavailable("no space")

    monkeypatch.setattr(sqlite, "compact", failing)
    async with compacting(sqlite, interval=60, retention=60) as clock:
        await sqlite.create("/a", b"")
        await clock.turn()
        await clock.turn()
        assert "could not be compacted: no space" in caplog.text
        monkeypatch.setattr(sqlite, "compact", compact)
        await clock.turn()
        assert await oldest(sqlite) == 2


def test_nothing_is_compacted_before_the_retention_has_passed() -> None:
    policy = Retention(seconds=100, most_revisions=1000)
    assert [policy.observe(revision, now=now) for now, revision in [(0, 5), (99, 8)]] == [0, 0]
    assert policy.observe(9, now=100) == 5


def test_the_expired_revision_is_remembered_while_none_newer_expires() -> None:
    policy = Retention(seconds=100, most_revisions=1000)
    policy.observe(5, now=0)
    assert [policy.observe(9, now=now) for now in (100, 150, 199)] == [5, 5, 5]
    assert policy.observe(9, now=200) == 9


def test_without_retention_the_present_is_compacted_to() -> None:
    assert Retention(seconds=0, most_revisions=1000).observe(7, now=0) == 7
