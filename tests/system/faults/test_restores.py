"""A snapshot restored under replicas at work: what is lost is lost for all of them, and then they keep their word.

``tests/apiserver/storage/etcd/test_restored_etcd.py`` has the particulars.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from pathlib import Path

import pytest

from tests.apiserver.api.objects import CLUSTERS, names
from tests.apiserver.storage.etcd_servers import NEEDS_RESTORE
from tests.system.faults.connections import Connection, LostError, Target, UnreachableError
from tests.system.faults.records import LEASES
from tests.system.faults.resources import collection_path
from tests.system.faults.sites import Site
from tests.system.faults.verdict import check
from tests.system.faults.workload import LASTING, PASSING, Workload

SECONDS = 4.0
IN_TIME = 60.0


@NEEDS_RESTORE
@pytest.mark.timeout(300)
async def test_replicas_keep_their_word_on_an_etcd_that_was_turned_back(tmp_path: Path) -> None:
    site = Site(tmp_path)
    async with site.running():
        await work(site, seed=1)
        await site.save(tmp_path / "snapshot")
        saved = await site.keys()
        await site.scribble("foreign", "garbage")
        await work(site, seed=2)
        await site.restore(tmp_path / "snapshot")
        await agree(site, saved)
        # All answers from now on must fit together: nothing that was lost may come back.
        await work(site, seed=3)
    assert site.tracebacks() == []


async def work(site: Site, *, seed: int) -> None:
    """A moment of reads, writes and watches, all of which must fit together."""
    connection = await Connection.open(site.targets()[0])
    # What the watchers of an earlier workload waited for would be there already.
    for path in (CLUSTERS, *(collection_path(f"{LEASES}/{namespace}") for namespace in (PASSING, *LASTING))):
        assert (await connection.exchange("DELETE", path)).status == 200
    connection.close()
    workload = Workload(site.targets(), seed=seed)
    async with workload.running():
        await asyncio.sleep(SECONDS)
        await workload.checkpoint()
    verdict = check(workload.record(), sole_writer=False)
    assert verdict.violations == [], verdict.report()
    assert verdict.acknowledged > 0


async def agree(site: Site, expected: list[str]) -> None:
    """Returns when every replica shows what the etcd has."""
    async with asyncio.timeout(IN_TIME):
        for target in site.targets():
            while await listed(target) != expected:  # noqa: ASYNC110 - it is about another process
                await asyncio.sleep(0.1)
    assert await site.keys() == expected


async def listed(target: Target) -> list[str] | None:
    """The names that a replica shows; None when it does not answer now."""
    with suppress(LostError, UnreachableError):
        connection = await Connection.open(target)
        try:
            answer = await connection.exchange("GET", CLUSTERS)
        finally:
            connection.close()
        return names(json.loads(answer.body)) if answer.status == 200 else None
    return None
