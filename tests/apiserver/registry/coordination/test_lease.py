from __future__ import annotations

from typing import Any

import pytest

from clusterregistry.apiserver.registry import object_rules
from clusterregistry.apiserver.registry.coordination.lease import lease_resource

RESOURCE = lease_resource()
NOW = "2020-02-03T04:05:06Z"


def lease(*, metadata: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "a", "namespace": "ns", **(metadata or {})},
        "spec": spec,
    }


def created(obj: dict[str, Any]) -> dict[str, Any]:
    object_rules.prepare_for_create(RESOURCE, obj, now=NOW)
    return obj


def updated(old: dict[str, Any], **spec: Any) -> dict[str, Any]:
    obj = {**old, "metadata": {**old["metadata"]}, "spec": spec}
    object_rules.prepare_for_update(RESOURCE, RESOURCE.strategy, obj=obj, old=old)
    return obj


def test_a_lease_is_created_by_put_and_renewed_only_in_its_present_version() -> None:
    assert RESOURCE.strategy.allow_create_on_update
    assert not RESOURCE.strategy.allow_unconditional_update


def test_the_fields_of_coordinated_elections_are_dropped() -> None:
    obj = created(lease(holderIdentity="a", strategy="any", preferredHolder="b"))
    assert obj["spec"] == {"holderIdentity": "a"}
    assert updated(obj, holderIdentity="b", strategy="any")["spec"] == {"holderIdentity": "b"}


def test_an_applied_lease_without_a_spec_gets_an_empty_one() -> None:
    obj = lease()
    del obj["spec"]
    assert created(obj)["spec"] == {}


def test_a_finalizer_needs_no_domain() -> None:
    obj = created(lease(metadata={"finalizers": ["plain"]}))
    assert object_rules.validate_create(RESOURCE, RESOURCE.strategy, obj) == []


@pytest.mark.parametrize(("name", "wrong"), [("a.b", []), ("Bad_Name", ["metadata.name"])])
def test_the_name_is_a_subdomain(name: str, wrong: list[str]) -> None:
    obj = created(lease(metadata={"name": name}))
    assert [error.field for error in object_rules.validate_create(RESOURCE, RESOURCE.strategy, obj)] == wrong


def test_the_metadata_is_told_before_the_spec() -> None:
    obj = created(lease(metadata={"name": "Bad_Name"}, leaseDurationSeconds=0))
    errors = object_rules.validate_create(RESOURCE, RESOURCE.strategy, obj)
    assert [error.field for error in errors] == ["metadata.name", "spec.leaseDurationSeconds"]


def test_a_late_finalizer_is_told_twice() -> None:
    old = created(lease())
    old["metadata"]["deletionTimestamp"] = NOW
    obj = updated(old)
    obj["metadata"]["finalizers"] = ["example.com/late"]
    errors = object_rules.validate_update(RESOURCE, RESOURCE.strategy, obj=obj, old=old)
    assert [error.field for error in errors] == ["metadata.finalizers"] * 2


def test_the_table_shows_the_holder() -> None:
    (version,) = RESOURCE.versions
    assert [column.name for column in version.columns] == ["Name", "Holder", "Age"]
    assert [column.cell(created(lease(holderIdentity="h"))) for column in version.columns] == ["a", "h", NOW]
    assert version.columns[1].cell(created(lease())) == ""
