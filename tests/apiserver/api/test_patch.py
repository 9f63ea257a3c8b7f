"""The three kinds of patch; apply has tests of its own."""

from __future__ import annotations

from typing import Any

import pytest

from tests.apiserver.api.clients import Answer, Client, causes
from tests.apiserver.api.objects import (
    CLUSTERS,
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC_MERGE_PATCH,
    cluster,
    endpoints,
    path_of,
)

KINDS = [JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH]
OBJECT_KINDS = [MERGE_PATCH, STRATEGIC_MERGE_PATCH]


def setting(kind: str, field: str, value: Any) -> Any:
    """The patch of a kind that sets one field, such as ``metadata.labels``."""
    if kind == JSON_PATCH:
        return [{"op": "add", "path": "/" + field.replace(".", "/"), "value": value}]
    for part in reversed(field.split(".")):
        value = {part: value}
    return value


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_patch_changes_one_thing(client: Client, kind: str) -> None:
    made = client.post(CLUSTERS, cluster("a", annotations={"kept": "1"})).expect(201)
    changed = client.patch(path_of("a"), setting(kind, "metadata.labels", {"x": "1"}), kind=kind).expect(200)
    assert changed["metadata"]["labels"] == {"x": "1"}
    assert changed["metadata"]["annotations"] == {"kept": "1"}
    assert changed["spec"] == made["spec"]
    assert client.get(path_of("a")).expect(200) == changed


@pytest.mark.parametrize("kind", KINDS)
def test_a_patch_never_creates(client: Client, kind: str) -> None:
    client.patch(path_of("a"), setting(kind, "metadata.labels", {}), kind=kind).refused(404, "NotFound")
    client.patch(path_of("a") + "/status", setting(kind, "status", {}), kind=kind).refused(404, "NotFound")


@pytest.mark.parametrize(
    ("kind", "bodies"),
    [
        (JSON_PATCH, [{}, "text", 5, ["text"], [5]]),
        (MERGE_PATCH, [[], "text", 5]),
        (STRATEGIC_MERGE_PATCH, [[], "text"]),
    ],
)
def test_a_patch_that_cannot_be_decoded_is_refused(client: Client, kind: str, bodies: list[Any]) -> None:
    made = client.post(CLUSTERS, cluster("a")).expect(201)
    for body in (b"", b"{", b"[{", b"nonsense", b'{"a":}', b"\xff", *bodies):
        client.patch(path_of("a"), body, kind=kind).refused(400, "BadRequest")
    assert client.get(path_of("a")).expect(200) == made


def test_the_kind_of_patch_must_be_named(client: Client) -> None:
    client.post(CLUSTERS, cluster("a")).expect(201)
    for content_type in ("", "application/json", "application/yaml", "text/plain", None):
        client.patch(path_of("a"), {}, headers={"Content-Type": content_type}).refused(415, "UnsupportedMediaType")


@pytest.mark.parametrize("kind", KINDS)
def test_a_resource_version_is_a_precondition(client: Client, kind: str) -> None:
    version = client.post(CLUSTERS, cluster("a")).expect(201)["metadata"]["resourceVersion"]
    patch = setting(kind, "metadata.resourceVersion", version)
    client.patch(path_of("a"), patch, kind=kind).expect(200)
    newer = client.patch(path_of("a"), {"metadata": {"labels": {"x": "1"}}}).expect(200)
    client.patch(path_of("a"), patch, kind=kind).refused(409, "Conflict")
    assert client.get(path_of("a")).expect(200) == newer


