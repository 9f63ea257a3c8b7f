"""Rights on sets at one replica, right after another one has changed labels, sets or rights."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.apiserver.api.clients import NOBODY
from tests.apiserver.api.group_objects import SETS, TEAM, cluster_set, give, on_sets, team_set
from tests.apiserver.api.in_process import InProcess, InProcessClient
from tests.apiserver.api.objects import CLUSTERS, cluster, names, path_of
from tests.apiserver.storage.etcd_engine import SERVER
from tests.apiserver.storage.etcd_servers import NEEDS_ETCD

pytestmark = NEEDS_ETCD

ROUNDS = 15

_prefixes = itertools.count()


@pytest.fixture
def replicas(tmp_path: Path) -> Iterator[list[InProcessClient]]:
    etcd = asyncio.run(SERVER.fresh())
    flags = [f"--etcd-servers={etcd.endpoints[0]}", f"--etcd-prefix=/registry/group-replicas-{next(_prefixes)}"]
    with ExitStack() as stack:
        yield [stack.enter_context(InProcess(tmp_path / name, *flags).running()).client() for name in "ab"]


def test_what_one_replica_was_told_counts_at_the_other(replicas: list[InProcessClient]) -> None:
    """An object is decided on as it is stored, and lists have the sets and rights of their revision."""
    choose = random.Random(1)
    first, _ = replicas
    first.post(SETS, team_set("red")).expect(201)
    first.post(CLUSTERS, cluster("a")).expect(201)
    give(first, "nobody", on_sets("get", "list", "patch", "delete", names=["red"]))
    for replica in replicas:  # each has seen the role
        assert names(replica.get(CLUSTERS, headers=NOBODY).expect(200)) == []
    for _ in range(ROUNDS):
        writer, other = choose.sample(replicas, 2)
        team = choose.choice(["red", "blue"])
        writer.patch(path_of("a"), {"metadata": {"labels": {TEAM: team}}}).expect(200)
        status = 200 if team == "red" else 403
        assert other.get(path_of("a"), headers=NOBODY).status == status
        change = {"metadata": {"annotations": {"x": str(choose.random())}}}
        assert other.patch(path_of("a"), change, headers=NOBODY).status == status
        assert other.delete(path_of("a"), headers=NOBODY, dryRun="All").status == status
        made = choose.choice([team_set("red"), cluster_set("red"), cluster_set("red", clusters=["a"])])
        writer.put(f"{SETS}/red", made).expect(200)
        is_member = "clusters" in made["spec"] or ("selector" in made["spec"] and team == "red")
        assert names(other.get(CLUSTERS, headers=NOBODY).expect(200)) == (["a"] if is_member else [])
        writer.put(f"{SETS}/red", team_set("red")).expect(200)
        assert names(other.get(CLUSTERS, headers=NOBODY).expect(200)) == (["a"] if team == "red" else [])
