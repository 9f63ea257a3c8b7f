"""A real etcd with one member per test module, and stores in it under a prefix per test."""

from collections.abc import AsyncIterator, Iterator
from itertools import count

import pytest

from clusterregistry.apiserver.storage.etcd.store import EtcdStorage
from tests.apiserver.storage.etcd_engine import settings_for
from tests.apiserver.storage.etcd_servers import EtcdCluster

_numbers = count()


@pytest.fixture(scope="module")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdCluster]:
    with EtcdCluster(tmp_path_factory.mktemp("etcd")) as etcd:
        yield etcd


@pytest.fixture
def prefix() -> str:
    return f"/registry/{next(_numbers)}"


@pytest.fixture
async def store(
    etcd: EtcdCluster,
    prefix: str,
    no_writer_lease: None,  # noqa: ARG001 - tests count revisions
) -> AsyncIterator[EtcdStorage]:
    storage = await EtcdStorage.open(settings_for(etcd, prefix=prefix))
    yield storage
    await storage.close()


@pytest.fixture
async def second(
    etcd: EtcdCluster,
    prefix: str,
    no_writer_lease: None,  # noqa: ARG001 - as above
) -> AsyncIterator[EtcdStorage]:
    """The same store, opened by another replica."""
    storage = await EtcdStorage.open(settings_for(etcd, prefix=prefix))
    yield storage
    await storage.close()
