"""``fieldValidation``: unknown fields and duplicate fields."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.apiserver.api.clients import Answer, Client
from tests.apiserver.api.objects import CLUSTERS, JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH, cluster, path_of

UNKNOWN = ['unknown field "spec.cloudProvider.zone"', 'unknown field "spec.nope"']

Write = Callable[..., Answer]


def with_unknown(name: str) -> dict[str, Any]:
    return {**cluster(name), "spec": {"nope": 1, "cloudProvider": {"name": "gce", "zone": "z"}}}


PATCH = {"spec": {"nope": 1, "cloudProvider": {"name": "gce", "zone": "z"}}}
OPERATIONS = [
    {"op": "add", "path": "/spec/nope", "value": 1},
    {"op": "add", "path": "/spec/cloudProvider", "value": {"name": "gce", "zone": "z"}},
]
WRITES: dict[str, Write] = {
    "post": lambda client, **query: client.post(CLUSTERS, with_unknown("new"), **query),
    "put that creates": lambda client, **query: client.put(path_of("new"), with_unknown("new"), **query),
    "put": lambda client, **query: client.put(path_of("a"), with_unknown("a"), **query),
    "json patch": lambda client, **query: client.patch(path_of("a"), OPERATIONS, kind=JSON_PATCH, **query),
    "merge patch": lambda client, **query: client.patch(path_of("a"), PATCH, kind=MERGE_PATCH, **query),
    "strategic merge patch": lambda client, **query: client.patch(
        path_of("a"), PATCH, kind=STRATEGIC_MERGE_PATCH, **query
    ),
}
OPTIONS = {"post": "CreateOptions", "put": "UpdateOptions", "put that creates": "UpdateOptions"}


@pytest.fixture(autouse=True)
def _one_cluster(client: Client) -> None:
    client.post(CLUSTERS, cluster("a", "aws")).expect(201)


@pytest.mark.parametrize("write", WRITES)
def test_unknown_fields_are_dropped_with_a_warning_unless_ignored(client: Client, write: str) -> None:
    for query, warnings in (
        ({}, UNKNOWN),
        ({"fieldValidation": ""}, UNKNOWN),
        ({"fieldValidation": "Warn"}, UNKNOWN),
        ({"fieldValidation": "Ignore"}, []),
    ):
        answer = WRITES[write](client, **query)
        assert answer.status in (200, 201), answer.body
        assert answer.json["spec"] == {"cloudProvider": {"name": "gce"}}
        assert sorted(answer.warnings) == warnings
        client.delete(path_of("new"))


@pytest.mark.parametrize("write", WRITES)
def test_unknown_fields_can_be_refused(client: Client, write: str) -> None:
    before = client.get(CLUSTERS).expect(200)
    answer = WRITES[write](client, fieldValidation="Strict")
    refused = answer.refused(422, "Invalid") if "patch" in write else answer.refused(400, "BadRequest")
    assert "strict decoding error: " in refused["message"]
    for unknown in UNKNOWN:
        assert unknown in refused["message"].replace('\\"', '"')
    assert answer.warnings == []
    assert client.get(CLUSTERS).expect(200) == before


def test_another_value_is_refused(client: Client) -> None:
    for write, send in WRITES.items():
        for value in ("Sometimes", "strict", "true"):
            refused = send(client, fieldValidation=value).refused(422, "Invalid")
            assert refused["details"]["kind"] == OPTIONS.get(write, "PatchOptions")
            assert [cause["field"] for cause in refused["details"]["causes"]] == ["fieldValidation"]


def test_what_is_known_is_fine_under_the_strictest(client: Client) -> None:
    answer = client.put(path_of("a"), cluster("a", "gce"), fieldValidation="Strict")
    answer.expect(200)
    assert answer.warnings == []


def test_unknown_fields_of_metadata_and_of_the_top(client: Client) -> None:
    sent = {**cluster("b", bogus="x"), "extra": {"a": 1}, "status": {"nope": 1}}
    answer = client.post(CLUSTERS, sent)
    assert "extra" not in answer.expect(201)
    found = {'unknown field "extra"', 'unknown field "metadata.bogus"', 'unknown field "status.nope"'}
    assert set(answer.warnings) == found


def test_unknown_fields_in_lists_are_named_by_their_place(client: Client) -> None:
    sent = {**cluster("b"), "spec": {"authInfo": {"providers": [{"name": "x"}, {"name": "y", "nope": 1}]}}}
    assert client.post(CLUSTERS, sent).warnings == ['unknown field "spec.authInfo.providers[1].nope"']


def test_the_configuration_of_a_provider_may_have_any_key(client: Client) -> None:
    sent = {**cluster("b"), "spec": {"authInfo": {"providers": [{"name": "x", "config": {"any.thing/at all": "y"}}]}}}
    answer = client.post(CLUSTERS, sent, fieldValidation="Strict")
    assert answer.expect(201)["spec"] == sent["spec"]


def twice(body: dict[str, Any]) -> bytes:
    """The object with a cloud provider that comes twice."""
    text = json.dumps(body)
    first = text.index('"cloudProvider"')
    return (text[:first] + '"cloudProvider": {"name": "lost"}, ' + text[first:]).encode()


def test_of_a_field_that_comes_twice_the_last_one_counts(client: Client) -> None:
    answer = client.post(CLUSTERS, twice(cluster("b", "gce")))
    assert answer.expect(201)["spec"] == {"cloudProvider": {"name": "gce"}}
    assert answer.warnings == ['duplicate field "spec.cloudProvider"']


def test_a_field_that_comes_twice_can_be_refused(client: Client) -> None:
    client.post(CLUSTERS, twice(cluster("b")), fieldValidation="Strict").refused(400, "BadRequest")
    client.get(path_of("b")).refused(404, "NotFound")


def test_a_field_that_comes_twice_in_a_patch(client: Client) -> None:
    body = b'{"metadata":{"labels":{"x":"1","x":"2"}}}'
    client.patch(path_of("a"), body, fieldValidation="Strict").refused(422, "Invalid")
    answer = client.patch(path_of("a"), body)
    assert answer.expect(200)["metadata"]["labels"] == {"x": "2"}
    assert answer.warnings == ['duplicate field "metadata.labels.x"']


def test_names_of_fields_count_by_their_case(client: Client) -> None:
    sent = {**cluster("b"), "spec": {"ClusterID": "x", "cloudprovider": {"name": "y"}}}
    answer = client.post(CLUSTERS, sent)
    assert answer.expect(201).get("spec", {}) == {}
    assert sorted(answer.warnings) == ['unknown field "spec.ClusterID"', 'unknown field "spec.cloudprovider"']
