"""Cluster sets in the storage: both versions are read, and ``storage migrate`` rewrites them."""

from __future__ import annotations

import asyncio
import json
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from clusterregistry.apiserver.storage.interface import Storage
from clusterregistry.apiserver.storage.location import EtcdLocation, Location, SQLiteLocation, open_location
from clusterregistry.apiserver.storage.object_bytes import to_stored
from clusterregistry.registry.main import main
from tests.apiserver.api.in_process import InProcess
from tests.apiserver.api.objects import CLUSTERS, cluster
from tests.apiserver.storage.etcd_engine import settings_for
from tests.apiserver.storage.etcd_servers import NEEDS_ETCD, EtcdCluster
from tests.product import ETCD_PREFIX

PREFIX = "/clusterregistry.k8s.io/clustersets/"
SETS = "/apis/clusterregistry.k8s.io/v1beta1/clustersets"
SPEC = {"selector": {"matchExpressions": [{"key": "env", "operator": "Exists"}]}, "clusters": ["oslo"]}


async def fill(storage: Storage) -> None:
    for version in ("v1alpha1", "v1beta1"):
        metadata = {"name": version, "uid": f"uid-{version}", "creationTimestamp": "2024-01-02T03:04:05Z"}
        obj = {"apiVersion": f"clusterregistry.k8s.io/{version}", "kind": "ClusterSet", "metadata": metadata}
        await storage.create(PREFIX + version, to_stored({**obj, "spec": SPEC}))


def stored(place: Location) -> dict[str, Any]:
    async def read() -> dict[str, Any]:
        storage = await open_location(place)
        page = await storage.list(PREFIX)
        await storage.close()
        return {kv.key.removeprefix(PREFIX): json.loads(kv.value) for kv in page.items}

    return asyncio.run(read())


def versions(place: Location) -> dict[str, str]:
    return {name: obj["apiVersion"].rpartition("/")[2] for name, obj in stored(place).items()}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data directory with a set in each version."""
    directory = tmp_path / "data"
    directory.mkdir()

    async def create() -> None:
        storage = await open_location(SQLiteLocation(directory / "registry.db"))
        await fill(storage)
        await storage.close()

    asyncio.run(create())
    return directory


def test_a_migration_rewrites_sets_and_a_server_reads_both(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place, environ = SQLiteLocation(data / "registry.db"), {"CLUSTERREGISTRY_DATA_DIR": str(data)}
    before = stored(place)
    for arguments, version, rewritten in (([], "v1beta1", 1), (["--to-version=v1alpha1"], "v1alpha1", 2)):
        assert main(["storage", "migrate", *arguments], environ) == 0
        said = capsys.readouterr().out
        assert f"clustersets.clusterregistry.k8s.io: {rewritten} of 2 objects rewritten in {version}\n" in said
        found = stored(place)
        assert {name: obj.pop("apiVersion") for name, obj in found.items()} == dict.fromkeys(
            found, f"clusterregistry.k8s.io/{version}"
        )
        assert all({**before[name], **obj} == before[name] for name, obj in found.items())
    with InProcess(data.parent).running() as server:
        client = server.client()
        listed = client.get(SETS).expect(200)["items"]
        assert [(each["metadata"]["name"], each["spec"]) for each in listed] == [("v1alpha1", SPEC), ("v1beta1", SPEC)]
        with client.watch(SETS) as watch:
            assert {watch.next()["object"]["apiVersion"] for _ in listed} == {"clusterregistry.k8s.io/v1beta1"}


@NEEDS_ETCD
def test_on_etcd_two_servers_count_and_go_on_while_sets_are_migrated(tmp_path: Path) -> None:
    with ExitStack() as stack:
        etcd = stack.enter_context(EtcdCluster(tmp_path))
        flag = f"--etcd-servers={etcd.endpoints[0]}"
        one, other = (
            stack.enter_context(InProcess(tmp_path / name, flag).running()).client() for name in ("one", "other")
        )
        obj = {"apiVersion": "clusterregistry.k8s.io/v1beta1", "kind": "ClusterSet", "metadata": {"name": "prod"}}
        one.post(SETS, {**obj, "spec": SPEC}).expect(201)
        with other.watch(SETS) as watch:
            other.post(CLUSTERS, cluster("oslo")).expect(201)
            one.post(CLUSTERS, cluster("a", labels={"env": "prod"})).expect(201)
            while watch.next()["object"].get("status", {}).get("clusters") != 2:
                pass
            assert main(["storage", "migrate", "--to-version=v1alpha1", flag], {}) == 0
            one.patch(f"{CLUSTERS}/a", {"metadata": {"labels": None}}).expect(200)
            while watch.next()["object"].get("status", {}).get("clusters") != 1:
                pass
        place = EtcdLocation(settings_for(etcd, prefix=ETCD_PREFIX))
        assert versions(place) == {"prod": "v1beta1"}, "a write stores it in the storage version again"
