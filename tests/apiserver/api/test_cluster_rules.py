"""What is particular to clusters: spellings of old clients, credentials, identity."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.apiserver.api.clients import Answer, Client, causes
from tests.apiserver.api.in_process import InProcessClient
from tests.apiserver.api.objects import (
    CLUSTERS,
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC_MERGE_PATCH,
    cluster,
    endpoints,
    path_of,
)

Write = Callable[[Client, dict[str, Any]], Answer]
OBJECT_PATCHES = [MERGE_PATCH, STRATEGIC_MERGE_PATCH]


def spec_operations(spec: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"op": "add", "path": "/spec", "value": spec}]


WRITES: dict[str, Write] = {
    "post": lambda client, spec: client.post(CLUSTERS, {**cluster("new"), "spec": spec}),
    "put that creates": lambda client, spec: client.put(path_of("new"), {**cluster("new"), "spec": spec}),
    "put": lambda client, spec: client.put(path_of("a"), {**cluster("a"), "spec": spec}),
    "json patch": lambda client, spec: client.patch(path_of("a"), spec_operations(spec), kind=JSON_PATCH),
    "merge patch": lambda client, spec: client.patch(path_of("a"), {"spec": spec}, kind=MERGE_PATCH),
    "strategic merge patch": lambda client, spec: client.patch(
        path_of("a"), {"spec": spec}, kind=STRATEGIC_MERGE_PATCH
    ),
}
every_write = pytest.mark.parametrize("write", WRITES)


@pytest.fixture(autouse=True)
def _one_cluster(client: Client) -> None:
    client.post(CLUSTERS, cluster("a")).expect(201)


def written(answer: Answer) -> dict[str, Any]:
    obj: dict[str, Any] = answer.expect(201 if answer.status == 201 else 200)
    return obj


@every_write
def test_the_old_spelling_of_a_client_range_is_renamed_with_a_warning(client: Client, write: str) -> None:
    spec = endpoints({"clientCidr": "10.0.0.0/8", "serverAddress": "one"}, {"clientCIDR": "0.0.0.0/0"})
    answer = WRITES[write](client, spec)
    obj = written(answer)
    found = obj["spec"]["kubernetesApiEndpoints"]["serverEndpoints"]
    assert found == [{"clientCIDR": "10.0.0.0/8", "serverAddress": "one"}, {"clientCIDR": "0.0.0.0/0"}]
    assert len(answer.warnings) == 1
    assert "clientCidr" in answer.warnings[0]
    assert "clientCIDR" in answer.warnings[0]
    assert client.get(path_of(obj["metadata"]["name"])).expect(200) == obj


@pytest.mark.parametrize("mode", ["Strict", "Warn", "Ignore"])
def test_the_old_spelling_is_no_unknown_field(client: Client, mode: str) -> None:
    sent = {**cluster("new"), "spec": endpoints({"clientCidr": "10.0.0.0/8"})}
    made = client.post(CLUSTERS, sent, fieldValidation=mode).expect(201)
    assert made["spec"] == endpoints({"clientCIDR": "10.0.0.0/8"})


@every_write
def test_the_old_spelling_is_validated_under_its_new_name(client: Client, write: str) -> None:
    refused = WRITES[write](client, endpoints({"clientCidr": "nowhere"})).refused(422, "Invalid")
    assert [field for field, _ in causes(refused)] == ["spec.kubernetesApiEndpoints.serverEndpoints[0].clientCIDR"]


def test_a_json_patch_may_name_the_old_spelling(client: Client) -> None:
    client.put(path_of("a"), {**cluster("a"), "spec": endpoints({"serverAddress": "one"})}).expect(200)
    path = "/spec/kubernetesApiEndpoints/serverEndpoints/0/clientCidr"
    answer = client.patch(path_of("a"), [{"op": "add", "path": path, "value": "10.0.0.0/8"}], kind=JSON_PATCH)
    assert answer.expect(200)["spec"] == endpoints({"serverAddress": "one", "clientCIDR": "10.0.0.0/8"})
    assert len(answer.warnings) == 1


@pytest.mark.parametrize("how", ["post", "put that creates", "put", "patch"])
def test_the_name_of_a_cluster_of_clusters_is_refused(client: Client, how: str) -> None:
    given = cluster("new", clusterName="c")
    answer = {
        "post": lambda: client.post(CLUSTERS, given),
        "put that creates": lambda: client.put(path_of("new"), given),
        "put": lambda: client.put(path_of("a"), cluster("a", clusterName="c")),
        "patch": lambda: client.patch(path_of("a"), {"metadata": {"clusterName": "c"}}),
    }[how]()
    assert "metadata.clusterName" in {field for field, _ in causes(answer.refused(422, "Invalid"))}


@pytest.mark.parametrize("value", ["", None])
def test_an_empty_name_of_a_cluster_of_clusters_is_none(client: Client, value: str | None) -> None:
    assert "clusterName" not in client.post(CLUSTERS, cluster("new", clusterName=value)).expect(201)["metadata"]


@pytest.mark.parametrize("how", ["post", "put that creates", "put", "patch"])
def test_a_namespace_is_dropped(client: Client, how: str) -> None:
    given = cluster("new", namespace="default")
    answer = {
        "post": lambda: client.post(CLUSTERS, given),
        "put that creates": lambda: client.put(path_of("new"), given),
        "put": lambda: client.put(path_of("a"), cluster("a", namespace="default")),
        "patch": lambda: client.patch(path_of("a"), {"metadata": {"namespace": "default"}}),
    }[how]()
    assert "namespace" not in written(answer)["metadata"]


NULLS: list[dict[str, Any]] = [
    {"spec": None},
    {"spec": {"authInfo": None, "cloudProvider": None, "kubernetesApiEndpoints": None, "clusterID": None}},
    {"spec": {"authInfo": {"providers": None, "user": None}}},
    {"spec": {"kubernetesApiEndpoints": {"serverEndpoints": None, "caBundle": None}}},
    {"spec": {"authInfo": {"providers": [{"name": "x", "type": None, "config": None}]}}},
    {"status": None},
]


@pytest.mark.parametrize("part", NULLS)
@pytest.mark.parametrize("mode", ["Strict", "Warn"])
def test_null_counts_as_absent(client: Client, part: dict[str, Any], mode: str) -> None:
    answer = client.post(CLUSTERS, {**cluster("new"), **part}, fieldValidation=mode)
    assert b"null" not in answer.body
    assert answer.expect(201)
    assert answer.warnings == []
    assert b"null" not in client.put(path_of("a"), {**cluster("a"), **part}).body


def test_null_in_the_status_counts_as_absent(client: Client) -> None:
    sent = {**cluster("a"), "status": {"conditions": None, "nodes": None, "version": {"kubernetes": "v1"}}}
    assert client.put(path_of("a") + "/status", sent).expect(200)["status"] == {"version": {"kubernetes": "v1"}}


def with_id(client: Client) -> dict[str, Any]:
    sent = {**cluster("id"), "spec": {"clusterID": "one", "cloudProvider": {"name": "aws"}}}
    made: dict[str, Any] = client.post(CLUSTERS, sent).expect(201)
    return made


CHANGES: dict[str, Callable[[Client], Answer]] = {
    "put another": lambda client: client.put(path_of("id"), {**cluster("id"), "spec": {"clusterID": "two"}}),
    "put without": lambda client: client.put(path_of("id"), cluster("id")),
    "put empty": lambda client: client.put(path_of("id"), {**cluster("id"), "spec": {"clusterID": ""}}),
    "put null": lambda client: client.put(path_of("id"), {**cluster("id"), "spec": {"clusterID": None}}),
    "put without spec": lambda client: client.put(path_of("id"), cluster("id", provider=None)),
    "patch another": lambda client: client.patch(path_of("id"), {"spec": {"clusterID": "two"}}),
    "patch by moving": lambda client: client.patch(
        path_of("id"),
        [
            {"op": "move", "from": "/spec", "path": "/status"},
            {"op": "add", "path": "/spec", "value": {"clusterID": "two"}},
        ],
        kind=JSON_PATCH,
    ),
    "patch away": lambda client: client.patch(path_of("id"), {"spec": {"clusterID": None}}),
    "patch the spec away": lambda client: client.patch(path_of("id"), {"spec": None}),
    "strategic patch away": lambda client: client.patch(
        path_of("id"), {"spec": {"clusterID": None}}, kind=STRATEGIC_MERGE_PATCH
    ),
    "json patch away": lambda client: client.patch(
        path_of("id"), [{"op": "remove", "path": "/spec/clusterID"}], kind=JSON_PATCH
    ),
    "json patch the spec away": lambda client: client.patch(
        path_of("id"), [{"op": "remove", "path": "/spec"}], kind=JSON_PATCH
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_an_identity_is_neither_changed_nor_removed(client: Client, change: str) -> None:
    made = with_id(client)
    refused = CHANGES[change](client).refused(422, "Invalid")
    assert "spec.clusterID" in {field for field, _ in causes(refused)} or change.endswith(("spec", "spec away"))
    assert client.get(path_of("id")).expect(200) == made


def test_an_identity_may_come_later_and_stay(client: Client) -> None:
    client.patch(path_of("a"), {"spec": {"clusterID": "one"}}).expect(200)
    client.patch(path_of("a"), {"spec": {"cloudProvider": {"name": "gce"}}}).expect(200)
    assert client.patch(path_of("a"), {"spec": {"clusterID": "one"}}).expect(200)["spec"]["clusterID"] == "one"


def test_two_clusters_may_claim_one_identity(client: Client) -> None:
    for name in ("x", "y"):
        client.post(CLUSTERS, {**cluster(name), "spec": {"clusterID": "one"}}).expect(201)


def test_an_identity_ends_with_its_object(client: Client) -> None:
    with_id(client)
    client.delete(path_of("id")).expect(200)
    client.post(CLUSTERS, {**cluster("id"), "spec": {"clusterID": "two"}}).expect(201)


SECRET = {"authInfo": {"providers": [{"name": "x", "config": {"password": "correct horse battery"}}]}}
POINTER = {"authInfo": {"providers": [{"name": "x", "config": {"password": "vault:secret/x"}}]}}
FIELD = "spec.authInfo.providers[0].config.password"


@every_write
def test_a_credential_is_warned_of_by_default(client: Client, write: str) -> None:
    answer = WRITES[write](client, SECRET)
    assert written(answer)["spec"]["authInfo"] == SECRET["authInfo"]
    assert [text for text in answer.warnings if text.startswith(f"{FIELD}: looks like a credential")]
    assert all("correct horse" not in text for text in answer.warnings)


@every_write
def test_a_pointer_to_a_credential_is_fine(client: Client, write: str) -> None:
    answer = WRITES[write](client, POINTER)
    written(answer)
    assert answer.warnings == []


def test_a_credential_is_warned_of_once_and_not_with_every_write(client: Client) -> None:
    client.put(path_of("a"), {**cluster("a"), "spec": SECRET}).expect(200)
    assert client.patch(path_of("a"), {"metadata": {"labels": {"x": "1"}}}).warnings == []


@every_write
def test_a_credential_can_be_rejected(serve: Any, write: str) -> None:
    client: InProcessClient = serve("--secret-lint=reject")
    client.post(CLUSTERS, cluster("a")).expect(201)
    before = client.get(CLUSTERS).expect(200)
    answer = WRITES[write](client, SECRET)
    assert causes(answer.refused(422, "Invalid")) == [(FIELD, "FieldValueForbidden")]
    assert b"correct horse" not in answer.body
    assert client.get(CLUSTERS).expect(200) == before
    written(WRITES[write](client, POINTER))


@every_write
def test_the_look_out_can_be_off(serve: Any, write: str) -> None:
    client: InProcessClient = serve("--secret-lint=off")
    client.post(CLUSTERS, cluster("a")).expect(201)
    answer = WRITES[write](client, SECRET)
    written(answer)
    assert answer.warnings == []


@pytest.mark.parametrize("mode", ["warn", "off", "reject"])
def test_a_private_key_in_the_bundle_is_never_taken(serve: Any, mode: str) -> None:
    client: InProcessClient = serve(f"--secret-lint={mode}")
    bundle = "LS0tLS1CRUdJTiBQUklWQVRFIEtFWS0tLS0tCk1JSUUKLS0tLS1FTkQgUFJJVkFURSBLRVktLS0tLQo="
    refused = client.post(CLUSTERS, {**cluster("a"), "spec": {"kubernetesApiEndpoints": {"caBundle": bundle}}})
    fields = [field for field, _ in causes(refused.refused(422, "Invalid"))]
    assert "spec.kubernetesApiEndpoints.caBundle" in fields


@every_write
@pytest.mark.parametrize(
    ("endpoint", "field"),
    [
        ({"serverAddress": "not an address"}, "serverAddress"),
        ({"serverAddress": "ftp://example.com"}, "serverAddress"),
        ({"clientCIDR": "10.0.0.0/40"}, "clientCIDR"),
    ],
)
def test_addresses_are_looked_at_by_every_write(
    client: Client, write: str, endpoint: dict[str, str], field: str
) -> None:
    refused = WRITES[write](client, endpoints(endpoint)).refused(422, "Invalid")
    found = [each for each, _ in causes(refused)]
    assert found == [f"spec.kubernetesApiEndpoints.serverEndpoints[0].{field}"]


@pytest.mark.parametrize(
    "address",
    ["host", "host:6443", "10.0.0.1", "10.0.0.1:6443", "[::1]:6443", "::1", "https://host:6443/path", "http://host"],
)
def test_addresses_that_are_fine(client: Client, address: str) -> None:
    client.post(CLUSTERS, {**cluster("new"), "spec": endpoints({"serverAddress": address})}).expect(201)
