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


@pytest.mark.parametrize("given", ["", "0", None])
def test_an_empty_resource_version_is_none(client: Client, given: str | None) -> None:
    client.post(CLUSTERS, cluster("a", resourceVersion=given)).expect(201)


@pytest.mark.parametrize("given", ["1", "99999999", "abc"])
def test_a_resource_version_is_refused(client: Client, given: str) -> None:
    client.post(CLUSTERS, cluster("a", resourceVersion=given)).refused(400, "BadRequest")
    client.get(path_of("a")).refused(404, "NotFound")


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


def test_a_status_is_dropped_without_a_word(client: Client) -> None:
    answer = client.post(CLUSTERS, {**cluster("a"), "status": {"nodes": {"total": 3}}})
    assert "status" not in answer.expect(201)
    assert answer.warnings == []


def test_a_generated_name_is_made_from_its_beginning(client: Client) -> None:
    made = [client.post(CLUSTERS, cluster("", generateName="gen-")).expect(201)["metadata"] for _ in range(5)]
    assert len({metadata["name"] for metadata in made}) == 5
    for metadata in made:
        assert re.fullmatch(r"gen-[bcdfghjklmnpqrstvwxz2456789]{5}", metadata["name"])
        assert metadata["generateName"] == "gen-"


def test_a_name_beats_a_beginning_of_one(client: Client) -> None:
    made = client.post(CLUSTERS, cluster("given", generateName="gen-")).expect(201)
    assert made["metadata"]["name"] == "given"


def test_a_long_beginning_is_cut_so_that_the_name_is_short_enough(client: Client) -> None:
    name = client.post(CLUSTERS, cluster("", generateName="g" * 80)).expect(201)["metadata"]["name"]
    assert re.fullmatch(r"g{58}[a-z0-9]{5}", name)


def test_a_beginning_that_makes_no_valid_name_is_invalid(client: Client) -> None:
    fields = causes(client.post(CLUSTERS, cluster("", generateName="Bad_")).refused(422, "Invalid"))
    assert ("metadata.generateName", "FieldValueInvalid") in fields
    assert names(client.get(CLUSTERS).expect(200)) == []


def test_a_generated_name_that_is_taken_is_made_anew(local: InProcessClient, monkeypatch: pytest.MonkeyPatch) -> None:
    made = iter(["gen-taken", "gen-taken", "gen-free"])
    monkeypatch.setattr("clusterregistry.apiserver.registry.store.generate_name", lambda _: next(made))
    local.post(CLUSTERS, cluster("gen-taken")).expect(201)
    assert local.post(CLUSTERS, cluster("", generateName="gen-")).expect(201)["metadata"]["name"] == "gen-free"


def test_a_generated_name_that_stays_taken_is_refused(local: InProcessClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clusterregistry.apiserver.registry.store.generate_name", lambda _: "gen-taken")
    local.post(CLUSTERS, cluster("gen-taken")).expect(201)
    local.post(CLUSTERS, cluster("", generateName="gen-")).refused(409, "AlreadyExists")


@pytest.mark.parametrize("metadata", [{}, {"name": ""}, {"name": None}, None])
def test_without_any_name_it_is_invalid(client: Client, metadata: Any) -> None:
    refused = client.post(CLUSTERS, {**cluster("x"), "metadata": metadata}).refused(422, "Invalid")
    assert ("metadata.name", "FieldValueRequired") in causes(refused)


def test_everything_wrong_is_said_at_once(client: Client) -> None:
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
        {"cloudProvider": {"name": 5}},
        {"kubernetesApiEndpoints": []},
        {"kubernetesApiEndpoints": {"serverEndpoints": {}}},
        {"authInfo": {"providers": [{"config": {"a": 1}}]}},
        {"clusterID": True},
        {"clusterID": ["a"]},
        [],
        "text",
        7,
    ],
)
def test_a_value_of_the_wrong_type_is_invalid(client: Client, spec: Any) -> None:
    refused = client.post(CLUSTERS, {**cluster("a"), "spec": spec}).refused(422, "Invalid")
    assert {reason for _, reason in causes(refused)} == {"FieldValueTypeInvalid"}


@pytest.mark.parametrize(
    "metadata",
    [
        "text",
        [],
        {"name": 5},
        {"name": "a", "labels": []},
        {"name": "a", "labels": {"a": 1}},
        {"name": "a", "annotations": {"a": {}}},
        {"name": "a", "finalizers": "x"},
        {"name": "a", "generation": "1"},
        {"name": "a", "creationTimestamp": "yesterday"},
        {"name": "a", "ownerReferences": {}},
        {"name": "a", "managedFields": {}},
    ],
)
def test_metadata_of_the_wrong_type_cannot_be_read(client: Client, metadata: Any) -> None:
    client.post(CLUSTERS, {**cluster("a"), "metadata": metadata}).refused(400, "BadRequest")
    client.get(path_of("a")).refused(404, "NotFound")


@pytest.mark.parametrize(
    "body",
    [b"", b" ", b"{", b'{"kind"', b"[]", b"null", b'"text"', b"nonsense", b"\xff\xfe", b"\x00", b"{}{}"],
    ids=repr,
)
def test_a_body_that_is_no_object_cannot_be_read(client: Client, body: bytes) -> None:
    client.post(CLUSTERS, body).refused(400, "BadRequest")


def test_text_behind_the_object_cannot_be_read(client: Client) -> None:
    client.post(CLUSTERS, json.dumps(cluster("a")).encode() + b" more").refused(400, "BadRequest")
    client.get(path_of("a")).refused(404, "NotFound")


@pytest.mark.parametrize("field", ["kind", "apiVersion"])
@pytest.mark.parametrize("value", [None, 5, "", [], {}])
def test_the_type_of_the_object_must_be_named(client: Client, field: str, value: Any) -> None:
    client.post(CLUSTERS, {**cluster("a"), field: value}).refused(400, "BadRequest")


def test_the_version_of_another_group_cannot_be_read(client: Client) -> None:
    client.post(CLUSTERS, {**cluster("a"), "apiVersion": "v1"}).refused(400, "BadRequest")


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
