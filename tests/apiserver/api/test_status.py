"""The subresource ``/status`` writes the status and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from tests.apiserver.api.clients import Client, causes
from tests.apiserver.api.objects import CLUSTERS, JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH, cluster, path_of

STATUS = path_of("a") + "/status"


def condition(kind: str, status: str = "True", **more: str) -> dict[str, str]:
    return {"type": kind, "status": status, **more}


def conditions(obj: dict[str, Any]) -> dict[str, str]:
    return {each["type"]: each["status"] for each in obj["status"]["conditions"]}


@pytest.fixture(autouse=True)
def _one_cluster(client: Client) -> None:
    client.post(CLUSTERS, cluster("a", labels={"x": "1"})).expect(201)


def test_put_replaces_the_status_whole(client: Client) -> None:
    client.patch(STATUS, {"status": {"nodes": {"total": 3}, "version": {"kubernetes": "v1"}}}).expect(200)
    changed = client.put(STATUS, {**cluster("a"), "status": {"nodes": {"ready": 2}}}).expect(200)
    assert changed["status"] == {"nodes": {"ready": 2}}


def test_put_without_a_status_removes_it(client: Client) -> None:
    client.patch(STATUS, {"status": {"nodes": {"total": 3}}}).expect(200)
    assert "status" not in client.put(STATUS, cluster("a")).expect(200)
    assert "status" not in client.get(path_of("a")).expect(200)


def test_everything_but_the_status_is_kept(client: Client) -> None:
    before = client.get(path_of("a")).expect(200)
    sent = cluster("a", "gce", labels={"y": "2"}, annotations={"z": "3"}, finalizers=["example.com/x"])
    changed = client.put(STATUS, {**sent, "status": {"nodes": {"total": 1}}}).expect(200)
    assert changed["spec"] == before["spec"]
    for metadata in (before["metadata"], changed["metadata"]):
        metadata.pop("resourceVersion")
    recorded = changed["metadata"].pop("managedFields")
    assert [entry for entry in recorded if "subresource" not in entry] == before["metadata"].pop("managedFields")
    assert changed["metadata"] == before["metadata"]


def test_the_main_path_keeps_the_status(client: Client) -> None:
    client.patch(STATUS, {"status": {"nodes": {"total": 3}}}).expect(200)
    changed = client.put(path_of("a"), {**cluster("a", "gce"), "status": {"nodes": {"total": 9}}}).expect(200)
    assert changed["status"] == {"nodes": {"total": 3}}
    assert client.put(path_of("a"), cluster("a", "aws")).expect(200)["status"] == {"nodes": {"total": 3}}


def test_get_answers_the_whole_object(client: Client) -> None:
    assert client.get(STATUS).expect(200) == client.get(path_of("a")).expect(200)


@pytest.mark.parametrize("kind", [MERGE_PATCH, STRATEGIC_MERGE_PATCH])
def test_a_patch_adds_to_the_status(client: Client, kind: str) -> None:
    client.patch(STATUS, {"status": {"nodes": {"total": 3}}}, kind=kind).expect(200)
    changed = client.patch(STATUS, {"status": {"nodes": {"ready": 2}}}, kind=kind).expect(200)
    assert changed["status"] == {"nodes": {"total": 3, "ready": 2}}


def test_a_json_patch_of_the_status(client: Client) -> None:
    operations = [{"op": "add", "path": "/status", "value": {"nodes": {"total": 3}}}]
    assert client.patch(STATUS, operations, kind=JSON_PATCH).expect(200)["status"] == {"nodes": {"total": 3}}


def test_strategic_merge_joins_conditions_by_their_type(client: Client) -> None:
    both = {"status": {"conditions": [condition("OK", reason="Fine"), condition("Ready")]}}
    client.patch(STATUS, both, kind=STRATEGIC_MERGE_PATCH).expect(200)
    news = {"status": {"conditions": [condition("Ready", "False"), condition("Offline", "Unknown")]}}
    changed = client.patch(STATUS, news, kind=STRATEGIC_MERGE_PATCH).expect(200)
    assert conditions(changed) == {"OK": "True", "Ready": "False", "Offline": "Unknown"}
    assert next(each for each in changed["status"]["conditions"] if each["type"] == "OK")["reason"] == "Fine"


def test_strategic_merge_changes_one_field_of_a_condition(client: Client) -> None:
    first = {"status": {"conditions": [condition("OK", reason="Fine", message="all is well")]}}
    client.patch(STATUS, first, kind=STRATEGIC_MERGE_PATCH).expect(200)
    patch = {"status": {"conditions": [{"type": "OK", "message": "still"}]}}
    changed = client.patch(STATUS, patch, kind=STRATEGIC_MERGE_PATCH).expect(200)
    (found,) = changed["status"]["conditions"]
    assert (found["reason"], found["message"], found["status"]) == ("Fine", "still", "True")


def test_strategic_merge_deletes_a_condition(client: Client) -> None:
    both = {"status": {"conditions": [condition("OK"), condition("Ready")]}}
    client.patch(STATUS, both, kind=STRATEGIC_MERGE_PATCH).expect(200)
    patch = {"status": {"conditions": [{"$patch": "delete", "type": "OK"}]}}
    assert conditions(client.patch(STATUS, patch, kind=STRATEGIC_MERGE_PATCH).expect(200)) == {"Ready": "True"}


def test_strategic_merge_replaces_all_conditions(client: Client) -> None:
    both = {"status": {"conditions": [condition("OK"), condition("Ready")]}}
    client.patch(STATUS, both, kind=STRATEGIC_MERGE_PATCH).expect(200)
    patch = {"status": {"conditions": [{"$patch": "replace"}, condition("Offline")]}}
    assert conditions(client.patch(STATUS, patch, kind=STRATEGIC_MERGE_PATCH).expect(200)) == {"Offline": "True"}


def test_strategic_merge_joins_properties_by_their_name(client: Client) -> None:
    first = {"status": {"properties": [{"name": "a", "value": "1"}, {"name": "b", "value": "2"}]}}
    client.patch(STATUS, first, kind=STRATEGIC_MERGE_PATCH).expect(200)
    patch = {"status": {"properties": [{"name": "b", "value": "3"}]}}
    changed = client.patch(STATUS, patch, kind=STRATEGIC_MERGE_PATCH).expect(200)
    assert {each["name"]: each["value"] for each in changed["status"]["properties"]} == {"a": "1", "b": "3"}


def test_merge_patch_replaces_conditions_whole(client: Client) -> None:
    client.patch(STATUS, {"status": {"conditions": [condition("OK"), condition("Ready")]}}).expect(200)
    assert conditions(client.patch(STATUS, {"status": {"conditions": [condition("New")]}}).expect(200)) == {
        "New": "True"
    }


@pytest.mark.parametrize(
    ("status", "field"),
    [
        ({"conditions": [condition("OK"), condition("OK")]}, "status.conditions[1]"),
        ({"properties": [{"name": "a", "value": "1"}, {"name": "a", "value": "2"}]}, "status.properties[1]"),
        ({"nodes": {"total": -1}}, "status.nodes.total"),
        ({"nodes": {"total": "three"}}, "status.nodes.total"),
        ({"nodes": []}, "status.nodes"),
        ({"version": "v1"}, "status.version"),
        ("text", "status"),
    ],
)
def test_a_wrong_status_is_invalid_and_changes_nothing(client: Client, status: Any, field: str) -> None:
    before = client.get(path_of("a")).expect(200)
    refused = client.put(STATUS, {**cluster("a"), "status": status}).refused(422, "Invalid")
    assert [found for found, _ in causes(refused)] == [field]
    assert client.get(path_of("a")).expect(200) == before


def test_an_invalid_spec_is_ignored(client: Client) -> None:
    sent = {**cluster("a"), "spec": {"clusterID": 5, "kubernetesApiEndpoints": []}, "status": {"nodes": {"total": 1}}}
    assert client.put(STATUS, sent).expect(200)["status"] == {"nodes": {"total": 1}}


def test_a_stale_version_is_a_conflict(client: Client) -> None:
    stale = client.get(path_of("a")).expect(200)
    client.patch(path_of("a"), {"metadata": {"labels": {"x": "2"}}}).expect(200)
    client.put(STATUS, {**stale, "status": {"nodes": {"total": 1}}}).refused(409, "Conflict")


def test_another_uid_is_a_conflict(client: Client) -> None:
    client.put(STATUS, {**cluster("a", uid="another"), "status": {}}).refused(409, "Conflict")


def test_the_name_must_be_that_of_the_path(client: Client) -> None:
    client.put(STATUS, {**cluster("b"), "status": {}}).refused(400, "BadRequest")


def test_quantities_may_be_numbers_or_text(client: Client) -> None:
    for value in ("1", "1.5", "10Gi", "100m", 3, 0):
        changed = client.patch(STATUS, {"status": {"capacity": {"cpu": value}}}).expect(200)
        assert changed["status"]["capacity"] == {"cpu": value}


def test_there_is_no_other_subresource(client: Client) -> None:
    for path in ("/scale", "/nothing"):
        for method in ("GET", "PUT", "PATCH", "DELETE", "POST"):
            client.request(method, path_of("a") + path, body=cluster("a")).refused(404, "NotFound")
