"""The rules of clusters alone: the spelling of old clients, credentials, the cluster ID."""

from __future__ import annotations

from collections.abc import Callable, Iterator
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


def every_write(client: Client, spec: dict[str, Any]) -> Iterator[Answer]:
    """The answers to all requests that write a spec, each to the state that was there before."""
    yield client.post(CLUSTERS, {**cluster("new"), "spec": spec})
    client.delete(path_of("new"))
    yield client.put(path_of("new"), {**cluster("new"), "spec": spec})
    client.delete(path_of("new"))
    yield client.put(path_of("a"), {**cluster("a"), "spec": spec})
    client.put(path_of("a"), cluster("a")).expect(200)
    for kind in (JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH):
        patch = [{"op": "add", "path": "/spec", "value": spec}] if kind == JSON_PATCH else {"spec": spec}
        yield client.patch(path_of("a"), patch, kind=kind)
        client.put(path_of("a"), cluster("a")).expect(200)


Serve = Callable[..., InProcessClient]


@pytest.fixture(autouse=True)
def _one_cluster(client: Client) -> None:
    client.post(CLUSTERS, cluster("a")).expect(201)


def written(answer: Answer) -> dict[str, Any]:
    obj: dict[str, Any] = answer.expect(201 if answer.status == 201 else 200)
    return obj


def test_the_old_spelling_of_a_client_range_is_renamed_with_a_warning(client: Client) -> None:
    spec = endpoints({"clientCidr": "10.0.0.0/8", "serverAddress": "one"}, {"clientCIDR": "0.0.0.0/0"})
    for answer in every_write(client, spec):
        obj = written(answer)
        found = obj["spec"]["kubernetesApiEndpoints"]["serverEndpoints"]
        assert found == [{"clientCIDR": "10.0.0.0/8", "serverAddress": "one"}, {"clientCIDR": "0.0.0.0/0"}]
        assert len(answer.warnings) == 1
        assert "clientCidr" in answer.warnings[0]
        assert "clientCIDR" in answer.warnings[0]
        assert client.get(path_of(obj["metadata"]["name"])).expect(200) == obj


@pytest.mark.parametrize("mode", ["Strict", "Warn", "Ignore"])
def test_the_old_spelling_is_not_an_unknown_field(client: Client, mode: str) -> None:
    sent = {**cluster("new"), "spec": endpoints({"clientCidr": "10.0.0.0/8"})}
    made = client.post(CLUSTERS, sent, fieldValidation=mode).expect(201)
    assert made["spec"] == endpoints({"clientCIDR": "10.0.0.0/8"})


def test_a_json_patch_may_name_the_old_spelling(client: Client) -> None:
    client.put(path_of("a"), {**cluster("a"), "spec": endpoints({"serverAddress": "one"})}).expect(200)
    path = "/spec/kubernetesApiEndpoints/serverEndpoints/0/clientCidr"
    answer = client.patch(path_of("a"), [{"op": "add", "path": path, "value": "10.0.0.0/8"}], kind=JSON_PATCH)
    assert answer.expect(200)["spec"] == endpoints({"serverAddress": "one", "clientCIDR": "10.0.0.0/8"})
    assert len(answer.warnings) == 1


def metadata_writes(client: Client, **metadata: Any) -> Iterator[Answer]:
    """The answers to all requests that write metadata."""
    yield client.post(CLUSTERS, cluster("new", **metadata))
    yield client.put(path_of("other"), cluster("other", **metadata))
    yield client.put(path_of("a"), cluster("a", **metadata))
    yield client.patch(path_of("a"), {"metadata": metadata})


def test_a_cluster_name_in_the_metadata_is_refused(client: Client) -> None:
    for answer in metadata_writes(client, clusterName="c"):
        assert "metadata.clusterName" in {field for field, _ in causes(answer.refused(422, "Invalid"))}


def test_an_empty_cluster_name_in_the_metadata_is_dropped(client: Client) -> None:
    for name, value in (("x", ""), ("y", None)):
        assert "clusterName" not in client.post(CLUSTERS, cluster(name, clusterName=value)).expect(201)["metadata"]


def test_a_namespace_is_dropped(client: Client) -> None:
    for answer in metadata_writes(client, namespace="default"):
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
def test_null_counts_as_absent(client: Client, part: dict[str, Any]) -> None:
    for mode in ("Strict", "Warn"):
        answer = client.post(CLUSTERS, {**cluster(mode.lower()), **part}, fieldValidation=mode)
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
def test_a_cluster_id_is_neither_changed_nor_removed(client: Client, change: str) -> None:
    made = with_id(client)
    refused = CHANGES[change](client).refused(422, "Invalid")
    assert "spec.clusterID" in {field for field, _ in causes(refused)} or change.endswith(("spec", "spec away"))
    assert client.get(path_of("id")).expect(200) == made


