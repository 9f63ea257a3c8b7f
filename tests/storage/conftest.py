from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from clusterregistry.storage.interface import Storage
from clusterregistry.storage.sqlite import SQLiteStorage
from tests.storage.engines import ENGINES, Engine


@pytest.fixture(params=ENGINES)
async def engine(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Engine]:
    engine = ENGINES[request.param](tmp_path)
    yield engine
    await engine.close()


@pytest.fixture
async def store(engine: Engine) -> Storage:
    return await engine.open()


@pytest.fixture
async def sqlite(tmp_path: Path) -> AsyncIterator[SQLiteStorage]:
    storage = await SQLiteStorage.open(tmp_path / "registry.db")
    yield storage
    await storage.close()
