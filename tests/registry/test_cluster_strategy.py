from __future__ import annotations

import copy
from typing import Any

import pytest

from clusterregistry.api.clusterregistry.v1alpha1.types import CLUSTER
from clusterregistry.apiserver.registry.strategy import Strategy
from clusterregistry.apiserver.registry.structural_strategy import StatusStrategy
from clusterregistry.registry.cluster import cluster_resource
from clusterregistry.registry.cluster.columns import COLUMNS
from clusterregistry.registry.cluster.strategy import ClusterStrategy

MAIN: Strategy = ClusterStrategy("warn")
STATUS: Strategy = StatusStrategy(CLUSTER)


def cluster(**parts: Any) -> dict[str, Any]:
    return {
        "apiVersion": "clusterregistry.k8s.io/v1alpha1",
        "kind": "Cluster",
        "metadata": {"name": "a", "uid": "u", "resourceVersion": "5"},
        **parts,
    }


def test_put_may_create_a_cluster_and_may_leave_the_version_out() -> None:
    assert MAIN.allow_create_on_update
    assert MAIN.allow_unconditional_update
    assert not STATUS.allow_create_on_update


def test_create_drops_the_status() -> None:
    obj = cluster(spec={"clusterID": "x"}, status={"nodes": {"total": 3}})
    MAIN.prepare_for_create(obj)
    assert obj == cluster(spec={"clusterID": "x"})


def test_an_update_keeps_the_status_as_it_was() -> None:
    obj = cluster(status={"nodes": {"total": 99}})
    MAIN.prepare_for_update(obj, cluster(status={"nodes": {"total": 3}}))
    assert obj["status"] == {"nodes": {"total": 3}}
    MAIN.prepare_for_update(obj, cluster())
    assert "status" not in obj


def test_status_changes_nothing_but_the_status() -> None:
    old = cluster(spec={"cloudProvider": {"name": "aws"}}, status={"nodes": {"total": 1}})
    old["metadata"]["labels"] = {"x": "1"}
    before = copy.deepcopy(old)
    obj = cluster(spec={"cloudProvider": {"name": "gce"}}, status={"nodes": {"total": 2}}, extra=1)
    obj["metadata"] = {"name": "a", "resourceVersion": "7", "labels": {"x": "2"}, "managedFields": [{"manager": "m"}]}
    STATUS.prepare_for_update(obj, old)
    assert obj["spec"] == {"cloudProvider": {"name": "aws"}}
    assert obj["status"] == {"nodes": {"total": 2}}
    assert "extra" not in obj
    assert obj["metadata"] == {
        "name": "a",
        "uid": "u",
        "labels": {"x": "1"},
        "resourceVersion": "7",
        "managedFields": [{"manager": "m"}],
    }
    assert old == before


def test_a_status_that_is_left_out_is_removed() -> None:
    obj = cluster()
    STATUS.prepare_for_update(obj, cluster(status={"nodes": {"total": 1}}))
    assert "status" not in obj


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"clusterID": 5}, "spec.clusterID"),
        ("text", "spec"),
        ({"kubernetesApiEndpoints": {"serverEndpoints": [{"clientCIDR": "x"}]}}, None),
        ({"kubernetesApiEndpoints": {"caBundle": "not base64!"}}, "spec.kubernetesApiEndpoints.caBundle"),
    ],
)
def test_a_new_cluster_is_held_against_schema_and_sense(spec: Any, field: str | None) -> None:
    (error,) = MAIN.validate(cluster(spec=spec))
    assert error.field == (field or "spec.kubernetesApiEndpoints.serverEndpoints[0].clientCIDR")


def test_a_spec_that_did_not_change_is_not_held_against_the_client() -> None:
    bad = {"kubernetesApiEndpoints": {"serverEndpoints": [{"serverAddress": "not a host"}]}}
    assert MAIN.validate_update(cluster(spec=bad), cluster(spec=copy.deepcopy(bad))) == []
    assert len(MAIN.validate_update(cluster(spec=bad), cluster())) == 1


def test_a_cluster_id_is_immutable() -> None:
    old = cluster(spec={"clusterID": "one"})
    for spec in ({"clusterID": "two"}, {}):
        assert [error.field for error in MAIN.validate_update(cluster(spec=spec), old)] == ["spec.clusterID"]


def test_status_errors_are_worded_as_the_reference_words_them() -> None:
    obj = cluster(status={"nodes": {"total": -1}})
    assert [str(error) for error in STATUS.validate_update(obj, cluster())] == [
        "status.nodes.total: Invalid value: -1: nodes.total in body should be greater than or equal to 0"
    ]
    assert STATUS.validate_update(cluster(), cluster()) == []


TOKEN = {"authInfo": {"providers": [{"config": {"token": "abc"}}]}}


