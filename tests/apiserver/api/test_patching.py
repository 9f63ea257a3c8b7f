from __future__ import annotations

from typing import Any

import pytest

from tests.apiserver.api.clients import Client, causes
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


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("body", [b"", b"{", b"[{", b"nonsense", b'{"a":}', b"\xff"], ids=repr)
def test_a_patch_that_is_no_json_cannot_be_read(client: Client, kind: str, body: bytes) -> None:
    client.post(CLUSTERS, cluster("a")).expect(201)
    client.patch(path_of("a"), body, kind=kind).refused(400, "BadRequest")


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (JSON_PATCH, {}),
        (JSON_PATCH, "text"),
        (JSON_PATCH, 5),
        (JSON_PATCH, ["text"]),
        (JSON_PATCH, [5]),
        (MERGE_PATCH, []),
        (MERGE_PATCH, "text"),
        (MERGE_PATCH, 5),
        (STRATEGIC_MERGE_PATCH, []),
        (STRATEGIC_MERGE_PATCH, "text"),
    ],
)
def test_a_patch_of_the_wrong_shape_cannot_be_read(client: Client, kind: str, body: Any) -> None:
    made = client.post(CLUSTERS, cluster("a")).expect(201)
    client.patch(path_of("a"), body, kind=kind).refused(400, "BadRequest")
    assert client.get(path_of("a")).expect(200) == made


@pytest.mark.parametrize("content_type", ["", "application/json", "application/yaml", "text/plain", None])
def test_the_kind_of_patch_must_be_named(client: Client, content_type: str | None) -> None:
    client.post(CLUSTERS, cluster("a")).expect(201)
    client.patch(path_of("a"), {}, headers={"Content-Type": content_type}).refused(415, "UnsupportedMediaType")


@pytest.mark.parametrize("kind", KINDS)
def test_the_current_resource_version_is_a_condition_that_holds(client: Client, kind: str) -> None:
    version = client.post(CLUSTERS, cluster("a")).expect(201)["metadata"]["resourceVersion"]
    client.patch(path_of("a"), setting(kind, "metadata.resourceVersion", version), kind=kind).expect(200)


@pytest.mark.parametrize("kind", KINDS)
def test_an_older_resource_version_is_a_condition_that_fails(client: Client, kind: str) -> None:
    version = client.post(CLUSTERS, cluster("a")).expect(201)["metadata"]["resourceVersion"]
    newer = client.patch(path_of("a"), {"metadata": {"labels": {"x": "1"}}}).expect(200)
    stale = setting(kind, "metadata.resourceVersion", version)
    client.patch(path_of("a"), stale, kind=kind).refused(409, "Conflict")
    assert client.get(path_of("a")).expect(200) == newer


@pytest.mark.parametrize("kind", KINDS)
def test_the_name_cannot_be_patched(client: Client, kind: str) -> None:
    client.post(CLUSTERS, cluster("a")).expect(201)
    client.patch(path_of("a"), setting(kind, "metadata.name", "b"), kind=kind).refused(400, "BadRequest")


@pytest.mark.parametrize("kind", KINDS)
def test_the_uid_cannot_be_patched(client: Client, kind: str) -> None:
    client.post(CLUSTERS, cluster("a")).expect(201)
    refused = client.patch(path_of("a"), setting(kind, "metadata.uid", "another"), kind=kind).refused(422, "Invalid")
    assert set(causes(refused)) == {("metadata.uid", "FieldValueInvalid")}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("field", "value"), [("kind", "Other"), ("apiVersion", "example.com/v1")])
def test_the_type_cannot_be_patched(client: Client, kind: str, field: str, value: str) -> None:
    made = client.post(CLUSTERS, cluster("a")).expect(201)
    client.patch(path_of("a"), setting(kind, field, value), kind=kind).refused(422, "Invalid")
    assert client.get(path_of("a")).expect(200) == made


@pytest.mark.parametrize("kind", KINDS)
def test_the_birth_of_an_object_cannot_be_patched(client: Client, kind: str) -> None:
    made = client.post(CLUSTERS, cluster("a")).expect(201)
    for field, value in (("generation", 99), ("creationTimestamp", "2001-02-03T04:05:06Z")):
        patch = setting(kind, f"metadata.{field}", value)
        assert client.patch(path_of("a"), patch, kind=kind).expect(200) == made


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_patch_makes_invalid_is_refused(client: Client, kind: str) -> None:
    made = client.post(CLUSTERS, cluster("a")).expect(201)
    patch = setting(kind, "spec.cloudProvider", {"name": 5})
    refused = client.patch(path_of("a"), patch, kind=kind).refused(422, "Invalid")
    assert causes(refused) == [("spec.cloudProvider.name", "FieldValueTypeInvalid")]
    assert client.get(path_of("a")).expect(200) == made


@pytest.mark.parametrize("kind", KINDS)
def test_metadata_of_the_wrong_type_is_refused(client: Client, kind: str) -> None:
    made = client.post(CLUSTERS, cluster("a")).expect(201)
    answer = client.patch(path_of("a"), setting(kind, "metadata.labels", "text"), kind=kind)
    assert answer.status in (400, 422)
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
    "operations",
    [
        [{"op": "test", "path": "/metadata/name", "value": "b"}],
        [{"op": "remove", "path": "/metadata/labels"}],
        [{"op": "replace", "path": "/spec/nothing/here", "value": 1}],
        [{"op": "add", "path": "/spec/nothing/here", "value": 1}],
        [{"op": "move", "from": "/spec/nothing", "path": "/spec/clusterID"}],
        [{"op": "copy", "from": "/nothing/here", "path": "/spec/clusterID"}],
        [{"op": "add", "path": "/metadata/finalizers/7", "value": "example.com/x"}],
        [{"op": "dance", "path": "/spec"}],
        [{"path": "/spec"}],
        [{"op": "remove"}],
        [{"op": "remove", "path": "spec"}],
    ],
)
def test_an_operation_that_cannot_be_done_undoes_the_whole_patch(client: Client, operations: list[Any]) -> None:
    made = client.post(CLUSTERS, cluster("a")).expect(201)
    first = {"op": "add", "path": "/metadata/annotations", "value": {"x": "1"}}
    refused = client.patch(path_of("a"), [first, *operations], kind=JSON_PATCH).refused(422, "Invalid")
    assert refused["details"] == {}
    assert client.get(path_of("a")).expect(200) == made


def test_too_many_operations_are_refused(client: Client) -> None:
    client.post(CLUSTERS, cluster("a")).expect(201)
    holds = {"op": "test", "path": "/kind", "value": "Cluster"}
    client.patch(path_of("a"), [holds] * 10_000, kind=JSON_PATCH).expect(200)
    client.patch(path_of("a"), [holds] * 10_001, kind=JSON_PATCH).refused(413, "RequestEntityTooLarge")


def test_replacing_the_whole_document_by_what_is_no_object_is_refused(client: Client) -> None:
    made = client.post(CLUSTERS, cluster("a")).expect(201)
    values: list[Any] = [[], "text", None, 5]
    for value in values:
        answer = client.patch(path_of("a"), [{"op": "replace", "path": "", "value": value}], kind=JSON_PATCH)
        assert answer.status in (400, 422), answer.body
    assert client.get(path_of("a")).expect(200) == made


def test_a_condition_in_the_patch_guards_its_other_operations(client: Client) -> None:
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
def test_a_strategic_merge_patch_that_makes_no_sense_is_a_mistake_of_the_client(
    client: Client, subresource: str, patch: Any
) -> None:
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
