"""DELETE of one object and of a collection: options, preconditions, selectors."""

from __future__ import annotations

from typing import Any

import pytest

from tests.apiserver.api.clients import Client
from tests.apiserver.api.objects import CLUSTERS, GROUP_VERSION, HOLD, cluster, names, path_of

UID = "11111111-2222-3333-4444-555555555555"


def test_the_answer_names_the_deleted_object(client: Client) -> None:
    made = client.post(CLUSTERS, cluster("a")).expect(201)
    assert client.delete(path_of("a")).expect(200) == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {
            "name": "a",
            "group": "clusterregistry.k8s.io",
            "kind": "clusters",
            "uid": made["metadata"]["uid"],
        },
    }
    client.get(path_of("a")).refused(404, "NotFound")
    client.delete(path_of("a")).refused(404, "NotFound")


def test_the_api_versions_of_delete_options(client: Client) -> None:
    for api_version in ("v1", "meta.k8s.io/v1", GROUP_VERSION):
        client.post(CLUSTERS, cluster("a")).expect(201)
        client.delete(path_of("a"), {"kind": "DeleteOptions", "apiVersion": api_version}).expect(200)


def test_options_that_cannot_be_decoded_are_refused(client: Client) -> None:
    client.post(CLUSTERS, cluster("a")).expect(201)
    wrong: list[Any] = [
        {"kind": "Cluster", "apiVersion": GROUP_VERSION},
        {"kind": "DeleteOptions", "apiVersion": "example.com/v1"},
        {"kind": []},
        {"kind": 5},
        {"apiVersion": {}},
        {"gracePeriodSeconds": "soon"},
        {"propagationPolicy": 5},
        {"preconditions": "none"},
        {"preconditions": {"uid": 5}},
        {"dryRun": "All"},
        {"dryRun": [1]},
        {"orphanDependents": "yes"},
    ]
    for options in (*wrong, [], "text", 5, b"{", b"nonsense", b"\xff"):
        client.delete(path_of("a"), options).refused(400, "BadRequest")
    client.delete(path_of("a"), gracePeriodSeconds="x").refused(400, "BadRequest")
    client.delete(path_of("a"), gracePeriodSeconds="1.5").refused(400, "BadRequest")
    client.get(path_of("a")).expect(200)


def test_options_of_an_unknown_media_type_are_refused(client: Client) -> None:
    client.post(CLUSTERS, cluster("a")).expect(201)
    client.delete(path_of("a"), {}, headers={"Content-Type": "text/plain"}).refused(415, "UnsupportedMediaType")
    client.get(path_of("a")).expect(200)


def test_options_may_be_yaml(client: Client) -> None:
    client.post(CLUSTERS, cluster("a")).expect(201)
    client.delete(path_of("a"), b"dryRun: [All]\n", headers={"Content-Type": "application/yaml"}).expect(200)
    client.get(path_of("a")).expect(200)


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"propagationPolicy": "Sideways"}, "propagationPolicy"),
        ({"propagationPolicy": "Orphan", "orphanDependents": True}, "propagationPolicy"),
        ({"dryRun": ["Some"]}, "dryRun"),
        ({"dryRun": ["All", "Some"]}, "dryRun"),
    ],
)
def test_options_of_a_wrong_value_are_invalid(client: Client, options: Any, field: str) -> None:
    client.post(CLUSTERS, cluster("a")).expect(201)
    refused = client.delete(path_of("a"), options).refused(422, "Invalid")
    assert refused["details"]["kind"] == "DeleteOptions"
    assert [cause["field"] for cause in refused["details"]["causes"]] == [field]
    client.get(path_of("a")).expect(200)


def test_there_is_no_grace_period(client: Client) -> None:
    for seconds in (0, 1, 3600):
        client.post(CLUSTERS, cluster("a")).expect(201)
        client.delete(path_of("a"), {"gracePeriodSeconds": seconds}).expect(200)
        client.get(path_of("a")).refused(404, "NotFound")


def test_preconditions_that_hold(client: Client) -> None:
    metadata = client.post(CLUSTERS, cluster("a")).expect(201)["metadata"]
    held = {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
    client.delete(path_of("a"), {"preconditions": held}).expect(200)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [({"uid": UID}, "UID in the precondition"), ({"resourceVersion": "1"}, "ResourceVersion in the precondition")],
)
def test_a_precondition_that_fails_prevents_the_deletion(client: Client, wrong: dict[str, str], said: str) -> None:
    made = client.post(CLUSTERS, cluster("a")).expect(201)
    client.patch(path_of("a"), {"metadata": {"labels": {"x": "1"}}}).expect(200)
    held = {"uid": made["metadata"]["uid"]}
    refused = client.delete(path_of("a"), {"preconditions": {**held, **wrong}}).refused(409, "Conflict")
    assert refused["details"] == {"name": "a", "group": "clusterregistry.k8s.io", "kind": "Cluster"}
    assert said in refused["message"]
    client.get(path_of("a")).expect(200)


def test_a_precondition_on_an_object_that_is_not_there_is_not_found(client: Client) -> None:
    client.delete(path_of("a"), {"preconditions": {"uid": UID}}).refused(404, "NotFound")


def test_a_uid_precondition_protects_a_successor(client: Client) -> None:
    first = client.post(CLUSTERS, cluster("a")).expect(201)["metadata"]["uid"]
    client.delete(path_of("a")).expect(200)
    client.post(CLUSTERS, cluster("a")).expect(201)
    client.delete(path_of("a"), {"preconditions": {"uid": first}}).refused(409, "Conflict")
    client.get(path_of("a")).expect(200)