def test_a_credential_is_warned_of_once_and_accepted() -> None:
    assert MAIN.validate(cluster(spec=TOKEN)) == []
    assert len(MAIN.warnings(cluster(spec=TOKEN), None)) == 1
    assert MAIN.warnings(cluster(spec=TOKEN), cluster(spec=copy.deepcopy(TOKEN))) == []


def test_a_credential_beside_what_changed_is_not_held_against_the_client() -> None:
    old = cluster(spec=TOKEN)
    old["metadata"] = {"labels": {"a": "ghp_" + "a1" * 18}, "annotations": {"b": "ghp_" + "a1" * 18}}
    new = copy.deepcopy(old)
    new["spec"]["cloudProvider"] = {"name": "aws"}
    new["metadata"]["labels"]["c"] = new["metadata"]["annotations"]["c"] = "d"
    assert MAIN.warnings(new, old) == []
    new["metadata"]["labels"]["c"] = "ghp_" + "b2" * 18
    assert [text.partition(":")[0] for text in MAIN.warnings(new, old)] == ["metadata.labels[c]"]


def test_a_credential_is_rejected_where_the_operator_says_so() -> None:
    strict = ClusterStrategy("reject")
    (error,) = strict.validate(cluster(spec=TOKEN))
    assert error.field == "spec.authInfo.providers[0].config.token"
    assert error.reason == "FieldValueForbidden"
    assert strict.warnings(cluster(spec=TOKEN), None) == ()
    assert strict.validate_update(cluster(spec=TOKEN), cluster(spec=copy.deepcopy(TOKEN))) == []


def test_the_look_out_can_be_switched_off() -> None:
    off = ClusterStrategy("off")
    assert off.validate(cluster(spec=TOKEN)) == []
    assert off.warnings(cluster(spec=TOKEN), None) == ()


def test_odd_metadata_does_not_stop_the_look_out() -> None:
    assert MAIN.warnings({"metadata": "text", "spec": []}, {"metadata": None}) == []


def test_the_columns_are_those_of_the_reference() -> None:
    version = cluster_resource("warn").version("v1alpha1")
    assert version is not None
    shown = [(column.name, column.type, column.format, column.priority) for column in version.columns]
    assert shown == [
        ("Name", "string", "name", 0),
        ("OK", "string", "", 0),
        ("Version", "string", "", 0),
        ("Nodes", "integer", "", 0),
        ("Server", "string", "", 0),
        ("Provider", "string", "", 1),
        ("Cluster-ID", "string", "", 1),
        ("Age", "date", "", 0),
    ]


def test_cells_read_a_full_cluster_and_an_empty_one() -> None:
    full = cluster(
        spec={
            "kubernetesApiEndpoints": {"serverEndpoints": [{"serverAddress": "one:6443"}, {"serverAddress": "two"}]},
            "cloudProvider": {"name": "gce"},
            "clusterID": "id-1",
        },
        status={
            "conditions": [{"type": "Up", "status": "False"}, {"type": "OK", "status": "True"}],
            "version": {"kubernetes": "v1.36.4"},
            "nodes": {"total": 3},
        },
    )
    full["metadata"]["creationTimestamp"] = "2024-01-02T03:04:05Z"
    columns = COLUMNS
    assert [column.cell(full) for column in columns] == [
        *("a", "True", "v1.36.4", 3, "one:6443", "gce", "id-1", "2024-01-02T03:04:05Z"),
    ]
    assert [column.cell(cluster()) for column in columns] == ["a"] + [None] * 7
    assert [column.cell({"spec": [], "status": {"conditions": [None]}}) for column in columns] == [None] * 8


def test_v1beta1_shows_the_state_and_when_it_was_observed() -> None:
    (preferred, _) = cluster_resource("off").versions
    full = cluster(status={"state": "Ready", "observedAt": "2026-01-02T03:04:05Z"})
    names = [column.name for column in preferred.columns]
    assert names == ["Name", "State", "Version", "Nodes", "Server", "Seen", "Age"]
    cells = [column.cell(full) for column in preferred.columns]
    assert cells == ["a", "Ready", None, None, None, "2026-01-02T03:04:05Z", None]
    assert [column.type for column in preferred.columns if column.is_age] == ["date", "date"]


def test_the_resource_names_itself_as_the_contract_says() -> None:
    resource = cluster_resource("warn")
    assert (resource.qualified_name, resource.list_kind, resource.singular) == (
        "clusters.clusterregistry.k8s.io",
        "ClusterList",
        "cluster",
    )
    assert [version.name for version in resource.versions] == ["v1beta1", "v1alpha1"]
    assert resource.stored_as.name == "v1alpha1"
    assert list(resource.subresources) == ["status"]
