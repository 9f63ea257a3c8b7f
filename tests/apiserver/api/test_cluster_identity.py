"""The identity of a cluster: its ID is that of no other one, and protection keeps it from being deleted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.apiserver.api.clients import Answer, Client, causes
from tests.apiserver.api.objects import APPLY_PATCH, CLUSTERS, HOLD, cluster, names, path_of

PROTECTED = "clusterregistry.k8s.io/protected"


@pytest.fixture(autouse=True)
def unprotected_afterwards(client: Client) -> Iterator[None]:
    """The server is that of other tests too, which delete everything."""
    yield
    for name in names(client.get(CLUSTERS).expect(200)):
        client.patch(path_of(name), {"metadata": {"annotations": {PROTECTED: None}}})


def with_id(client: Client) -> dict[str, Any]:
    made: dict[str, Any] = client.post(CLUSTERS, {**cluster("id"), "spec": {"clusterID": "one"}}).expect(201)
    return made


SECOND: dict[str, Callable[[Client], Answer]] = {
    "post": lambda client: client.post(CLUSTERS, {**cluster("b"), "spec": {"clusterID": "one"}}),
    "dry run": lambda client: client.post(CLUSTERS, {**cluster("b"), "spec": {"clusterID": "one"}}, dryRun="All"),
    "put": lambda client: client.put(path_of("b"), {**cluster("b"), "spec": {"clusterID": "one"}}),
    "apply": lambda client: client.patch(
        path_of("b"), {**cluster("b"), "spec": {"clusterID": "one"}}, kind=APPLY_PATCH, fieldManager="m"
    ),
    "patch": lambda client: client.patch(path_of("other"), {"spec": {"clusterID": "one"}}),
    "v1beta1": lambda client: client.patch(
        path_of("other").replace("v1alpha1", "v1beta1"), {"spec": {"clusterID": "one"}}
    ),
}


@pytest.mark.parametrize("second", SECOND)
def test_a_second_cluster_with_the_same_cluster_id_is_refused(client: Client, second: str) -> None:
    with_id(client)
    other = client.post(CLUSTERS, cluster("other")).expect(201)
    refused = SECOND[second](client).refused(422, "Invalid")
    assert causes(refused) == [("spec.clusterID", "FieldValueDuplicate")]
    assert refused["details"]["causes"][0]["message"] == 'Duplicate value: "one"'
    assert refused["message"].endswith(' is invalid: spec.clusterID: Duplicate value: "one"')
    assert client.get(path_of("other")).expect(200) == other
    client.get(path_of("b")).refused(404, "NotFound")


def test_a_cluster_id_is_free_again_after_its_cluster(client: Client) -> None:
    with_id(client)
    client.patch(path_of("id"), {"metadata": {"finalizers": [HOLD]}}).expect(200)
    client.delete(path_of("id")).expect(200)
    SECOND["post"](client).refused(422, "Invalid")
    client.patch(path_of("id"), {"metadata": {"finalizers": None}}).expect(200)
    SECOND["post"](client).expect(201)


def test_the_error_of_a_duplicate_does_not_name_the_other_cluster(client: Client) -> None:
    with_id(client)
    sent = {**cluster("b"), "spec": {"clusterID": "one"}}
    assert b'"id"' not in client.post(CLUSTERS, sent).body


def protected(client: Client, name: str = "safe", value: str = "true", **metadata: Any) -> dict[str, Any]:
    made: dict[str, Any] = client.post(CLUSTERS, cluster(name, annotations={PROTECTED: value}, **metadata)).expect(201)
    return made


def test_a_protected_cluster_is_not_deleted_and_the_error_says_how_it_can_be(client: Client) -> None:
    made = protected(client)
    for query in ({}, {"dryRun": "All"}, {"propagationPolicy": "Foreground"}, {"propagationPolicy": "Orphan"}):
        refused = client.delete(path_of("safe"), **query).refused(403, "Forbidden")
        assert refused["message"] == (
            'clusters.clusterregistry.k8s.io "safe" is forbidden: the annotation clusterregistry.k8s.io/protected '
            "protects it from deletion. To delete it, first remove the annotation: "
            "kubectl annotate cluster safe clusterregistry.k8s.io/protected-"
        )
        assert refused["details"] == {"name": "safe", "group": "clusterregistry.k8s.io", "kind": "clusters"}
    assert client.get(path_of("safe")).expect(200) == made
    client.patch(path_of("safe"), {"metadata": {"annotations": {PROTECTED: None}}}).expect(200)
    client.delete(path_of("safe")).expect(200)


@pytest.mark.parametrize("value", ["", "false", "True", "yes"])
def test_only_the_value_true_protects(client: Client, value: str) -> None:
    protected(client, value=value)
    client.delete(path_of("safe")).expect(200)


def test_a_collection_with_a_protected_cluster_is_not_deleted(client: Client) -> None:
    for name in ("one", "two"):
        protected(client, name, labels={"env": "prod"})
    for name in ("x", "y"):
        client.post(CLUSTERS, cluster(name, labels={"env": "prod" if name == "x" else "dev"})).expect(201)
    refused = client.delete(CLUSTERS, labelSelector="env=prod").refused(403, "Forbidden")
    assert 'since "one", "two" must not be.' in refused["message"]
    assert "kubectl annotate cluster one clusterregistry.k8s.io/protected-" in refused["message"]
    client.delete(CLUSTERS, labelSelector="env=prod", dryRun="All").refused(403, "Forbidden")
    assert names(client.get(CLUSTERS).expect(200)) == ["one", "two", "x", "y"]
    client.delete(CLUSTERS, labelSelector="env=dev").expect(200)
    assert names(client.get(CLUSTERS).expect(200)) == ["one", "two", "x"]


def test_of_many_protected_clusters_some_are_named(client: Client) -> None:
    for number in range(12):
        protected(client, f"safe-{number:02}")
    refused = client.delete(CLUSTERS).refused(403, "Forbidden")
    assert '"safe-09" and 2 more must not be' in refused["message"]


def test_protection_comes_too_late_for_a_cluster_that_is_being_deleted(client: Client) -> None:
    client.post(CLUSTERS, cluster("a", finalizers=[HOLD])).expect(201)
    client.delete(path_of("a")).expect(200)
    client.patch(path_of("a"), {"metadata": {"annotations": {PROTECTED: "true"}}}).expect(200)
    client.delete(path_of("a")).expect(200)
    client.delete(CLUSTERS).expect(200)
    client.patch(path_of("a"), {"metadata": {"finalizers": None}}).expect(200)
    client.get(path_of("a")).refused(404, "NotFound")


def test_preconditions_and_the_generation_of_clusters_are_as_before(client: Client) -> None:
    made = client.post(CLUSTERS, cluster("a", finalizers=[HOLD])).expect(201)
    wrong = {"preconditions": {"uid": "11111111-2222-3333-4444-555555555555"}}
    assert "does not match the UID in record" in client.delete(path_of("a"), wrong).refused(409, "Conflict")["message"]
    marked = client.delete(path_of("a")).expect(200)["metadata"]
    assert marked["deletionGracePeriodSeconds"] == 0
    assert marked["generation"] == made["metadata"]["generation"] + 1
