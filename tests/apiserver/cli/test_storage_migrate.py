"""``storage migrate``: arguments, output and exit status."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from clusterregistry.apiserver.storage.interface import Storage
from clusterregistry.apiserver.storage.location import EtcdLocation, SQLiteLocation, open_location
from clusterregistry.apiserver.storage.object_bytes import to_stored
from clusterregistry.apiserver.storage.sqlite import SQLiteStorage
from clusterregistry.registry.main import main
from tests.apiserver.api.in_process import InProcess
from tests.apiserver.api.objects import CLUSTERS, cluster, path_of
from tests.apiserver.storage.etcd_engine import settings_for
from tests.apiserver.storage.etcd_servers import NEEDS_ETCD, EtcdCluster
from tests.product import ETCD_PREFIX

Output = pytest.CaptureFixture[str]

PREFIX = "/clusterregistry.k8s.io/clusters/"
BETAS = "/apis/clusterregistry.k8s.io/v1beta1/clusters"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data directory with a cluster in each version."""
    directory = tmp_path / "data"
    directory.mkdir()

    async def create() -> None:
        store = await SQLiteStorage.open(directory / "registry.db")
        for name, version in (("oslo", "v1alpha1"), ("paris", "v1beta1")):
            await store.create(PREFIX + name, stored(name, version))
        await store.close()

    asyncio.run(create())
    return directory


def stored(name: str, version: str) -> bytes:
    metadata = {"name": name, "uid": f"uid-{name}", "creationTimestamp": "2024-01-02T03:04:05Z"}
    obj = {"apiVersion": f"clusterregistry.k8s.io/{version}", "kind": "Cluster", "metadata": metadata}
    return to_stored({**obj, "spec": {"location": {"region": "north"}}} if version == "v1beta1" else obj)


def migrate(data: Path, *flags: str) -> int:
    return main(["storage", "migrate", *flags], {"CLUSTERREGISTRY_DATA_DIR": str(data)})


def versions(place: SQLiteLocation | EtcdLocation) -> dict[str, str]:
    async def read() -> dict[str, str]:
        store: Storage = await open_location(place)
        page = await store.list(PREFIX)
        await store.close()
        return {kv.key.removeprefix(PREFIX): _version(json.loads(kv.value)) for kv in page.items}

    return asyncio.run(read())


def _version(obj: dict[str, Any]) -> str:
    return str(obj["apiVersion"]).rpartition("/")[2]


def database(data: Path) -> SQLiteLocation:
    return SQLiteLocation(data / "registry.db")


def test_a_dry_run_says_what_would_be_rewritten(data: Path, capsys: Output) -> None:
    assert migrate(data, "--dry-run") == 0
    said = capsys.readouterr().out
    assert said == "clusters.clusterregistry.k8s.io: 1 of 2 objects would be rewritten in v1alpha1\n"
    assert versions(database(data)) == {"oslo": "v1alpha1", "paris": "v1beta1"}
    assert list(data.glob("*.before-migration-*")) == []


def test_a_migration_writes_a_backup_first_and_is_done_once(data: Path, capsys: Output) -> None:
    assert migrate(data) == 0
    (backup,) = data.glob("registry.db.before-migration-*")
    assert capsys.readouterr().out == (
        f"Backed up to {backup}.\nclusters.clusterregistry.k8s.io: 1 of 2 objects rewritten in v1alpha1\n"
    )
    assert versions(database(data)) == {"oslo": "v1alpha1", "paris": "v1alpha1"}
    assert versions(SQLiteLocation(backup)) == {"oslo": "v1alpha1", "paris": "v1beta1"}
    assert migrate(data) == 0
    assert capsys.readouterr().out == "Nothing to rewrite: 2 objects as they are to be stored.\n"


def test_another_version_can_be_chosen_and_a_server_reads_it(data: Path) -> None:
    assert migrate(data, "--to-version=v1beta1") == 0
    assert versions(database(data)) == {"oslo": "v1beta1", "paris": "v1beta1"}
    with InProcess(data.parent).running() as server:
        client = server.client()
        assert client.get(f"{BETAS}/paris").expect(200)["spec"]["location"] == {"region": "north"}
        assert client.get(path_of("oslo")).expect(200)["apiVersion"] == "clusterregistry.k8s.io/v1alpha1"
        client.patch(path_of("oslo"), {"metadata": {"labels": {"a": "b"}}}).expect(200)
    assert versions(database(data)) == {"oslo": "v1alpha1", "paris": "v1beta1"}


def test_objects_that_cannot_be_read_are_named(data: Path, capsys: Output) -> None:
    async def spoil() -> None:
        store = await SQLiteStorage.open(data / "registry.db")
        await store.create(PREFIX + "bad", b"rubbish")
        await store.close()

    asyncio.run(spoil())
    assert migrate(data) == 1
    captured = capsys.readouterr()
    assert "1 of 3 objects rewritten" in captured.out
    assert "1 object cannot be read, and stay as they are:" in captured.err
    assert f"'{PREFIX}bad'" in captured.err
    assert "What to do: delete" in captured.err


def test_a_running_server_is_in_the_way(data: Path, capsys: Output) -> None:
    with InProcess(data.parent).running():
        assert migrate(data) == 3
    assert "What to do" in capsys.readouterr().err
    assert versions(database(data))["paris"] == "v1beta1"


def test_mistakes_are_named(data: Path, capsys: Output) -> None:
    assert migrate(data, "--to-version=v7", "--dry-run") == 2
    assert 'no kind has a version "v7"' in capsys.readouterr().err
    assert migrate(data / "elsewhere") == 3
    assert "there is no database at" in capsys.readouterr().err
    assert migrate(data, "--help") == 0
    assert "--to-version" in capsys.readouterr().out


@NEEDS_ETCD
def test_servers_on_etcd_go_on_while_objects_are_rewritten(tmp_path: Path, capsys: Output) -> None:
    with EtcdCluster(tmp_path) as etcd:
        flag = f"--etcd-servers={etcd.endpoints[0]}"
        place = EtcdLocation(settings_for(etcd, prefix=ETCD_PREFIX))
        with InProcess(tmp_path / "server", flag).running() as server:
            client = server.client()
            client.post(CLUSTERS, cluster("oslo")).expect(201)
            read = client.get(CLUSTERS).expect(200)
            with client.watch(CLUSTERS, resourceVersion=read["metadata"]["resourceVersion"]) as watch:
                assert main(["storage", "migrate", "--to-version=v1beta1", flag], {}) == 0
                assert "clusters.clusterregistry.k8s.io: 1 of 1 object rewritten in v1beta1" in capsys.readouterr().out
                event = watch.next()
            assert event["type"] == "MODIFIED"
            old, new = read["items"][0], event["object"]
            assert new["metadata"].pop("resourceVersion") > old["metadata"].pop("resourceVersion")
            assert new == old
            assert versions(place) == {"oslo": "v1beta1"}
            client.put(path_of("oslo"), cluster("oslo", "gcp")).expect(200)
            assert versions(place) == {"oslo": "v1alpha1"}
