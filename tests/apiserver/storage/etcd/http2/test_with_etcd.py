"""Our HTTP/2 with a real etcd: more calls and larger bodies than it takes at a time, with TLS and without."""

import asyncio
from collections.abc import Iterator
from itertools import count

import pytest

from clusterregistry.apiserver.storage.etcd.store import EtcdStorage
from tests.apiserver.storage.engines import settled
from tests.apiserver.storage.etcd_engine import settings_for
from tests.apiserver.storage.etcd_servers import NEEDS_ETCD, EtcdCluster, Settings

pytestmark = NEEDS_ETCD

SIZE = 300_000
"""Bytes: several windows."""

LARGE, SMALL = 30, 300
"""Calls: with TLS, where Go's own HTTP/2 answers, etcd takes no more than 250 at a time."""

_numbers = count()


@pytest.fixture(scope="module", params=[False, True], ids=["plain", "TLS"])
def etcd(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdCluster]:
    with EtcdCluster(tmp_path_factory.mktemp("etcd"), Settings(tls=request.param)) as etcd:
        yield etcd


async def test_many_large_calls_at_once_have_their_turn(etcd: EtcdCluster) -> None:
    store = await EtcdStorage.open(settings_for(etcd, prefix=f"/{next(_numbers)}"))
    received: list[bytes] = []
    store.subscribe("/", lambda events: received.extend(event.current.value for event in events if event.current))
    values = [bytes([number]) * SIZE for number in range(LARGE)] + [b"%d" % number for number in range(SMALL)]
    revisions = await asyncio.gather(*(store.create(f"/{n:03}", value) for n, value in enumerate(values)))
    assert len(set(revisions)) == LARGE + SMALL
    items = await asyncio.gather(*(store.get(f"/{n:03}") for n in range(LARGE + SMALL)))
    assert [item and item.value for item in items] == values
    assert [item.value for item in (await store.list("/")).items] == values
    await settled(store)
    assert sorted(received) == sorted(values)
    await store.close()
