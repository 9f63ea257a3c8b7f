"""Managed fields of clusters that are written in both versions."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterregistry.apimachinery.fieldmanager.errors import ConflictsError
from clusterregistry.apimachinery.fieldmanager.field_manager import FieldManager
from clusterregistry.apiserver.endpoints.request_scope import field_managers
from clusterregistry.apiserver.registry.resource import Version
from clusterregistry.registry.cluster import cluster_resource
from tests.registry.api.clusters import ALPHAS, BETAS

Object = dict[str, Any]

RESOURCE = cluster_resource("off")
BETA, ALPHA = RESOURCE.versions
MANAGERS = {
    version.name: field_managers(RESOURCE, version, now=lambda: "2026-01-01T00:00:00Z") for version in RESOURCE.versions
}
EITHER = st.sampled_from([BETA, ALPHA])


def manager(version: Version, subresource: str = "") -> FieldManager:
    return MANAGERS[version.name][subresource]


def created(version: Version, obj: Object) -> Object:
    """The object in the storage version, with managed fields."""
    new = {**obj, "metadata": dict(obj["metadata"])}
    manager(version).record_update(None, new, manager="creator")
    return version.to_storage(new)


def in_version(version: Version, stored: Object) -> Object:
    seen = version.from_storage(stored)
    return {**seen, "metadata": dict(seen["metadata"])}


def configuration(obj: Object) -> Object:
    """What a client applies: without what the server sets, and without the status."""
    metadata = {name: obj["metadata"][name] for name in ("name", "labels") if name in obj["metadata"]}
    return {"apiVersion": obj["apiVersion"], "kind": "Cluster", "metadata": metadata, "spec": obj.get("spec", {})}


def managed(obj: Object) -> Any:
    return obj["metadata"].get("managedFields")


@given(BETAS | ALPHAS, EITHER)
def test_a_put_of_what_was_read_leaves_the_managers_in_either_version(obj: Object, other: Version) -> None:
    version = BETA if obj["apiVersion"].endswith("v1beta1") else ALPHA
    stored = created(version, obj)
    read = in_version(other, stored)
    manager(other).record_update(in_version(other, stored), read, manager="editor")
    assert managed(read) == managed(stored)


@given(BETAS)
def test_two_managers_that_apply_the_same_in_two_versions_share_it(obj: Object) -> None:
    first = manager(BETA).apply(None, configuration(obj), manager="beta", force=False)
    stored = BETA.to_storage(first)
    same = configuration(ALPHA.from_storage(stored))
    second = manager(ALPHA).apply(in_version(ALPHA, stored), same, manager="alpha", force=False)
    assert second.get("spec", {}) == stored.get("spec", {})
    assert BETA.from_storage(second)["spec"] == first["spec"]
    versions = {entry["manager"]: entry["apiVersion"].rpartition("/")[2] for entry in managed(second) or ()}
    assert versions.items() <= {"beta": "v1beta1", "alpha": "v1alpha1"}.items()


def test_a_location_of_another_manager_is_a_conflict_in_v1alpha1_too() -> None:
    beta = {**NEW, "apiVersion": "clusterregistry.k8s.io/v1beta1", "spec": {"location": {"region": "north"}}}
    stored = BETA.to_storage(manager(BETA).apply(None, beta, manager="beta", force=False))
    annotations = {"clusterregistry.k8s.io/location": '{"region":"south"}'}
    alpha = {**NEW, "metadata": {"name": "a", "annotations": annotations}}
    with pytest.raises(ConflictsError, match=r'conflict with "beta": .spec.location.region'):
        manager(ALPHA).apply(in_version(ALPHA, stored), alpha, manager="alpha", force=False)


def test_a_manager_that_applies_in_another_version_gives_up_what_it_does_not_name_there() -> None:
    beta = {
        **NEW,
        "apiVersion": "clusterregistry.k8s.io/v1beta1",
        "spec": {"location": {"region": "north"}, "clusterID": "x"},
    }
    stored = BETA.to_storage(manager(BETA).apply(None, beta, manager="m", force=False))
    alpha = {**NEW, "spec": {"clusterID": "x"}}
    applied = manager(ALPHA).apply(in_version(ALPHA, stored), alpha, manager="m", force=False)
    assert BETA.from_storage(applied)["spec"] == {"clusterID": "x"}
    (entry,) = managed(applied)
    assert entry["apiVersion"] == "clusterregistry.k8s.io/v1alpha1"


def test_a_heartbeat_keeps_its_manager_through_a_write_in_v1beta1() -> None:
    condition = {"type": "OK", "status": "True", "lastHeartbeatTime": "2024-01-02T03:04:05Z"}
    alpha = {**NEW, "status": {"conditions": [condition]}}
    manager(ALPHA, "status").record_update(None, alpha, manager="heart")
    beta = in_version(BETA, alpha)
    beta["status"] = {**beta["status"], "nodes": {"total": 3}}
    manager(BETA, "status").record_update(in_version(BETA, alpha), beta, manager="counter")
    assert {entry["manager"]: entry["fieldsV1"] for entry in managed(beta)} == {
        "heart": managed(alpha)[0]["fieldsV1"],
        "counter": {"f:status": {"f:nodes": {".": {}, "f:total": {}}}},
    }


NEW: Object = {"apiVersion": "clusterregistry.k8s.io/v1alpha1", "kind": "Cluster", "metadata": {"name": "a"}}