@pytest.mark.parametrize("kind", KINDS)
def test_fields_that_cannot_be_patched(client: Client, kind: str) -> None:
    made = client.post(CLUSTERS, cluster("a")).expect(201)

    def patched(field: str, value: Any) -> Answer:
        return client.patch(path_of("a"), setting(kind, field, value), kind=kind)

    patched("metadata.name", "b").refused(400, "BadRequest")
    refused = patched("metadata.uid", "another").refused(422, "Invalid")
    assert set(causes(refused)) == {("metadata.uid", "FieldValueInvalid")}
    patched("kind", "Other").refused(422, "Invalid")
    patched("apiVersion", "example.com/v1").refused(422, "Invalid")
    assert patched("metadata.generation", 99).expect(200) == made
    assert patched("metadata.creationTimestamp", "2001-02-03T04:05:06Z").expect(200) == made
    refused = patched("spec.cloudProvider", {"name": 5}).refused(422, "Invalid")
    assert causes(refused) == [("spec.cloudProvider.name", "FieldValueTypeInvalid")]
    assert patched("metadata.labels", "text").status in (400, 422)
    assert client.get(path_of("a")).expect(200) == made


@pytest.mark.parametrize("kind", OBJECT_KINDS)
def test_null_removes_and_removes_only_that(client: Client, kind: str) -> None:
    client.post(CLUSTERS, cluster("a", labels={"x": "1", "y": "2"})).expect(201)
    changed = client.patch(path_of("a"), {"metadata": {"labels": {"x": None, "z": None}}}, kind=kind).expect(200)
    assert changed["metadata"]["labels"] == {"y": "2"}
    changed = client.patch(path_of("a"), {"metadata": {"labels": None}, "spec": None}, kind=kind).expect(200)
    assert "labels" not in changed["metadata"]
    assert "spec" not in changed


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "test", "path": "/metadata/name", "value": "b"},
        {"op": "remove", "path": "/metadata/labels"},
        {"op": "add", "path": "/metadata/finalizers/7", "value": "example.com/x"},
        {"op": "dance", "path": "/spec"},
    ],
)
def test_an_operation_that_fails_undoes_the_whole_patch(client: Client, operation: dict[str, str]) -> None:
    made = client.post(CLUSTERS, cluster("a")).expect(201)
    first = {"op": "add", "path": "/metadata/annotations", "value": {"x": "1"}}
    refused = client.patch(path_of("a"), [first, operation], kind=JSON_PATCH).refused(422, "Invalid")
    assert refused["details"] == {}
    assert client.get(path_of("a")).expect(200) == made


def test_too_many_operations_are_refused(client: Client) -> None:
    client.post(CLUSTERS, cluster("a")).expect(201)
    holds = {"op": "test", "path": "/kind", "value": "Cluster"}
    client.patch(path_of("a"), [holds] * 10_000, kind=JSON_PATCH).expect(200)
    client.patch(path_of("a"), [holds] * 10_001, kind=JSON_PATCH).refused(413, "RequestEntityTooLarge")


def test_a_patch_whose_result_is_no_object_is_refused(client: Client) -> None:
    made = client.post(CLUSTERS, cluster("a")).expect(201)
    values: list[Any] = [[], "text", None, 5]
    for value in values:
        answer = client.patch(path_of("a"), [{"op": "replace", "path": "", "value": value}], kind=JSON_PATCH)
        assert answer.status in (400, 422), answer.body
    assert client.get(path_of("a")).expect(200) == made


def test_a_test_operation_is_a_precondition_of_the_others(client: Client) -> None:
    client.post(CLUSTERS, cluster("a", labels={"lock": "free"})).expect(201)
    take = [
        {"op": "test", "path": "/metadata/labels/lock", "value": "free"},
        {"op": "replace", "path": "/metadata/labels/lock", "value": "mine"},
    ]
    client.patch(path_of("a"), take, kind=JSON_PATCH).expect(200)
    client.patch(path_of("a"), take, kind=JSON_PATCH).refused(422, "Invalid")


