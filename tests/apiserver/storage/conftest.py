"""Stores for tests: any engine's, fresh and empty, and closed afterwards."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import uvloop

from clusterregistry.apiserver.storage.interface import Storage
from clusterregistry.apiserver.storage.sqlite import SQLiteStorage
from clusterregistry.apiserver.storage.subscriptions import RevisionWaiter
from tests.apiserver.storage.engines import ENGINES, SHARED, SOLE_WRITERS, Engine, SharedEngine


def pytest_asyncio_loop_factories(item: pytest.Item) -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """The errors of a failed handshake depend on the event loop: they are tested on that of the server."""
    if item.path.stem == "test_access":
        return {"uvloop": uvloop.new_event_loop}
    return {"asyncio": asyncio.new_event_loop}


@pytest.fixture
def impatient_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Writes that a frozen etcd never answers are given up sooner: such tests wait for the end of each."""
    monkeypatch.setattr("clusterregistry.apiserver.storage.etcd.writer._WRITE_SECONDS", 2.0)


@pytest.fixture
def no_writer_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    """A store on etcd does not acquire the writer lease: that is a revision more, at any time on a busy machine."""
    monkeypatch.setattr("clusterregistry.apiserver.storage.etcd.writer_lease._FIRST_DELAY", 600.0)


@pytest.fixture(params=ENGINES)
async def engine(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    no_writer_lease: None,  # noqa: ARG001 - tests count revisions
) -> AsyncIterator[Engine]:
    engine = ENGINES[request.param](tmp_path)
    yield engine
    await engine.close()


@pytest.fixture
async def store(engine: Engine) -> Storage:
    return await engine.open()


@pytest.fixture(params=SOLE_WRITERS)
async def sole_store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Storage]:
    """A store without other writers: for what the interface promises of ``sole_writer`` alone."""
    engine = SOLE_WRITERS[request.param](tmp_path)
    yield await engine.open()
    await engine.close()


@pytest.fixture(params=SHARED)
async def shared_engine(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[SharedEngine]:
    engine = SHARED[request.param](tmp_path)
    yield engine
    await engine.close()


@pytest.fixture
async def pair(shared_engine: SharedEngine) -> tuple[Storage, Storage]:
    """One store, opened twice."""
    return await shared_engine.open(), await shared_engine.open_second()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has a store wait for a revision not for seconds, but only for a moment."""
    reach = RevisionWaiter.reach

    async def reach_soon(seen: RevisionWaiter, revision: int, *, seconds: float) -> None:
        await reach(seen, revision, seconds=min(seconds, 0.5))

    monkeypatch.setattr(RevisionWaiter, "reach", reach_soon)


@pytest.fixture
async def sqlite(tmp_path: Path) -> AsyncIterator[SQLiteStorage]:
    storage = await SQLiteStorage.open(tmp_path / "registry.db")
    yield storage
    await storage.close()
