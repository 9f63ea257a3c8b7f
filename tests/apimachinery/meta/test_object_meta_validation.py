from __future__ import annotations

from itertools import chain
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterregistry.apimachinery.meta.field_errors import FieldError
from clusterregistry.apimachinery.meta.names import label_key_errors, label_value_errors
from clusterregistry.apimachinery.meta.object_meta import MetadataError, decode
from clusterregistry.apimachinery.meta.object_meta_validation import (
    finalizer_warnings,
    validate_annotations,
    validate_create,
    validate_labels,
    validate_update,
)
from tests.apimachinery import json_values

OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": "u-1"}


def created(**metadata: Any) -> list[FieldError]:
    return validate_create({"name": "a", **metadata})


def test_good_metadata_has_no_errors() -> None:
    assert (
        created(
            labels={"k": "", "example.com/K_1": "A.b_c-9"},
            annotations={"Example.COM/k": "any thing\nat all {}"},
            finalizers=["foregroundDeletion", "kubernetes", "example.com/x"],
            ownerReferences=[OWNER, {**OWNER, "uid": "u-2", "controller": True}],
        )
        == []
    )


def test_a_name_is_required() -> None:
    (error,) = validate_create({})
    assert str(error) == "metadata.name: Required value: name or generateName is required"


def test_a_bad_name_and_a_bad_prefix_are_both_reported() -> None:
    fields = [error.field for error in validate_create({"name": "Upper", "generateName": "Upper-"})]
    assert fields == ["metadata.generateName", "metadata.name"]


def test_a_bad_label_is_reported_by_key_and_by_value() -> None:
    errors = created(labels={"bad key": "bad value"})
    assert [error.message.split(":")[1] for error in errors] == [' "bad key"', ' "bad value"']
    assert {error.field for error in errors} == {"metadata.labels"}


def test_annotations_have_a_total_size() -> None:
    assert created(annotations={"k": "x" * 262143}) == []
    (error,) = created(annotations={"k": "x" * 262144})
    assert error.cause() == {
        "reason": "FieldValueTooLong",
        "message": "Too long: may not be more than 262144 bytes",
        "field": "metadata.annotations",
    }


def test_the_size_of_annotations_counts_bytes() -> None:
    assert created(annotations={"k": "ä" * 131072}) != []


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"uid": ""}, 'metadata.ownerReferences.uid: Invalid value: "": must not be empty'),
        ({"kind": ""}, 'metadata.ownerReferences.kind: Invalid value: "": must not be empty'),
        (
            {"apiVersion": "a/b/c"},
            'metadata.ownerReferences.apiVersion: Invalid value: "a/b/c": version must not be empty',
        ),
        (
            {"apiVersion": "apps/"},
            'metadata.ownerReferences.apiVersion: Invalid value: "apps/": version must not be empty',
        ),
    ],
)
def test_an_owner_reference_needs_all_its_parts(change: dict[str, str], error: str) -> None:
    assert [str(found) for found in created(ownerReferences=[{**OWNER, **change}])] == [error]


def test_an_event_owns_nothing() -> None:
    (error,) = created(ownerReferences=[{**OWNER, "kind": "Event"}])
    assert error.message.endswith(": /v1, Kind=Event is disallowed from being an owner")


def test_only_one_owner_is_the_controller() -> None:
    owners = [{**OWNER, "controller": True}, {**OWNER, "name": "o2", "uid": "u-2", "controller": True}]
    (error,) = created(ownerReferences=owners)
    assert error.message == (
        'Invalid value: [{"apiVersion":"v1","kind":"ConfigMap","name":"owner","uid":"u-1","controller":true},'
        '{"apiVersion":"v1","kind":"ConfigMap","name":"o2","uid":"u-2","controller":true}]: Only one reference can '
        'have Controller set to true. Found "true" in references for ConfigMap/owner and ConfigMap/o2'
    )


def test_bad_finalizers_are_refused_on_create() -> None:
    assert len(created(finalizers=[""])) == 2
    (error,) = created(finalizers=["orphan", "foregroundDeletion"])
    assert error.message == (
        'Invalid value: ["orphan","foregroundDeletion"]: finalizer orphan and foregroundDeletion cannot be both set'
    )


def test_a_name_is_looked_at_again_only_where_it_has_changed() -> None:
    """No update changes it: an object that was made under an older rule can still be written."""
    old = {"name": "_a", "uid": "u"}
    assert validate_update({**old, "labels": {"a": "b"}}, old) == ([], [])
    assert [error.field for error in validate_update({**old, "name": "_b"}, old).whole] == ["metadata.name"]
    assert [error.field for error in validate_update({**old, "generateName": "_"}, old).whole] == [
        "metadata.generateName",
        "metadata.name",
    ]
    assert [error.field for error in validate_update({"uid": "u"}, old).whole] == ["metadata.name"]


