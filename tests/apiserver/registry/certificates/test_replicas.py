"""Several servers on one storage sign each request once, and remove each old one."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from clusterregistry.apiserver.registry.certificates.cleaner import Cleaner
from clusterregistry.apiserver.registry.certificates.signer import run_signer
from tests.api.certificates.signing_requests import signing_request
from tests.apiserver.registry.certificates.request_store import Requests, own_authority, requests_over
from tests.apiserver.storage.engines import SHARED, SharedEngine, settled
from tests.apiserver.storage.etcd_engine import eventually

DAY = 86400


@pytest.fixture(params=SHARED)
async def engine(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[SharedEngine]:
    engine = SHARED[request.param](tmp_path)
    yield engine
    await engine.close()


def signed(requests: Requests, names: list[str]) -> bool:
    found = [requests.store.storage.get_stale(requests.store.prefix + name) for name in names]
    return all(kv is not None and b'"certificate"' in kv.value for kv in found)


async def test_each_request_is_signed_once_and_removed_once(engine: SharedEngine, tmp_path: Path) -> None:
    authority = own_authority(tmp_path, now=time.time())
    stores = [await engine.open(), await engine.open_second()]
    names = [f"a{number}" for number in range(5)]
    async with AsyncExitStack() as stack:
        replicas = [await stack.enter_async_context(requests_over(store)) for store in stores]
        for each in replicas:
            await stack.enter_async_context(run_signer(each.writer, authority))
        before = await settled(stores[0])
        for number, name in enumerate(names):
            one, other = replicas[number % 2], replicas[1 - number % 2]
            await one.create(signing_request(name))
            await other.decide(name)
        for each in replicas:
            await eventually(lambda each=each: signed(each, names), seconds=60.0)  # type: ignore[misc]
        # Each was created, approved and signed.
        assert await settled(stores[0]) - before == 3 * len(names)
        later = time.time() + 2 * DAY
        for each in replicas:
            await Cleaner(each.store, clock=lambda: later).clean_up()
        await settled(stores[0])
        for each in replicas:
            await eventually(lambda each=each: each.store.count() == 0, seconds=60.0)  # type: ignore[misc]
