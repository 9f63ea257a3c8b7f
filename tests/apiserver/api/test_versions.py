"""Clusters in both versions: every request in either sees one object."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.apiserver.api.clients import Client, causes
from tests.apiserver.api.in_process import InProcessClient
from tests.apiserver.api.objects import (
    APPLY_PATCH,
    CLUSTERS,
    JSON_PATCH,
    PARTIAL_LIST,
    TABLE,
    cluster,
    names,
    path_of,
)

GROUP = "clusterregistry.k8s.io"
BETAS = f"/apis/{GROUP}/v1beta1/clusters"
LOCATION = f"{GROUP}/location"
GENERATIONS = f"{GROUP}/observed-generations"
READY = {
    "type": "Ready",
    "status": "True",
    "reason": "Seen",
    "message": "",
    "lastTransitionTime": "2026-01-02T03:04:05Z",
    "observedGeneration": 1,
}


def beta(name: str = "a", *, status: Any = None, **spec: Any) -> dict[str, Any]:
    obj: dict[str, Any] = {
        "apiVersion": f"{GROUP}/v1beta1",
        "kind": "Cluster",
        "metadata": {"name": name},
        "spec": spec,
    }
    return obj if status is None else {**obj, "status": status}


def annotations_of(obj: dict[str, Any]) -> Any:
    return obj["metadata"].get("annotations", {})


@pytest.fixture
def located(client: Client) -> Client:
    """A client of a registry with a cluster that has all that v1alpha1 cannot express."""
    providers = [{"name": "p", "type": "corp"}]
    client.post(BETAS, beta(location={"region": "north"}, authInfo={"providers": providers})).expect(201)
    client.put(f"{BETAS}/a/status", beta(status={"conditions": [READY]})).expect(200)
    return client


def test_v1beta1_is_preferred(client: Client) -> None:
    group = client.get(f"/apis/{GROUP}").expect(200)
    assert [each["version"] for each in group["versions"]] == ["v1beta1", "v1alpha1"]
    assert group["preferredVersion"]["version"] == "v1beta1"


def test_each_version_shows_its_own_fields(located: Client) -> None:
    alpha, shown = located.get(path_of("a")).expect(200), located.get(f"{BETAS}/a").expect(200)
    assert alpha["apiVersion"] == f"{GROUP}/v1alpha1"
    assert alpha["spec"] == {"authInfo": {"providers": [{"name": "p", "type": {"name": "corp"}}]}}
    assert annotations_of(alpha) == {LOCATION: '{"region":"north"}', GENERATIONS: '{"Ready":1}'}
    assert alpha["status"]["conditions"] == [{key: READY[key] for key in READY if key != "observedGeneration"}]
    assert shown["apiVersion"] == f"{GROUP}/v1beta1"
    assert shown["spec"]["location"] == {"region": "north"}
    assert shown["spec"]["authInfo"]["providers"] == [{"name": "p", "type": "corp"}]
    assert shown["status"]["conditions"] == [READY]
    assert annotations_of(shown) == {}
    for part in ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields"):
        assert alpha["metadata"][part] == shown["metadata"][part]


def test_lists_tables_and_metadata_are_in_the_version_of_the_request(located: Client) -> None:
    (item,) = located.get(BETAS).expect(200)["items"]
    assert item == located.get(f"{BETAS}/a").expect(200)
    (partial,) = located.get(BETAS, headers=PARTIAL_LIST).expect(200)["items"]
    assert partial["metadata"] == item["metadata"]
    table = located.get(BETAS, headers=TABLE, includeObject="Object").expect(200)
    assert [column["name"] for column in table["columnDefinitions"]][1] == "State"
    assert table["rows"][0]["object"] == item
    old = located.get(CLUSTERS, headers=TABLE).expect(200)
    assert [column["name"] for column in old["columnDefinitions"]][1] == "OK"
    assert annotations_of(old["rows"][0]["object"]) == {LOCATION: '{"region":"north"}', GENERATIONS: '{"Ready":1}'}


def test_a_watch_is_in_the_version_of_the_request(located: Client) -> None:
    with located.watch(BETAS) as in_beta, located.watch(CLUSTERS) as in_alpha:
        assert in_beta.next()["object"]["spec"]["location"] == {"region": "north"}
        assert "location" not in in_alpha.next()["object"]["spec"]
        located.patch(path_of("a"), {"metadata": {"labels": {"env": "prod"}}}).expect(200)
        changed, seen = in_beta.next(), in_alpha.next()
        assert changed["type"] == seen["type"] == "MODIFIED"
        assert changed["object"] == located.get(f"{BETAS}/a").expect(200)
        assert seen["object"] == located.get(path_of("a")).expect(200)


# What one version cannot express survives writes in the other


def _put(client: Client) -> None:
    """As a client does that knows only what it writes."""
    client.put(path_of("a"), cluster("a", "aws")).expect(200)


def _put_what_was_read(client: Client) -> None:
    read = client.get(path_of("a")).expect(200)
    client.put(path_of("a"), {**read, "spec": {"cloudProvider": {"name": "aws"}}}).expect(200)


def _patch(client: Client) -> None:
    client.patch(path_of("a"), {"spec": {"cloudProvider": {"name": "aws"}}}).expect(200)


def _patch_by_json(client: Client) -> None:
    patch = [{"op": "add", "path": "/spec/cloudProvider", "value": {"name": "aws"}}]
    client.patch(path_of("a"), patch, kind=JSON_PATCH).expect(200)


def _apply(client: Client) -> None:
    client.patch(path_of("a"), cluster("a", "aws"), kind=APPLY_PATCH, fieldManager="other").expect(200)


@pytest.mark.parametrize("write", [_put, _put_what_was_read, _patch, _patch_by_json, _apply])
def test_a_write_in_v1alpha1_leaves_what_it_cannot_express(located: Client, write: Callable[[Client], None]) -> None:
    write(located)
    shown = located.get(f"{BETAS}/a").expect(200)
    assert shown["spec"]["cloudProvider"] == {"name": "aws"}
    assert shown["spec"]["location"] == {"region": "north"}
    assert shown["status"]["conditions"] == [READY]
    owners = [entry["manager"] for entry in shown["metadata"]["managedFields"] if "f:location" in str(entry)]
    assert len(owners) == 1


HEARTBEAT = {"type": "OK", "status": "True", "lastHeartbeatTime": "2024-01-02T03:04:05Z"}
OLD_STATUS = {"conditions": [HEARTBEAT]}


@pytest.mark.parametrize("kind", ["put", "patch", "apply", "main"])
def test_a_write_in_v1beta1_leaves_the_heartbeat(client: Client, kind: str) -> None:
    client.post(CLUSTERS, cluster("a")).expect(201)
    client.put(f"{path_of('a')}/status", {**cluster("a"), "status": OLD_STATUS}).expect(200)
    condition = {**READY, "type": "OK", "status": "False"}
    if kind == "put":
        client.put(f"{BETAS}/a/status", beta(status={"conditions": [condition]})).expect(200)
    elif kind == "patch":
        client.patch(f"{BETAS}/a/status", {"status": {"conditions": [condition]}}).expect(200)
    elif kind == "apply":
        body = beta(status={"conditions": [condition]})
        query = {"fieldManager": "m", "force": "true"}
        client.patch(f"{BETAS}/a/status", body, kind=APPLY_PATCH, **query).expect(200)
    else:
        client.put(f"{BETAS}/a", beta(cloudProvider={"name": "gcp"})).expect(200)
    (found,) = client.get(path_of("a")).expect(200)["status"]["conditions"]
    assert found["lastHeartbeatTime"] == HEARTBEAT["lastHeartbeatTime"]
    assert found["status"] == ("True" if kind == "main" else "False")


def test_a_put_of_what_was_read_in_the_other_version_changes_nothing(located: Client) -> None:
    for collection in (BETAS, CLUSTERS):
        for subresource in ("", "/status"):
            read = located.get(f"{collection}/a").expect(200)
            assert located.put(f"{collection}/a{subresource}", read).expect(200) == read


def test_a_status_in_v1beta1_replaces_the_generations_and_no_other_annotation(located: Client) -> None:
    located.patch(path_of("a"), {"metadata": {"annotations": {"note": "mine"}}}).expect(200)
    other = {**READY, "type": "Other", "observedGeneration": 7}
    located.put(f"{BETAS}/a/status", beta(status={"conditions": [other]})).expect(200)
    found = annotations_of(located.get(path_of("a")).expect(200))
    assert found == {"note": "mine", LOCATION: '{"region":"north"}', GENERATIONS: '{"Other":7}'}
    located.put(f"{BETAS}/a/status", beta(status={})).expect(200)
    assert GENERATIONS not in annotations_of(located.get(path_of("a")).expect(200))


def test_a_client_of_v1beta1_removes_a_location_and_one_of_v1alpha1_by_a_patch(located: Client) -> None:
    located.put(f"{BETAS}/a", beta()).expect(200)
    assert "location" not in located.get(f"{BETAS}/a").expect(200)["spec"]
    located.put(f"{BETAS}/a", beta(location={"region": "south"})).expect(200)
    located.patch(path_of("a"), {"metadata": {"annotations": {LOCATION: None}}}).expect(200)
    assert "location" not in located.get(f"{BETAS}/a").expect(200)["spec"]


def test_the_generation_counts_changes_of_the_location(located: Client) -> None:
    before = located.get(f"{BETAS}/a").expect(200)["metadata"]["generation"]
    changed = located.patch(f"{BETAS}/a", {"spec": {"location": {"zone": "b"}}}).expect(200)
    assert changed["metadata"]["generation"] == before + 1
    located.put(f"{BETAS}/a/status", beta(status={})).expect(200)
    assert located.get(f"{BETAS}/a").expect(200)["metadata"]["generation"] == before + 1


# Mistakes


def test_errors_name_the_fields_of_the_version_that_the_client_used(client: Client) -> None:
    wrong = beta(
        location={"region": 5, "latitude": "north", "longitude": 181},
        authInfo={"providers": [{"type": {"name": "x"}}, {"type": 5}]},
        kubernetesApiEndpoints={"serverEndpoints": [{"clientCIDR": "x"}]},
    )
    status = client.post(BETAS, wrong).refused(422, "Invalid")
    assert sorted(causes(status)) == [
        ("spec.authInfo.providers[0].type", "FieldValueTypeInvalid"),
        ("spec.authInfo.providers[1].type", "FieldValueTypeInvalid"),
        ("spec.kubernetesApiEndpoints.serverEndpoints[0].clientCIDR", "FieldValueInvalid"),
        ("spec.location.latitude", "FieldValueInvalid"),
        ("spec.location.longitude", "FieldValueInvalid"),
        ("spec.location.region", "FieldValueTypeInvalid"),
    ]
    client.post(BETAS, beta()).expect(201)
    assert causes(client.put(f"{BETAS}/a", wrong).refused(422, "Invalid")) == causes(status)
    assert causes(client.patch(f"{BETAS}/a", {"spec": wrong["spec"]}).refused(422, "Invalid")) == causes(status)


def test_fields_of_the_other_version_are_unknown(client: Client) -> None:
    answer = client.post(BETAS, beta(kubernetesApiEndpoints={"serverEndpoints": [{"clientCidr": "10.0.0.0/8"}]}))
    answer.expect(201)
    assert answer.warnings == ['unknown field "spec.kubernetesApiEndpoints.serverEndpoints[0].clientCidr"']
    located = {**cluster("b"), "spec": {"location": {"region": "north"}}}
    assert client.post(CLUSTERS, located).warnings == ['unknown field "spec.location"']


def test_conditions_of_v1beta1_are_whole_and_those_of_v1alpha1_are_let_alone(client: Client) -> None:
    client.post(CLUSTERS, cluster("a")).expect(201)
    client.put(f"{path_of('a')}/status", {**cluster("a"), "status": OLD_STATUS}).expect(200)
    read = client.get(f"{BETAS}/a").expect(200)
    read["status"]["nodes"] = {"total": 3}
    client.put(f"{BETAS}/a/status", read).expect(200)
    del read["metadata"]["resourceVersion"]
    read["status"]["conditions"].append({"type": "x y", "status": "Maybe", "reason": "", "observedGeneration": -1})
    refused = client.put(f"{BETAS}/a/status", read).refused(422, "Invalid")
    assert {field for field, _ in causes(refused)} == {
        f"status.conditions[1].{name}"
        for name in ("type", "status", "reason", "observedGeneration", "lastTransitionTime", "message")
    }


@pytest.mark.parametrize("text", ["garbage", "{}]", '{"region":{}}', "[" * 1000])
def test_garbage_in_the_annotation_is_refused_and_where_it_is_stored_ignored(client: Client, text: str) -> None:
    obj = cluster("a", annotations={LOCATION: text, GENERATIONS: text})
    refused = client.post(CLUSTERS, obj).refused(422, "Invalid")
    assert causes(refused) == [(f"metadata.annotations[{key}]", "FieldValueInvalid") for key in (LOCATION, GENERATIONS)]


def test_an_annotation_that_stands_for_a_field_is_taken(client: Client) -> None:
    """Such as from a file that was exported in v1alpha1."""
    client.post(CLUSTERS, cluster("a", annotations={LOCATION: '{ "region": "north" }'})).expect(201)
    shown = client.get(f"{BETAS}/a").expect(200)
    assert shown["spec"]["location"] == {"region": "north"}
    assert annotations_of(shown) == {}


def test_the_secret_lint_names_the_fields_of_v1beta1(client: Client) -> None:
    key = "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\n-----END RSA PRIVATE KEY-----"
    answer = client.post(BETAS, beta(location={"zone": key[:250]}, authInfo={"providers": [{"type": key}]}))
    answer.expect(201)
    assert sorted(text.partition(":")[0] for text in answer.warnings) == [
        "spec.authInfo.providers[0].type",
        "spec.location.zone",
    ]


# Selectable fields


def test_clusters_are_selected_by_identity_version_and_state(client: Client) -> None:
    for name, state in (("a", "Ready"), ("b", "Stale"), ("c", "Ready")):
        client.post(BETAS, beta(name, clusterID=f"id-{name}")).expect(201)
        status = {"state": state, "version": {"kubernetes": f"v1.3{name == 'c'}.0"}}
        client.put(f"{BETAS}/{name}/status", beta(name, status=status)).expect(200)
    for collection in (BETAS, CLUSTERS):
        for selector, found in {
            "status.state=Ready": ["a", "c"],
            "status.state!=Ready": ["b"],
            "spec.clusterID=id-b": ["b"],
            "status.version.kubernetes=v1.3True.0": ["c"],
            "status.state=Ready,spec.clusterID=id-a": ["a"],
            "metadata.name=c": ["c"],
        }.items():
            assert names(client.get(collection, fieldSelector=selector).expect(200)) == found


# --runtime-config


def test_what_is_switched_off_is_not_served_and_stays_stored(serve: Callable[..., InProcessClient]) -> None:
    client = serve(f"--runtime-config={GROUP}/v1alpha1=false")
    assert [each["version"] for each in client.get(f"/apis/{GROUP}").expect(200)["versions"]] == ["v1beta1"]
    assert client.get(CLUSTERS).status == 404
    assert client.get(f"/openapi/v3/apis/{GROUP}/v1alpha1").status == 404
    client.post(BETAS, beta(location={"region": "north"})).expect(201)
    client.patch(f"{BETAS}/a", {"spec": {"clusterID": "x"}}).expect(200)
    assert names(client.get(BETAS).expect(200)) == ["a"]


def test_a_resource_without_a_version_has_no_endpoints(serve: Callable[..., InProcessClient]) -> None:
    client = serve(
        "--runtime-config=api/alpha=false,api/beta=false,authorization.k8s.io/v1/selfsubjectrulesreviews=false"
    )
    groups = [each["name"] for each in client.get("/apis").expect(200)["groups"]]
    assert GROUP not in groups
    assert "authorization.k8s.io" in groups
    assert client.get(BETAS).status == client.get(CLUSTERS).status == 404
    reviews = client.get("/apis/authorization.k8s.io/v1").expect(200)["resources"]
    assert "selfsubjectrulesreviews" not in [each["name"] for each in reviews]


def test_without_v1beta1_v1alpha1_is_as_it_was(serve: Callable[..., InProcessClient]) -> None:
    client = serve(f"--runtime-config={GROUP}/v1beta1=false")
    client.get(CLUSTERS, fieldSelector="spec.clusterID=x").refused(400, "BadRequest")
    client.post(CLUSTERS, cluster("a")).expect(201)