def test_a_cluster_name_is_refused_on_create_and_update() -> None:
    assert [error.field for error in created(clusterName="x")] == ["metadata.clusterName"]
    assert [error.field for error in validate_update({"clusterName": "x"}, {}).change] == ["metadata.clusterName"]


@pytest.mark.parametrize(
    ("key", "value", "shown"),
    [
        ("uid", "other", '"other"'),
        ("name", "b", '"b"'),
        ("creationTimestamp", "2024-01-01T00:00:00Z", '"2024-01-01T00:00:00Z"'),
        ("deletionGracePeriodSeconds", 3, "3"),
    ],
)
def test_what_the_server_sets_cannot_change(key: str, value: Any, shown: str) -> None:
    old = {"name": "a", "uid": "u"}
    assert [str(error) for error in validate_update({**old, key: value}, old).change] == [
        f"metadata.{key}: Invalid value: {shown}: field is immutable"
    ]


def test_a_removed_deletion_time_is_shown_as_null() -> None:
    (error,) = validate_update({}, {"deletionTimestamp": "2024-01-01T00:00:00Z"}).change
    assert str(error) == "metadata.deletionTimestamp: Invalid value: null: field is immutable"


def test_labels_are_checked_on_update_when_they_change() -> None:
    bad = {"labels": {"k": "bad value"}}
    assert len(validate_update(bad, {}).change) == 1
    assert validate_update(bad, bad).change == []


def test_no_finalizer_is_added_to_an_object_that_is_being_deleted() -> None:
    old = {"deletionTimestamp": "2024-01-01T00:00:00Z", "finalizers": ["example.com/x"]}
    assert validate_update({**old, "finalizers": []}, old).change == []
    (error,) = validate_update({**old, "finalizers": ["example.com/x", "example.com/z", "example.com/y"]}, old).change
    assert str(error) == (
        "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, "
        'found new finalizers []string{"example.com/y", "example.com/z"}'
    )


def test_finalizers_without_a_domain_are_warned_of_when_they_are_new() -> None:
    metadata = {"finalizers": ["hold", "example.com", "orphan", "example.com/x"]}
    assert finalizer_warnings(metadata) == [
        (
            'metadata.finalizers: "example.com": prefer a domain-qualified finalizer name including a path (/) '
            "to avoid accidental conflicts with other finalizer writers"
        ),
        (
            'metadata.finalizers: "hold": prefer a domain-qualified finalizer name '
            "to avoid accidental conflicts with other finalizer writers"
        ),
    ]
    assert finalizer_warnings(metadata, metadata) == []


fields = st.sampled_from(
    ("name", "generateName", "labels", "annotations", "finalizers", "ownerReferences", "clusterName")
)


@given(st.dictionaries(fields, json_values.values, max_size=5), st.dictionaries(fields, json_values.values, max_size=5))
def test_whatever_decodes_can_be_validated(new: Any, old: Any) -> None:
    try:
        metadata, before = decode(new).metadata, decode(old).metadata
    except MetadataError:
        return
    for error in chain(validate_create(metadata), *validate_update(metadata, before)):
        assert error.field.startswith("metadata.")
    assert all(isinstance(warning, str) for warning in finalizer_warnings(metadata, before))


def test_labels_that_were_validated_before_are_not_held_against_an_update() -> None:
    """Rules may have become stricter since; what is new or has another value keeps them."""
    known = {"name": "a", "labels": {"-old-": "-", "good": "-"}}
    metadata: dict[str, Any] = {"name": "a", "labels": {"-old-": "-", "good": "-", "-new-": "x"}}
    assert [error.message.partition(": name part")[0] for error in validate_update(metadata, known).whole] == [
        'Invalid value: "-new-"'
    ]
    metadata["labels"]["good"] = "--"
    assert len(validate_update(metadata, known).whole) == 2
    assert len(validate_create(metadata)) == 4


def test_managed_fields_that_were_validated_before_are_not_held_against_an_update() -> None:
    entry = {"manager": "a" * 200, "operation": "Apply"}
    old = {"name": "a", "managedFields": [entry]}
    assert validate_update({"name": "a", "managedFields": [entry]}, old) == ([], [])
    assert len(validate_update({"name": "a", "managedFields": [{**entry}]}, old).change) == 1


@given(st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=3))
def test_good_labels_and_annotations_are_those_of_which_each_is_good(texts: dict[str, str]) -> None:
    labels, annotations = validate_labels(texts), validate_annotations(texts)
    assert bool(labels) == any(label_key_errors(key) or label_value_errors(text) for key, text in texts.items())
    assert bool(annotations) == any(label_key_errors(key.lower()) for key in texts)