def test_a_cluster_id_may_be_set_later(client: Client) -> None:
    client.patch(path_of("a"), {"spec": {"clusterID": "one"}}).expect(200)
    client.patch(path_of("a"), {"spec": {"cloudProvider": {"name": "gce"}}}).expect(200)
    assert client.patch(path_of("a"), {"spec": {"clusterID": "one"}}).expect(200)["spec"]["clusterID"] == "one"


def test_the_successor_of_a_cluster_may_have_another_cluster_id(client: Client) -> None:
    with_id(client)
    client.delete(path_of("id")).expect(200)
    client.post(CLUSTERS, {**cluster("id"), "spec": {"clusterID": "two"}}).expect(201)


SECRET = {"authInfo": {"providers": [{"name": "x", "config": {"password": "correct horse battery"}}]}}
POINTER = {"authInfo": {"providers": [{"name": "x", "config": {"password": "vault:secret/x"}}]}}
FIELD = "spec.authInfo.providers[0].config.password"


def test_a_credential_gives_a_warning_by_default(client: Client) -> None:
    for answer in every_write(client, SECRET):
        assert written(answer)["spec"]["authInfo"] == SECRET["authInfo"]
        assert [text for text in answer.warnings if text.startswith(f"{FIELD}: looks like a credential")]
        assert all("correct horse" not in text for text in answer.warnings)


def test_a_reference_to_a_credential_gives_no_warning(client: Client) -> None:
    for answer in every_write(client, POINTER):
        written(answer)
        assert answer.warnings == []


def test_a_stored_credential_gives_no_warning_with_later_writes(client: Client) -> None:
    client.put(path_of("a"), {**cluster("a"), "spec": SECRET}).expect(200)
    assert client.patch(path_of("a"), {"metadata": {"labels": {"x": "1"}}}).warnings == []


def test_a_credential_can_be_rejected(serve: Serve) -> None:
    client = serve("--secret-lint=reject")
    client.post(CLUSTERS, cluster("a")).expect(201)
    before = client.get(CLUSTERS).expect(200)
    for answer in every_write(client, SECRET):
        assert causes(answer.refused(422, "Invalid")) == [(FIELD, "FieldValueForbidden")]
        assert b"correct horse" not in answer.body
        assert client.get(CLUSTERS).expect(200) == before
    for answer in every_write(client, POINTER):
        written(answer)


def test_the_secret_lint_can_be_off(serve: Serve) -> None:
    client = serve("--secret-lint=off")
    client.post(CLUSTERS, cluster("a")).expect(201)
    for answer in every_write(client, SECRET):
        written(answer)
        assert answer.warnings == []


@pytest.mark.parametrize("mode", ["warn", "off", "reject"])
def test_a_private_key_in_the_ca_bundle_is_always_refused(serve: Serve, mode: str) -> None:
    client = serve(f"--secret-lint={mode}")
    bundle = "LS0tLS1CRUdJTiBQUklWQVRFIEtFWS0tLS0tCk1JSUUKLS0tLS1FTkQgUFJJVkFURSBLRVktLS0tLQo="
    refused = client.post(CLUSTERS, {**cluster("a"), "spec": {"kubernetesApiEndpoints": {"caBundle": bundle}}})
    fields = [field for field, _ in causes(refused.refused(422, "Invalid"))]
    assert "spec.kubernetesApiEndpoints.caBundle" in fields


@pytest.mark.parametrize(
    ("endpoint", "field"),
    [
        ({"serverAddress": "not an address"}, "serverAddress"),
        ({"serverAddress": "ftp://example.com"}, "serverAddress"),
        ({"clientCIDR": "10.0.0.0/40"}, "clientCIDR"),
        ({"clientCidr": "nowhere"}, "clientCIDR"),
    ],
)
def test_every_write_validates_addresses(client: Client, endpoint: dict[str, str], field: str) -> None:
    for answer in every_write(client, endpoints(endpoint)):
        found = [each for each, _ in causes(answer.refused(422, "Invalid"))]
        assert found == [f"spec.kubernetesApiEndpoints.serverEndpoints[0].{field}"]


def test_valid_addresses(client: Client) -> None:
    urls = ["https://host:6443/path", "http://host"]
    for address in ["host", "host:6443", "10.0.0.1", "10.0.0.1:6443", "[::1]:6443", "::1", *urls]:
        client.put(path_of("a"), {**cluster("a"), "spec": endpoints({"serverAddress": address})}).expect(200)