def test_strategic_merge_joins_finalizers_where_merge_replaces_them(client: Client) -> None:
    client.post(CLUSTERS, cluster("a", finalizers=["example.com/a"])).expect(201)
    more = {"metadata": {"finalizers": ["example.com/b"]}}
    joined = client.patch(path_of("a"), more, kind=STRATEGIC_MERGE_PATCH).expect(200)
    assert set(joined["metadata"]["finalizers"]) == {"example.com/a", "example.com/b"}
    replaced = client.patch(path_of("a"), more, kind=MERGE_PATCH).expect(200)
    assert replaced["metadata"]["finalizers"] == ["example.com/b"]


def test_strategic_merge_deletes_from_a_primitive_list(client: Client) -> None:
    client.post(CLUSTERS, cluster("a", finalizers=["example.com/a", "example.com/b"])).expect(201)
    patch = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/a"]}}
    changed = client.patch(path_of("a"), patch, kind=STRATEGIC_MERGE_PATCH).expect(200)
    assert changed["metadata"]["finalizers"] == ["example.com/b"]


def test_strategic_merge_joins_owner_references_by_uid(client: Client) -> None:
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "one", "uid": "u-1"}
    client.post(CLUSTERS, cluster("a", ownerReferences=[owner])).expect(201)
    other = {**owner, "name": "two", "uid": "u-2"}
    patch = {"metadata": {"ownerReferences": [other, {"uid": "u-1", "name": "renamed"}]}}
    changed = client.patch(path_of("a"), patch, kind=STRATEGIC_MERGE_PATCH).expect(200)
    found = {reference["uid"]: reference["name"] for reference in changed["metadata"]["ownerReferences"]}
    assert found == {"u-1": "renamed", "u-2": "two"}


def test_strategic_merge_replaces_where_a_directive_says_so(client: Client) -> None:
    client.post(CLUSTERS, cluster("a", labels={"x": "1", "y": "2"})).expect(201)
    patch = {"metadata": {"labels": {"$patch": "replace", "z": "3"}}}
    changed = client.patch(path_of("a"), patch, kind=STRATEGIC_MERGE_PATCH).expect(200)
    assert changed["metadata"]["labels"] == {"z": "3"}


@pytest.mark.parametrize(
    ("subresource", "patch"),
    [
        ("", {"metadata": {"labels": {"$patch": "dance"}}}),
        ("/status", {"status": {"conditions": [{"status": "True"}]}}),
    ],
)
def test_an_invalid_strategic_merge_patch_is_refused(client: Client, subresource: str, patch: Any) -> None:
    made = client.post(CLUSTERS, cluster("a", labels={"x": "1"}, finalizers=["example.com/a"])).expect(201)
    answer = client.patch(path_of("a") + subresource, patch, kind=STRATEGIC_MERGE_PATCH)
    assert answer.status in (400, 422), answer.body
    assert client.get(path_of("a")).expect(200) == made


def test_endpoints_are_one_value_to_every_kind_of_merge(client: Client) -> None:
    made = cluster("a", provider=None)
    made["spec"] = endpoints({"serverAddress": "one"}, {"serverAddress": "two"})
    client.post(CLUSTERS, made).expect(201)
    for kind, address in ((MERGE_PATCH, "three"), (STRATEGIC_MERGE_PATCH, "four")):
        patch = {"spec": endpoints({"serverAddress": address})}
        assert client.patch(path_of("a"), patch, kind=kind).expect(200)["spec"] == patch["spec"]


def test_a_patch_of_status_through_the_main_path_changes_nothing(client: Client) -> None:
    made = client.post(CLUSTERS, cluster("a")).expect(201)
    assert client.patch(path_of("a"), {"status": {"nodes": {"total": 1}}}).expect(200) == made


def test_two_patches_of_different_fields_both_hold(client: Client) -> None:
    client.post(CLUSTERS, cluster("a")).expect(201)
    client.patch(path_of("a"), {"metadata": {"labels": {"x": "1"}}}).expect(200)
    changed = client.patch(path_of("a"), {"metadata": {"labels": {"y": "2"}}}).expect(200)
    assert changed["metadata"]["labels"] == {"x": "1", "y": "2"}
