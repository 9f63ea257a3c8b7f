"""POST: names, what the server sets, what it refuses."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.apiserver.api.clients import Client, causes
from tests.apiserver.api.in_process import InProcessClient
from tests.apiserver.api.objects import CLUSTERS, GROUP_VERSION, cluster, names, path_of


def test_the_answer_is_what_a_read_then_gives(client: Client) -> None:
    made = client.post(CLUSTERS, cluster("a", labels={"x": "1"})).expect(201)
    assert client.get(path_of("a")).expect(200) == made
    assert client.get(CLUSTERS).expect(200)["items"] == [made]


def test_metadata_alone_is_enough(client: Client) -> None:
    made = client.post(CLUSTERS, cluster("a", provider=None)).expect(201)
    assert set(made) == {"apiVersion", "kind", "metadata"}


def test_every_object_has_its_own_uid_and_a_later_resource_version(client: Client) -> None:
    made = [client.post(CLUSTERS, cluster(name)).expect(201)["metadata"] for name in ("a", "b", "c")]
    assert len({metadata["uid"] for metadata in made}) == 3
    versions = [int(metadata["resourceVersion"]) for metadata in made]
    assert versions == sorted(set(versions))


def test_a_resource_version_is_refused_unless_it_is_empty(client: Client) -> None:
    for given in ("1", "99999999", "abc"):
        client.post(CLUSTERS, cluster("a", resourceVersion=given)).refused(400, "BadRequest")
    for name, empty in (("a", ""), ("b", "0"), ("c", None)):
        client.post(CLUSTERS, cluster(name, resourceVersion=empty)).expect(201)


def test_what_only_the_server_sets_is_not_taken_from_the_client(client: Client) -> None:
    given: dict[str, Any] = {
        "uid": "11111111-2222-3333-4444-555555555555",
        "creationTimestamp": "2001-02-03T04:05:06Z",
        "deletionTimestamp": "2001-02-03T04:05:06Z",
        "deletionGracePeriodSeconds": 30,
        "generation": 7,
        "selfLink": "/somewhere",
    }
    metadata = client.post(CLUSTERS, cluster("a", **given)).expect(201)["metadata"]
    assert metadata["generation"] == 1
    assert metadata["uid"] != given["uid"]
    assert metadata["creationTimestamp"] > "2020"
    assert metadata.keys().isdisjoint({"deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"})


def test_a_status_is_dropped_without_a_warning(client: Client) -> None:
    answer = client.post(CLUSTERS, {**cluster("a"), "status": {"nodes": {"total": 3}}})
    assert "status" not in answer.expect(201)
    assert answer.warnings == []


def test_a_generated_name_begins_with_generate_name(client: Client) -> None:
    made = [client.post(CLUSTERS, cluster("", generateName="gen-")).expect(201)["metadata"] for _ in range(5)]
    assert len({metadata["name"] for metadata in made}) == 5
    for metadata in made:
        assert re.fullmatch(r"gen-[bcdfghjklmnpqrstvwxz2456789]{5}", metadata["name"])
        assert metadata["generateName"] == "gen-"


def test_a_name_takes_precedence_over_generate_name(client: Client) -> None:
    made = client.post(CLUSTERS, cluster("given", generateName="gen-")).expect(201)
    assert made["metadata"]["name"] == "given"


def test_a_long_generate_name_is_cut(client: Client) -> None:
    name = client.post(CLUSTERS, cluster("", generateName="g" * 80)).expect(201)["metadata"]["name"]
    assert re.fullmatch(r"g{58}[a-z0-9]{5}", name)


def test_an_invalid_generate_name_is_refused(client: Client) -> None:
    fields = causes(client.post(CLUSTERS, cluster("", generateName="Bad_")).refused(422, "Invalid"))
    assert ("metadata.generateName", "FieldValueInvalid") in fields
    assert names(client.get(CLUSTERS).expect(200)) == []


def test_a_generated_name_that_is_taken_is_replaced(local: InProcessClient, monkeypatch: pytest.MonkeyPatch) -> None:
    made = iter(["gen-taken", "gen-taken", "gen-free"])
    monkeypatch.setattr("clusterregistry.apiserver.registry.store.generate_name", lambda _: next(made))
    local.post(CLUSTERS, cluster("gen-taken")).expect(201)
    assert local.post(CLUSTERS, cluster("", generateName="gen-")).expect(201)["metadata"]["name"] == "gen-free"


def test_a_generated_name_that_stays_taken_is_refused(local: InProcessClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clusterregistry.apiserver.registry.store.generate_name", lambda _: "gen-taken")
    local.post(CLUSTERS, cluster("gen-taken")).expect(201)
    local.post(CLUSTERS, cluster("", generateName="gen-")).refused(409, "AlreadyExists")


def test_an_object_without_a_name_is_invalid(client: Client) -> None:
    for metadata in ({}, {"name": ""}, {"name": None}, None):
        refused = client.post(CLUSTERS, {**cluster("x"), "metadata": metadata}).refused(422, "Invalid")
        assert ("metadata.name", "FieldValueRequired") in causes(refused)


def test_all_errors_are_reported_at_once(client: Client) -> None:
    wrong = cluster("Bad_Name", labels={"bad key": "x"}, annotations={"also bad": "y"}, finalizers=["no good"])
    wrong["spec"] = {"kubernetesApiEndpoints": {"serverEndpoints": [{"clientCIDR": "nowhere"}], "caBundle": "%"}}
    refused = client.post(CLUSTERS, wrong).refused(422, "Invalid")
    assert {field for field, _ in causes(refused)} >= {
        "metadata.name",
        "metadata.labels",
        "metadata.annotations",
        "metadata.finalizers",
        "spec.kubernetesApiEndpoints.serverEndpoints[0].clientCIDR",
        "spec.kubernetesApiEndpoints.caBundle",
    }
    assert refused["details"] | {"causes": []} == {
        "name": "Bad_Name",
        "group": "clusterregistry.k8s.io",
        "kind": "Cluster",
        "causes": [],
    }


@pytest.mark.parametrize(
    "spec",
    [
        {"cloudProvider": "aws"},
        {"kubernetesApiEndpoints": {"serverEndpoints": {}}},
        {"authInfo": {"providers": [{"config": {"a": 1}}]}},
        {"clusterID": True},
        [],
        "text",
    ],
)
def test_a_value_of_the_wrong_type_is_invalid(client: Client, spec: Any) -> None:
    refused = client.post(CLUSTERS, {**cluster("a"), "spec": spec}).refused(422, "Invalid")
    assert {reason for _, reason in causes(refused)} == {"FieldValueTypeInvalid"}


def test_metadata_of_the_wrong_type_cannot_be_decoded(client: Client) -> None:
    fields: list[dict[str, Any]] = [
        {"name": 5},
        {"labels": []},
        {"labels": {"a": 1}},
        {"annotations": {"a": {}}},
        {"finalizers": "x"},
        {"generation": "1"},
        {"creationTimestamp": "yesterday"},
        {"ownerReferences": {}},
        {"managedFields": {}},
    ]
    for metadata in ("text", [], *({"name": "a", **field} for field in fields)):
        client.post(CLUSTERS, {**cluster("a"), "metadata": metadata}).refused(400, "BadRequest")
    client.get(path_of("a")).refused(404, "NotFound")


def test_a_body_that_is_no_object_cannot_be_decoded(client: Client) -> None:
    trailing = json.dumps(cluster("a")).encode() + b" more"
    broken = [b"", b" ", b"{", b'{"kind"', b"nonsense", b"\xff\xfe", b"\x00", b"{}{}", trailing]
    for body in (*broken, b"[]", b"null", b'"text"'):
        client.post(CLUSTERS, body).refused(400, "BadRequest")
    client.get(path_of("a")).refused(404, "NotFound")


def test_an_object_without_a_type_or_of_another_group_cannot_be_decoded(client: Client) -> None:
    wrong: list[Any] = [None, 5, "", [], {}]
    for value in wrong:
        client.post(CLUSTERS, {**cluster("a"), "apiVersion": value}).refused(400, "BadRequest")
        client.post(CLUSTERS, {**cluster("a"), "kind": value}).refused(400, "BadRequest")
    client.post(CLUSTERS, {**cluster("a"), "apiVersion": "v1"}).refused(400, "BadRequest")
    client.get(path_of("a")).refused(404, "NotFound")


def test_an_object_of_another_kind_is_invalid(client: Client) -> None:
    refused = client.post(CLUSTERS, {**cluster("a"), "kind": "Fleet"}).refused(422, "Invalid")
    assert (refused["details"]["kind"], causes(refused)) == ("Fleet", [("kind", "FieldValueInvalid")])


def test_a_post_to_a_name_creates_what_the_body_names(client: Client) -> None:
    """As kube-apiserver does for custom resources: the path only says that something is to be created."""
    client.post(path_of("a"), cluster("b")).expect(201)
    assert names(client.get(CLUSTERS).expect(200)) == ["b"]


def test_a_name_can_be_used_again_when_its_object_is_gone(client: Client) -> None:
    first = client.post(CLUSTERS, cluster("a")).expect(201)
    client.delete(path_of("a")).expect(200)
    second = client.post(CLUSTERS, cluster("a")).expect(201)
    assert first["metadata"]["uid"] != second["metadata"]["uid"]
    assert int(first["metadata"]["resourceVersion"]) + 1 < int(second["metadata"]["resourceVersion"])


def test_text_of_any_script_comes_back_as_it_was(client: Client) -> None:
    text = 'Wetzikon ZH · Zürich, 日本, 🐳, \u2028, \\, ", </script>, \t'
    made = client.post(CLUSTERS, cluster("a", annotations={"note": text})).expect(201)
    assert made["metadata"]["annotations"] == {"note": text}
    assert client.get(path_of("a")).expect(200)["metadata"]["annotations"] == {"note": text}


def test_the_answer_names_the_version_that_was_asked_for(client: Client) -> None:
    made = client.post(CLUSTERS, cluster("a")).expect(201)
    assert (made["apiVersion"], made["kind"]) == (GROUP_VERSION, "Cluster")
