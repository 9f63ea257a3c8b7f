from __future__ import annotations

from typing import Any

import pytest

from clusterregistry.api.events.v1.conversion import from_core
from clusterregistry.apiserver.registry import object_rules
from clusterregistry.apiserver.registry.core.event import event_resource
from clusterregistry.apiserver.registry.resource import Version

RESOURCE = event_resource(retention=3600)
CORE, EVENTS = RESOURCE.versions
STRICT = RESOURCE.strategy_of(EVENTS)
NOW = "2020-02-03T04:05:06Z"
TIME = "2020-02-03T04:05:06.000007Z"
LATER = "2020-02-03T05:05:06.000000Z"
NEW: dict[str, Any] = {
    "eventTime": TIME,
    "reportingComponent": "example.com/c",
    "reportingInstance": "i",
    "action": "a",
    "reason": "r",
    "type": "Normal",
}


def event(*, metadata: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    obj = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "e", "namespace": "ns", **(metadata or {})},
        "involvedObject": {"kind": "Pod", "name": "p", "namespace": "ns"},
        **fields,
    }
    object_rules.prepare_for_create(RESOURCE, obj, now=NOW)
    return obj


def cells(obj: dict[str, Any], version: Version = CORE) -> dict[str, Any]:
    return {column.name: column.cell(obj) for column in version.columns}


def test_two_groups_serve_events_and_the_core_group_stores_them() -> None:
    assert [RESOURCE.group_of(version) for version in RESOURCE.versions] == ["", "events.k8s.io"]
    assert RESOURCE.stored_as is CORE
    assert RESOURCE.retention == 3600


@pytest.mark.parametrize(("name", "is_strict"), [("Upper_case:1", True), ("a.b", False)])
def test_only_the_new_group_has_rules_for_names(name: str, *, is_strict: bool) -> None:
    obj = event(metadata={"name": name}, **NEW)
    assert object_rules.validate_create(RESOURCE, RESOURCE.strategy_of(CORE), obj) == []
    errors = object_rules.validate_create(RESOURCE, STRICT, obj)
    assert [error.field for error in errors] == (["metadata.name"] if is_strict else [])


def test_only_the_new_group_needs_a_domain_in_finalizers() -> None:
    obj = event(metadata={"finalizers": ["plain"]}, **NEW)
    assert object_rules.validate_create(RESOURCE, RESOURCE.strategy_of(CORE), obj) == []
    errors = object_rules.validate_create(RESOURCE, STRICT, obj)
    assert [error.field for error in errors] == ["metadata.finalizers[0]"]


def test_wrong_metadata_is_told_after_the_rules_of_the_core_group() -> None:
    wrong = event(metadata={"name": "a/b"}, involvedObject={})
    assert [error.field for error in object_rules.validate_create(RESOURCE, RESOURCE.strategy, wrong)] == [
        "involvedObject.namespace"
    ]
    assert [
        error.field
        for error in object_rules.validate_create(RESOURCE, RESOURCE.strategy, event(metadata={"name": "a/b"}))
    ] == ["metadata.name"]


def test_an_event_changes_freely_in_the_core_group_alone() -> None:
    old, obj = event(**NEW), event(**NEW | {"message": "other"})
    obj["metadata"] = old["metadata"]
    for strategy, wrong in ((RESOURCE.strategy, []), (STRICT, ["message"])):
        errors = object_rules.validate_update(RESOURCE, strategy, obj=obj, old=old)
        assert [error.field for error in errors] == wrong


def test_events_are_selected_by_their_object_reason_type_and_source() -> None:
    obj = event(**NEW)
    found = {name: read(obj) for name, read in RESOURCE.selectable_fields.items()}
    assert found == {
        "involvedObject.kind": "Pod",
        "involvedObject.namespace": "ns",
        "involvedObject.name": "p",
        "involvedObject.uid": "",
        "involvedObject.apiVersion": "",
        "involvedObject.resourceVersion": "",
        "involvedObject.fieldPath": "",
        "reason": "r",
        "reportingComponent": "example.com/c",
        "type": "Normal",
        "source": "example.com/c",
    }
    assert RESOURCE.selectable_fields["source"](event(source={"component": "s"}, **NEW)) == "s"
    assert EVENTS.field_labels is not None
    assert set(EVENTS.field_labels.values()) <= set(RESOURCE.selectable_fields)


def test_both_groups_have_one_table() -> None:
    obj = event(message=" it started \n", source={"component": "c", "host": "h"}, count=3, firstTimestamp=NOW, **NEW)
    assert cells(obj) == {
        "Last Seen": NOW,
        "Type": "Normal",
        "Reason": "r",
        "Object": "pod/p",
        "Subobject": "",
        "Source": "c, h",
        "Message": "it started",
        "First Seen": NOW,
        "Count": 3,
        "Name": "e",
    }
    assert cells(from_core(obj), EVENTS) == cells(obj)
    assert [column.name for column in CORE.columns if not column.priority] == [
        "Last Seen",
        "Type",
        "Reason",
        "Object",
        "Message",
    ]


@pytest.mark.parametrize(
    ("fields", "last_seen", "first_seen", "count"),
    [
        ({}, "", "", 1),
        ({"eventTime": TIME}, TIME, TIME, 1),
        ({"firstTimestamp": NOW, "count": 7}, NOW, NOW, 7),
        ({"firstTimestamp": NOW, "lastTimestamp": "2020-02-03T05:05:06Z"}, "2020-02-03T05:05:06Z", NOW, 1),
        ({"eventTime": TIME, "series": {"count": 4, "lastObservedTime": LATER}}, LATER, TIME, 4),
        ({"lastTimestamp": NOW, "series": {}}, "", "", 0),
    ],
)
def test_the_times_in_the_table_are_those_that_an_event_has(
    fields: dict[str, Any], last_seen: str, first_seen: str, count: int
) -> None:
    found = cells(event(**fields))
    assert (found["Last Seen"], found["First Seen"], found["Count"]) == (last_seen, first_seen, count)


def test_an_event_about_a_kind_and_no_object_names_the_kind() -> None:
    assert cells(event(involvedObject={"kind": "Pod"}))["Object"] == "pod"
