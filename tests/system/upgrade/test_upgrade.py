"""Data of earlier releases starts under this one and loses nothing; what this one stores, an earlier one reads."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from clusterregistry.api.clusterregistry.v1alpha1.types import CLUSTER, STATUS
from clusterregistry.apiserver.registry.storage_codec import StorageCodec
from clusterregistry.apiserver.storage.interface import KeyValue
from clusterregistry.apiserver.storage.object_bytes import decoded
from clusterregistry.apiserver.storage.sqlite import SQLiteStorage
from clusterregistry.registry.cluster import cluster_resource
from clusterregistry.registry.main import main
from tests.apiserver.api.clients import Client, summary
from tests.apiserver.api.in_process import InProcess
from tests.apiserver.api.objects import CLUSTERS, cluster
from tests.apiserver.api.rbac_objects import BINDINGS, ROLES
from tests.apiserver.storage.etcd_servers import NEEDS_ETCD, EtcdCluster
from tests.system.upgrade.make_fixture import objects_of

Object = dict[str, Any]

RELEASES = sorted(path.parent for path in Path(__file__).parent.glob("v*/objects.json"))
BETAS = "/apis/clusterregistry.k8s.io/v1beta1/clusters"
PREFIX = "/clusterregistry.k8s.io/clusters/"
DEFAULTS = "kubernetes.io/bootstrapping"


@pytest.fixture(params=RELEASES, ids=lambda path: path.name)
def release(request: pytest.FixtureRequest) -> Path:
    path: Path = request.param
    return path


@pytest.fixture
def data(release: Path, tmp_path: Path) -> Path:
    """A directory as the release left it."""
    (tmp_path / "data").mkdir()
    shutil.copyfile(release / "registry.db", tmp_path / "data" / "registry.db")
    return tmp_path


@pytest.fixture
def client(data: Path) -> Iterator[Client]:
    """A client of this release, on what that release left."""
    with InProcess(data).running() as server:
        yield server.client()


def recorded(release: Path) -> dict[str, Object]:
    objects: dict[str, Object] = json.loads((release / "objects.json").read_text())
    return objects


def unchanged(objects: dict[str, Object]) -> dict[str, Object]:
    """The objects of users: default roles are brought up to date by each release."""
    return {path: obj for path, obj in objects.items() if DEFAULTS not in obj["metadata"].get("labels", {})}


def without_versions(objects: dict[str, Object]) -> dict[str, Object]:
    copies = {path: {**obj, "metadata": dict(obj["metadata"])} for path, obj in objects.items()}
    for obj in copies.values():
        del obj["metadata"]["resourceVersion"]
    return copies


def test_a_data_directory_starts_and_loses_nothing(client: Client, release: Path) -> None:
    found, before = objects_of(client), recorded(release)
    assert unchanged(found) == unchanged(before)
    assert len(unchanged(before)) == 14
    for path, obj in before.items():
        assert found[path]["metadata"]["uid"] == obj["metadata"]["uid"]


def test_its_history_can_be_watched(client: Client, release: Path) -> None:
    first = min(int(obj["metadata"]["resourceVersion"]) for obj in unchanged(recorded(release)).values())
    with client.watch(CLUSTERS, resourceVersion=str(first), timeoutSeconds="1") as watch:
        events = summary(watch.rest())
    gone = [kind for kind, name in events if name == "gone"]
    assert gone == ["ADDED", "MODIFIED", "DELETED"]


def test_its_objects_come_back_from_v1beta1_as_they_were(client: Client, release: Path) -> None:
    """A client of v1beta1 reads each and sends it back, through both endpoints."""
    before = recorded(release)
    for path in (path for path in before if path.startswith(CLUSTERS)):
        name = path.rpartition("/")[2]
        read = client.get(f"{BETAS}/{name}").expect(200)
        assert client.put(f"{BETAS}/{name}", read).expect(200) == read
        assert client.put(f"{BETAS}/{name}/status", read).expect(200) == read
        assert client.get(path).expect(200) == before[path]


def test_a_finalizer_that_held_an_object_can_be_removed(client: Client) -> None:
    client.patch(f"{BETAS}/held", {"metadata": {"finalizers": None}}).expect(200)
    assert client.get(f"{CLUSTERS}/held").status == 404


def test_there_is_nothing_to_migrate_and_a_check_finds_nothing(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    environ = {"CLUSTERREGISTRY_DATA_DIR": str(data / "data")}
    assert main(["storage", "check", "--full"], environ) == 0
    assert main(["storage", "migrate"], environ) == 0
    assert "Nothing to rewrite" in capsys.readouterr().out


def test_migrated_there_and_back_it_is_what_it_was(data: Path, release: Path) -> None:
    environ = {"CLUSTERREGISTRY_DATA_DIR": str(data / "data")}
    assert main(["storage", "migrate", "--to-version=v1beta1"], environ) == 0
    with InProcess(data).running() as server:
        assert without_versions(unchanged(objects_of(server.client()))) == without_versions(
            unchanged(recorded(release))
        )
    assert main(["storage", "migrate"], environ) == 0
    with InProcess(data).running() as server:
        assert without_versions(unchanged(objects_of(server.client()))) == without_versions(
            unchanged(recorded(release))
        )


@NEEDS_ETCD
def test_the_contents_of_an_etcd_start_and_lose_nothing(release: Path, tmp_path: Path) -> None:
    with EtcdCluster(tmp_path) as etcd:
        for key, value in json.loads((release / "etcd.json").read_text()).items():
            etcd.etcdctl("put", key, "--", value)
        flag = f"--etcd-servers={etcd.endpoints[0]}"
        with InProcess(tmp_path / "server", flag).running() as server:
            found = objects_of(server.client())
            assert without_versions(unchanged(found)) == without_versions(unchanged(recorded(release)))
        assert main(["storage", "migrate", "--dry-run", flag], {}) == 0


# The way back


def v0_1_0() -> StorageCodec:
    """Reads as release v0.1.0 does: it knows one version, without the state."""
    fields = {name: field for name, field in STATUS.fields.items() if name not in ("state", "observedAt")}
    schema = replace(CLUSTER, fields={**CLUSTER.fields, "status": replace(STATUS, fields=fields)})
    known = cluster_resource("off")
    version = replace(known.stored_as, schema=schema)
    return StorageCodec(replace(known, versions=(version,)))


def stored_in(directory: Path) -> list[KeyValue]:
    async def read() -> list[KeyValue]:
        storage = await SQLiteStorage.open(directory / "data" / "registry.db")
        page = await storage.list(PREFIX)
        await storage.close()
        return list(page.items)

    return asyncio.run(read())


def test_what_this_release_stores_is_read_by_v0_1_0(tmp_path: Path) -> None:
    """All but the state, which that release does not show."""
    with InProcess(tmp_path).running() as server:
        client = server.client()
        spec = {"location": {"region": "north", "latitude": 59.3}, "authInfo": {"providers": [{"type": "x"}]}}
        beta = {**cluster("a"), "apiVersion": "clusterregistry.k8s.io/v1beta1", "spec": spec}
        client.post(BETAS, beta).expect(201)
        condition = {"type": "Ready", "status": "True", "reason": "R", "message": "", "observedGeneration": 1}
        status = {"state": "Ready", "conditions": [{**condition, "lastTransitionTime": "2026-01-02T03:04:05Z"}]}
        client.put(f"{BETAS}/a/status", {**beta, "status": status}).expect(200)
        shown = client.get(f"{CLUSTERS}/a").expect(200)
    (kv,) = stored_in(tmp_path)
    found = decoded(v0_1_0().decode(kv))
    assert shown["status"].pop("state") == "Ready"
    assert found == shown
    assert set(found["metadata"]["annotations"]) == {
        "clusterregistry.k8s.io/location",
        "clusterregistry.k8s.io/observed-generations",
    }


def test_stored_in_v1beta1_it_is_read_by_v0_1_0_after_a_migration(data: Path, release: Path) -> None:
    environ = {"CLUSTERREGISTRY_DATA_DIR": str(data / "data")}
    codec = v0_1_0()
    assert main(["storage", "migrate", "--to-version=v1beta1"], environ) == 0
    for kv in stored_in(data):
        with pytest.raises(Exception, match="it is not a Cluster of"):
            codec.decode(kv)
    assert main(["storage", "migrate", "--to-version=v1alpha1"], environ) == 0
    found = {f"{CLUSTERS}/{kv.key.removeprefix(PREFIX)}": decoded(codec.decode(kv)) for kv in stored_in(data)}
    before = {path: obj for path, obj in recorded(release).items() if path.startswith(CLUSTERS)}
    assert without_versions(found) == without_versions(before)


def test_every_kind_of_collection_is_compared() -> None:
    for release in RELEASES:
        assert {path.rpartition("/")[0] for path in recorded(release)} == {CLUSTERS, ROLES, BINDINGS}