def test_options_in_the_query_count_without_a_body(client: Client) -> None:
    client.post(CLUSTERS, cluster("a")).expect(201)
    answer = client.delete(path_of("a"), propagationPolicy="Foreground").expect(200)
    assert answer["metadata"]["finalizers"] == ["foregroundDeletion"]


def test_the_answer_to_a_deleted_collection_has_its_items(client: Client) -> None:
    made = [client.post(CLUSTERS, cluster(name)).expect(201) for name in ("a", "b")]
    deleted = client.delete(CLUSTERS).expect(200)
    assert deleted["kind"] == "ClusterList"
    assert deleted["items"] == made
    assert names(client.get(CLUSTERS).expect(200)) == []


def test_a_limit_bounds_what_is_deleted(client: Client) -> None:
    for name in "abcde":
        client.post(CLUSTERS, cluster(name)).expect(201)
    assert names(client.delete(CLUSTERS, limit=2).expect(200)) == ["a", "b"]
    assert names(client.get(CLUSTERS).expect(200)) == ["c", "d", "e"]


@pytest.mark.parametrize(
    ("query", "gone"),
    [
        ({"labelSelector": "t=1"}, ["a", "b"]),
        ({"labelSelector": "t!=1"}, ["c"]),
        ({"fieldSelector": "metadata.name=b"}, ["b"]),
        ({"fieldSelector": "metadata.name!=b"}, ["a", "c"]),
        ({"labelSelector": "t=1", "fieldSelector": "metadata.name!=b"}, ["a"]),
        ({"labelSelector": "t=1", "limit": 1}, ["a"]),
        ({"labelSelector": "none"}, []),
    ],
)
def test_selectors_bound_what_is_deleted(client: Client, query: dict[str, Any], gone: list[str]) -> None:
    for name, label in (("a", "1"), ("b", "1"), ("c", "2")):
        client.post(CLUSTERS, cluster(name, labels={"t": label})).expect(201)
    assert names(client.delete(CLUSTERS, **query).expect(200)) == gone
    assert names(client.get(CLUSTERS).expect(200)) == [name for name in "abc" if name not in gone]


def test_an_invalid_query_deletes_nothing_of_a_collection(client: Client) -> None:
    client.post(CLUSTERS, cluster("a")).expect(201)
    client.delete(CLUSTERS, labelSelector="a in").expect(400)
    client.delete(CLUSTERS, fieldSelector="spec.x=1").expect(400)
    client.delete(CLUSTERS, limit="x").expect(400)
    client.delete(CLUSTERS, dryRun="Some").expect(422)
    client.delete(CLUSTERS, propagationPolicy="Sideways").expect(422)
    client.delete(CLUSTERS, resourceVersionMatch="Exact").expect(422)
    assert names(client.get(CLUSTERS).expect(200)) == ["a"]


def test_finalizers_hold_their_objects_of_a_deleted_collection(client: Client) -> None:
    client.post(CLUSTERS, cluster("a")).expect(201)
    client.post(CLUSTERS, cluster("b", finalizers=[HOLD])).expect(201)
    answered = client.delete(CLUSTERS).expect(200)
    assert all("deletionTimestamp" not in item["metadata"] for item in answered["items"])
    (left,) = client.get(CLUSTERS).expect(200)["items"]
    assert (left["metadata"]["name"], left["metadata"]["generation"]) == ("b", 2)
    assert "deletionTimestamp" in left["metadata"]


def test_the_policy_holds_for_every_object_of_a_collection(client: Client) -> None:
    for name in "ab":
        client.post(CLUSTERS, cluster(name)).expect(201)
    client.delete(CLUSTERS, {"propagationPolicy": "Orphan"}).expect(200)
    left = client.get(CLUSTERS).expect(200)["items"]
    assert [item["metadata"]["finalizers"] for item in left] == [["orphan"], ["orphan"]]


def test_a_dry_run_of_a_collection_deletes_nothing(client: Client) -> None:
    for name in "ab":
        client.post(CLUSTERS, cluster(name)).expect(201)
    before = client.get(CLUSTERS).expect(200)
    assert names(client.delete(CLUSTERS, dryRun="All").expect(200)) == ["a", "b"]
    assert names(client.delete(CLUSTERS, {"dryRun": ["All"]}).expect(200)) == ["a", "b"]
    assert client.get(CLUSTERS).expect(200)["items"] == before["items"]


def test_a_precondition_of_a_collection_is_asked_of_every_object(client: Client) -> None:
    uid = client.post(CLUSTERS, cluster("a")).expect(201)["metadata"]["uid"]
    client.post(CLUSTERS, cluster("b")).expect(201)
    client.delete(CLUSTERS, {"preconditions": {"uid": uid}}).refused(409, "Conflict")
    assert "b" in names(client.get(CLUSTERS).expect(200))


def test_a_collection_of_many_goes_at_once(client: Client) -> None:
    for index in range(130):
        client.post(CLUSTERS, cluster(f"n{index:03}")).expect(201)
    assert len(client.delete(CLUSTERS).expect(200)["items"]) == 130
    assert names(client.get(CLUSTERS).expect(200)) == []


def test_a_body_of_null_means_no_options(client: Client) -> None:
    client.post(CLUSTERS, cluster("a")).expect(201)
    client.request("DELETE", path_of("a"), body=b"null", headers={"Content-Type": "application/json"}).expect(200)
    client.get(path_of("a")).refused(404, "NotFound")
