from __future__ import annotations

from typing import Any

import pytest

from clusterregistry.apiserver.registry import object_rules
from clusterregistry.apiserver.registry.core.namespace import (
    PERMANENT,
    NamespaceDeletion,
    check_delete,
    namespace_resource,
)
from clusterregistry.apiserver.registry.strategy import Strategy

RESOURCE = namespace_resource()
STATUS, FINALIZE = (RESOURCE.subresources[name].strategy for name in ("status", "finalize"))
NOW = "2020-02-03T04:05:06Z"
LABEL = "kubernetes.io/metadata.name"


def namespace(name: str = "a", **fields: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}, **fields}


def created(obj: dict[str, Any]) -> dict[str, Any]:
    object_rules.prepare_for_create(RESOURCE, obj, now=NOW)
    return obj


def updated(old: dict[str, Any], strategy: Strategy = RESOURCE.strategy, **fields: Any) -> dict[str, Any]:
    obj = {**old, "metadata": {**old["metadata"]}, **fields}
    object_rules.prepare_for_update(RESOURCE, strategy, obj=obj, old=old)
    return obj


def test_a_new_namespace_is_active_and_has_its_finalizer_and_its_label() -> None:
    obj = created(namespace(status={"phase": "Terminating"}))
    assert obj["spec"] == {"finalizers": ["kubernetes"]}
    assert obj["status"] == {"phase": "Active"}
    assert obj["metadata"]["labels"] == {LABEL: "a"}


def test_other_finalizers_stay_before_that_of_kubernetes() -> None:
    obj = created(namespace(spec={"finalizers": ["example.com/own"]}))
    assert obj["spec"] == {"finalizers": ["example.com/own", "kubernetes"]}
    again = created(namespace(spec={"finalizers": ["kubernetes", "example.com/own"]}))
    assert again["spec"] == {"finalizers": ["kubernetes", "example.com/own"]}


def test_the_label_is_the_name_whatever_a_client_sends() -> None:
    (version,) = RESOURCE.versions
    obj = namespace()
    obj["metadata"]["labels"] = {"x": "y", LABEL: "other"}
    assert version.decode is not None
    assert version.decode(obj) == []
    assert obj["metadata"]["labels"] == {"x": "y", LABEL: "a"}


def test_an_update_changes_the_metadata_alone() -> None:
    old = created(namespace())
    obj = updated(old, metadata={"name": "a", "annotations": {"x": "y"}}, spec={"finalizers": []}, status={})
    assert (obj["spec"], obj["status"]) == (old["spec"], old["status"])
    assert obj["metadata"]["annotations"] == {"x": "y"}
    assert obj["metadata"]["labels"] == {LABEL: "a"}


def test_finalize_changes_the_spec_and_status_the_status() -> None:
    old, conditions = created(namespace()), [{"type": "T", "status": "True", "lastTransitionTime": None}]
    finalized = updated(old, FINALIZE, spec={"finalizers": []}, status={})
    assert (finalized["spec"], finalized["status"]) == ({}, old["status"])
    observed = updated(old, STATUS, spec={}, status={"phase": "Active", "conditions": conditions})
    assert (observed["spec"], observed["status"]) == (old["spec"], {"phase": "Active", "conditions": conditions})


@pytest.mark.parametrize(
    ("strategy", "changed", "wrong"),
    [
        (RESOURCE.strategy, {}, []),
        (STATUS, {"status": {"phase": "Terminating"}}, ["status.Phase"]),
        (FINALIZE, {"spec": {"finalizers": ["plain"]}}, ["spec.finalizers[0]"]),
    ],
)
def test_each_part_has_its_rules(strategy: Strategy, changed: dict[str, Any], wrong: list[str]) -> None:
    old = created(namespace())
    obj = updated(old, strategy, **changed)
    errors = object_rules.validate_update(RESOURCE, strategy, obj=obj, old=old)
    assert [error.field for error in errors] == wrong


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("a-1", []),
        ("a.b", ["metadata.name"]),
        ("Bad Name", ["metadata.name", "metadata.labels"]),
        ("x" * 64, ["metadata.name", "metadata.labels"]),
    ],
)
def test_the_name_is_a_label(name: str, wrong: list[str]) -> None:
    errors = object_rules.validate_create(RESOURCE, RESOURCE.strategy, created(namespace(name)))
    assert [error.field for error in errors] == wrong


@pytest.mark.parametrize("name", PERMANENT)
def test_some_namespaces_stay(name: str) -> None:
    assert check_delete(created(namespace(name))) == "this namespace may not be deleted"


def test_finalizers_in_the_spec_hold_a_deleted_namespace() -> None:
    rules, obj = NamespaceDeletion(), created(namespace())
    assert check_delete(obj) == ""
    assert rules.is_held(obj)
    rules.mark_deleted(obj)
    rules.mark_deleted(obj)
    assert obj["status"] == {"phase": "Terminating"}
    assert not rules.is_held({**obj, "spec": {}})


def test_namespaces_are_deleted_one_by_one() -> None:
    assert "deletecollection" not in RESOURCE.verbs
    assert RESOURCE.subresources["finalize"].verbs == ("update",)


def test_the_name_and_the_phase_are_selectable() -> None:
    obj = created(namespace())
    assert {name: read(obj) for name, read in RESOURCE.selectable_fields.items()} == {
        "name": "a",
        "status.phase": "Active",
    }


def test_the_table_shows_the_phase() -> None:
    (version,) = RESOURCE.versions
    assert [column.name for column in version.columns] == ["Name", "Status", "Age"]
    assert [column.cell(created(namespace())) for column in version.columns] == ["a", "Active", NOW]
