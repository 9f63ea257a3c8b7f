"""A few crashes while sets change; ``make crash-test`` has more."""

from __future__ import annotations

from pathlib import Path

import pytest

from clusterregistry.registry.clusterset.membership import members_of
from tests.apiserver.storage.etcd_servers import NEEDS_ETCD, EtcdCluster
from tests.system.faults import set_run
from tests.system.faults.servers import Server

ROUNDS = 6
SEED = 21


@pytest.mark.timeout(900)
async def test_after_each_crash_the_members_of_all_sets_are_counted_right(tmp_path: Path) -> None:
    progress: list[str] = []
    outcome = await set_run.crash([Server(tmp_path)], rounds=ROUNDS, seed=SEED, say=progress.append)
    assert outcome.violations == [], "\n".join([*progress, outcome.report()])
    assert outcome.looks == ROUNDS
    # Enough happened for that to mean something.
    assert outcome.acknowledged > 10 * ROUNDS
    assert outcome.members > 10 * ROUNDS


@NEEDS_ETCD
@pytest.mark.timeout(900)
async def test_replicas_on_etcd_show_the_same_members_after_each_crash_of_one(tmp_path: Path) -> None:
    progress: list[str] = []
    with EtcdCluster(tmp_path) as etcd:
        flag = f"--etcd-servers={etcd.endpoints[0]}"
        servers = [Server(tmp_path / name, flag) for name in ("one", "other")]
        outcome = await set_run.crash(servers, rounds=ROUNDS, seed=SEED, say=progress.append)
    assert outcome.violations == [], "\n".join([*progress, outcome.report()])
    assert outcome.looks == 2 * ROUNDS
    assert outcome.acknowledged > 10 * ROUNDS


def test_a_status_that_is_wrong_would_be_found() -> None:
    right = {
        "metadata": {"name": "s", "generation": 2},
        "spec": {"selector": {"matchLabels": {"x": "1"}}, "clusters": ["b", "absent"]},
        "status": {
            "clusters": 2,
            "observedGeneration": 2,
            "conditions": [{"type": "ClustersFound", "status": "False"}],
        },
    }
    clusters = {"a": {"x": "1"}, "b": {}, "c": {"x": "2"}}
    definition = members_of(right)
    assert set_run._difference(right, definition, clusters) == ""
    assert "s shows (2, False, 2), but is (3, False, 2)" in set_run._difference(
        right, definition, {**clusters, "c": {"x": "1"}}
    )
    assert set_run._difference(right, definition, {**clusters, "absent": {"x": "1"}})
    assert set_run._difference({**right, "metadata": {"name": "s", "generation": 3}}, definition, clusters)
    assert set_run._difference({**right, "status": {}}, definition, clusters)
