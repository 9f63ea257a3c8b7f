"""When ``generation`` and ``resourceVersion`` move, and when they do not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.apiserver.api.clients import Client
from tests.apiserver.api.objects import CLUSTERS, JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH, cluster, path_of


def generation(obj: dict[str, Any]) -> int:
    value: int = obj["metadata"]["generation"]
    return value


def test_a_change_of_the_spec_makes_a_new_generation(client: Client) -> None:
    client.post(CLUSTERS, cluster("a")).expect(201)
    patches = [{"cloudProvider": {"name": "gce"}}, {"cloudProvider": None}, {"authInfo": {"user": {"name": "u"}}}, None]
    for number, spec in enumerate(patches, 2):
        assert generation(client.patch(path_of("a"), {"spec": spec}).expect(200)) == number


def test_a_change_of_metadata_or_status_makes_no_new_generation(client: Client) -> None:
    client.post(CLUSTERS, cluster("a")).expect(201)
    owner = {"apiVersion": "v1", "kind": "K", "name": "n", "uid": "u"}
    metadata: list[dict[str, Any]] = [
        {"labels": {"x": "1"}},
        {"annotations": {"x": "1"}},
        {"finalizers": ["example.com/x"]},
        {"ownerReferences": [owner]},
        {"generation": 7},
    ]
    for patch in metadata:
        assert generation(client.patch(path_of("a"), {"metadata": patch}).expect(200)) == 1
    changed = client.patch(path_of("a") + "/status", {"status": {"nodes": {"total": 1}}}).expect(200)
    assert generation(changed) == 1


def test_each_change_counts_once(client: Client) -> None:
    client.post(CLUSTERS, cluster("a", "p0")).expect(201)
    for index in range(1, 6):
        assert generation(client.put(path_of("a"), cluster("a", f"p{index}")).expect(200)) == index + 1


def test_a_successor_begins_with_the_first_generation(client: Client) -> None:
    client.post(CLUSTERS, cluster("a")).expect(201)
    client.put(path_of("a"), cluster("a", "gce")).expect(200)
    client.delete(path_of("a")).expect(200)
    assert generation(client.post(CLUSTERS, cluster("a")).expect(201)) == 1


NO_CHANGES: dict[str, tuple[str, str, Any]] = {
    "put": ("put", "", cluster("a", labels={"x": "1"})),
    "put with keys in another order": (
        "put",
        "",
        dict(reversed(cluster("a", labels={"x": "1"}).items())),
    ),
    "put with nulls": (
        "put",
        "",
        {
            **cluster("a", labels={"x": "1"}, annotations=None, finalizers=None),
            "spec": {"cloudProvider": {"name": "aws"}, "authInfo": None, "clusterID": None},
            "status": None,
        },
    ),
    "put with unknown fields": ("put", "", {**cluster("a", labels={"x": "1"}), "extra": 1}),
    "put with another status": ("put", "", {**cluster("a", labels={"x": "1"}), "status": {"nodes": {"total": 7}}}),
    "put of the status with another spec": ("put", "/status", cluster("a", "gce")),
    "empty merge patch": (MERGE_PATCH, "", {}),
    "merge patch of what is so": (MERGE_PATCH, "", {"metadata": {"labels": {"x": "1"}}}),
    "merge patch that removes nothing": (MERGE_PATCH, "", {"metadata": {"labels": {"none": None}}}),
    "strategic merge patch of what is so": (STRATEGIC_MERGE_PATCH, "", {"metadata": {"labels": {"x": "1"}}}),
    "empty json patch": (JSON_PATCH, "", []),
    "json patch there and back": (
        JSON_PATCH,
        "",
        [
            {"op": "add", "path": "/metadata/labels/y", "value": "2"},
            {"op": "remove", "path": "/metadata/labels/y"},
        ],
    ),
    "patch of the status with other labels": (MERGE_PATCH, "/status", {"metadata": {"labels": {"x": "2"}}}),
}


@pytest.mark.parametrize("name", NO_CHANGES)
def test_a_write_without_a_change_makes_no_new_version(client: Client, name: str) -> None:
    how, subresource, body = NO_CHANGES[name]
    made = client.post(CLUSTERS, cluster("a", labels={"x": "1"})).expect(201)
    with client.watch(CLUSTERS, resourceVersion=made["metadata"]["resourceVersion"]) as watch:
        path = path_of("a") + subresource
        answer = client.put(path, body) if how == "put" else client.patch(path, body, kind=how)
        assert answer.expect(200) == made
        assert client.get(path_of("a")).expect(200) == made
        sentinel = client.post(CLUSTERS, cluster("sentinel")).expect(201)
        assert watch.next() == {"type": "ADDED", "object": sentinel}
    following = int(made["metadata"]["resourceVersion"]) + 1
    assert int(sentinel["metadata"]["resourceVersion"]) == following


def test_resource_versions_of_one_server_only_grow(client: Client) -> None:
    versions = []
    for index in range(3):
        versions.append(client.post(CLUSTERS, cluster(f"n{index}")).expect(201)["metadata"]["resourceVersion"])
        patched = client.patch(path_of(f"n{index}"), {"metadata": {"labels": {"x": "1"}}}).expect(200)
        versions.append(patched["metadata"]["resourceVersion"])
    assert [int(version) for version in versions] == sorted({int(version) for version in versions})
