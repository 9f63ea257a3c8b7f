"""One limit for a stored object, on any storage."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from clusterregistry.apiserver.registry.errors import LARGEST
from tests.apiserver.api.in_process import InProcess, InProcessClient
from tests.apiserver.api.objects import APPLY_PATCH, CLUSTERS, HOLD, cluster, path_of
from tests.apiserver.storage.etcd_servers import NEEDS_ETCD, EtcdCluster


@pytest.fixture(params=["SQLite", pytest.param("etcd", marks=NEEDS_ETCD)])
def client(
    request: pytest.FixtureRequest, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[InProcessClient]:
    if request.param == "SQLite":
        with InProcess(tmp_path / "registry").running() as server:
            yield server.client()
        return
    with EtcdCluster(tmp_path_factory.mktemp("etcd")) as etcd:
        flags = (f"--etcd-servers={etcd.endpoints[0]}",)
        with InProcess(tmp_path / "registry", *flags).running() as server:
            yield server.client()


def sized(name: str, size: int) -> dict[str, Any]:
    """A cluster with a text of so many bytes."""
    return {**cluster(name), "spec": {"authInfo": {"user": {"name": "a" * size}}}}


def largest(client: InProcessClient, name: str) -> dict[str, Any]:
    """The largest cluster that may be stored: how large one is without its text is what the server says."""
    client.post(CLUSTERS, sized(name, LARGEST + 1000)).refused(413, "RequestEntityTooLarge")
    refused = client.post(CLUSTERS, sized(name, LARGEST)).refused(413, "RequestEntityTooLarge")
    _, _, said = refused["message"].partition(" takes ")
    more = int(said.split()[0]) - LARGEST
    assert refused["message"] == (
        f"Request entity too large: the Cluster takes {LARGEST + more} bytes as it is stored, the limit is {LARGEST}"
    )
    return sized(name, LARGEST - more)


def test_the_largest_object_is_stored_and_one_byte_more_is_refused(client: InProcessClient) -> None:
    obj = largest(client, "a")
    client.post(CLUSTERS, obj).expect(201)
    obj["spec"]["authInfo"]["user"]["name"] += "a"
    obj["metadata"]["name"] = "b"
    client.post(CLUSTERS, obj).refused(413, "RequestEntityTooLarge")


def test_no_way_of_writing_makes_a_larger_one(client: InProcessClient) -> None:
    client.post(CLUSTERS, sized("a", 1_000_000)).expect(201)
    large = "b" * 600_000
    client.put(path_of("a"), sized("a", LARGEST)).refused(413, "RequestEntityTooLarge")
    client.patch(path_of("a"), {"spec": {"cloudProvider": {"name": large}}}).refused(413, "RequestEntityTooLarge")
    applied = {**cluster("a"), "spec": {"cloudProvider": {"name": large}}}
    client.patch(path_of("a"), applied, kind=APPLY_PATCH, fieldManager="m").refused(413, "RequestEntityTooLarge")
    applied["metadata"]["name"] = "new"
    applied["spec"]["cloudProvider"]["name"] = "b" * LARGEST
    client.patch(path_of("new"), applied, kind=APPLY_PATCH, fieldManager="m").refused(413, "RequestEntityTooLarge")
    client.put(path_of("new"), sized("new", LARGEST)).refused(413, "RequestEntityTooLarge")
    message = {"type": "OK", "status": "True", "message": large}
    client.patch(path_of("a") + "/status", {"status": {"conditions": [message]}}).refused(413, "RequestEntityTooLarge")
    client.post(f"{CLUSTERS}?dryRun=All", sized("dry", LARGEST)).refused(413, "RequestEntityTooLarge")
    assert len(client.get(CLUSTERS).expect(200)["items"]) == 1


def test_the_largest_object_can_be_changed_and_deleted(client: InProcessClient) -> None:
    obj = largest(client, "a")
    user = obj["spec"]["authInfo"]["user"]
    user["name"] = user["name"][:-1000]
    client.post(CLUSTERS, obj).expect(201)
    client.patch(path_of("a"), {"metadata": {"finalizers": [HOLD]}}).expect(200)
    assert "deletionTimestamp" in client.delete(path_of("a")).expect(200)["metadata"]
    client.patch(path_of("a"), {"metadata": {"finalizers": None}}).expect(200)
    client.get(path_of("a")).refused(404, "NotFound")
