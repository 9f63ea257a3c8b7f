from __future__ import annotations

import re
import time
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clusterregistry.apimachinery.meta import object_meta
from clusterregistry.apimachinery.meta.object_meta import MetadataError, decode, deduplicate_owner_references
from clusterregistry.apimachinery.schema.fast_path import is_usual
from tests.apimachinery import json_values

OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": "u-1"}


def test_what_is_null_or_empty_is_left_out() -> None:
    given_metadata: dict[str, Any] = {
        "name": "a",
        "generateName": "",
        "namespace": None,
        "labels": {},
        "annotations": None,
        "finalizers": [],
        "ownerReferences": [],
        "generation": 0,
        "creationTimestamp": None,
    }
    assert decode(given_metadata).metadata == {"name": "a"}


def test_null_metadata_is_empty() -> None:
    assert decode(None) == ({}, [])


def test_zero_seconds_of_grace_are_not_absent() -> None:
    assert decode({"deletionGracePeriodSeconds": 0}).metadata == {"deletionGracePeriodSeconds": 0}


def test_null_values_of_maps_and_lists_are_empty_strings() -> None:
    decoded = decode({"labels": {"k": None}, "finalizers": [None]}).metadata
    assert decoded == {"labels": {"k": ""}, "finalizers": [""]}


def test_times_are_normalised() -> None:
    decoded = decode({"creationTimestamp": "2024-01-02T03:04:05.5+01:00"}).metadata
    assert decoded == {"creationTimestamp": "2024-01-02T02:04:05Z"}


def test_unknown_fields_are_dropped_and_named() -> None:
    decoded = decode({"name": "a", "zulu": 1, "bogus": "x", "ownerReferences": [{**OWNER, "extra": 1}]})
    assert decoded.metadata == {"name": "a", "ownerReferences": [OWNER]}
    assert decoded.unknown == ["metadata.bogus", "metadata.ownerReferences[0].extra", "metadata.zulu"]


def test_field_names_are_case_sensitive() -> None:
    assert decode({"Name": "a"}) == ({}, ["metadata.Name"])


def test_managed_fields_keep_what_an_entry_has() -> None:
    entry = {"manager": "m", "time": "2020-01-01T01:00:00+01:00", "fieldsV1": {"f:x": {}}, "subresource": "", "odd": 1}
    decoded = decode({"managedFields": [entry, None]})
    assert decoded.metadata == {
        "managedFields": [{"manager": "m", "time": "2020-01-01T00:00:00Z", "fieldsV1": {"f:x": {}}}, {}]
    }
    assert decoded.unknown == ["metadata.managedFields[0].odd"]


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"manager": 5}, "number into Go struct field ManagedFieldsEntry.managedFields.manager of type string"),
        (
            {"operation": []},
            (
                "array into Go struct field ManagedFieldsEntry.managedFields.operation "
                "of type v1.ManagedFieldsOperationType"
            ),
        ),
        ({"time": 5}, "number into Go struct field ManagedFieldsEntry.managedFields.time of type string"),
        ("x", "string into Go struct field ObjectMeta.managedFields of type v1.ManagedFieldsEntry"),
    ],
)
def test_managed_fields_of_a_wrong_type_are_refused(entry: object, message: str) -> None:
    with pytest.raises(MetadataError, match=f"^json: cannot unmarshal {re.escape(message)}$"):
        decode({"managedFields": [entry]})


def test_owner_references_get_the_fields_that_go_always_writes() -> None:
    assert decode({"ownerReferences": [{"controller": True}, None]}).metadata["ownerReferences"] == [
        {"apiVersion": "", "kind": "", "name": "", "uid": "", "controller": True},
        {"apiVersion": "", "kind": "", "name": "", "uid": ""},
    ]


def test_whole_floats_are_integers() -> None:
    assert decode({"generation": 2.0}).metadata == {"generation": 2}


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({"labels": {"k": 5}}, "cannot unmarshal number into Go struct field ObjectMeta.labels of type string"),
        ({"labels": []}, "cannot unmarshal array into Go struct field ObjectMeta.labels of type map[string]string"),
        ({"name": True}, "cannot unmarshal bool into Go struct field ObjectMeta.name of type string"),
        ({"uid": {}}, "cannot unmarshal object into Go struct field ObjectMeta.uid of type types.UID"),
        ({"finalizers": "x"}, "cannot unmarshal string into Go struct field ObjectMeta.finalizers of type []string"),
        ({"generation": "1"}, "cannot unmarshal string into Go struct field ObjectMeta.generation of type int64"),
        ({"generation": 1.5}, "cannot unmarshal number 1.5 into Go struct field ObjectMeta.generation of type int64"),
        ({"creationTimestamp": 5}, "cannot unmarshal number into Go value of type string"),
        ("text", "cannot unmarshal string into Go value of type v1.ObjectMeta"),
        (
            {"ownerReferences": [{"controller": "yes"}]},
            "cannot unmarshal string into Go struct field OwnerReference.ownerReferences.controller of type bool",
        ),
    ],
)
def test_a_wrong_type_is_refused_in_the_words_of_go(metadata: Any, message: str) -> None:
    with pytest.raises(MetadataError) as refused:
        decode(metadata)
    assert str(refused.value) == f"json: {message}"


def test_a_bad_time_is_refused() -> None:
    with pytest.raises(MetadataError, match="parsing time"):
        decode({"deletionTimestamp": "soon"})


def test_the_input_is_not_changed() -> None:
    metadata = {"labels": {"k": None}, "bogus": 1}
    decode(metadata)
    assert metadata == {"labels": {"k": None}, "bogus": 1}


def test_equal_owner_references_are_dropped_with_a_warning() -> None:
    metadata = {"ownerReferences": [dict(OWNER), {**OWNER, "name": "o2"}, dict(OWNER)]}
    assert deduplicate_owner_references(metadata) == [
        (
            ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, "
            "and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: u-1"
        )
    ]
    assert metadata == {"ownerReferences": [OWNER, {**OWNER, "name": "o2"}]}


def test_a_patch_is_warned_of_repeated_owners_in_other_words() -> None:
    (warning,) = deduplicate_owner_references({"ownerReferences": [OWNER, OWNER]}, patched=True)
    assert "duplicate entries after mutating admission happens;" in warning


def test_owners_that_differ_are_kept_without_a_word() -> None:
    metadata = {"ownerReferences": [OWNER, {**OWNER, "name": "o2"}]}
    assert deduplicate_owner_references(metadata) == []
    assert len(metadata["ownerReferences"]) == 2


fields = st.sampled_from(("name", "labels", "annotations", "finalizers", "ownerReferences", "generation", "uid"))


@given(json_values.values | st.dictionaries(fields, json_values.values, max_size=5))
def test_any_json_decodes_once_and_for_all_or_is_refused(metadata: Any) -> None:
    with suppress(MetadataError):
        decoded = decode(metadata).metadata
        assert decode(decoded) == (decoded, [])


def test_what_is_still_the_very_same_value_is_not_decoded_again() -> None:
    known = decode({"name": "a", "labels": {"a": "b"}, "ownerReferences": [OWNER], "generation": 3}).metadata
    patched = decode({**known, "labels": {"a": None}, "selfLink": ""}, known).metadata
    assert patched == {**known, "labels": {"a": ""}}
    assert patched["ownerReferences"] is known["ownerReferences"]
    with pytest.raises(MetadataError):
        decode({**known, "labels": {"a": 1}}, known)


ENTRY = {
    "manager": "m",
    "operation": "Update",
    "apiVersion": "v1",
    "time": "2020-01-01T00:00:00Z",
    "fieldsType": "FieldsV1",
    "fieldsV1": {"f:x": {}},
}

USUAL = {
    "annotations": {"a": "b"},
    "creationTimestamp": "2020-01-01T00:00:00Z",
    "generateName": "a-",
    "generation": 3,
    "labels": {"a": ""},
    "managedFields": [ENTRY, {**ENTRY, "subresource": "status"}],
    "name": "a",
    "namespace": "a",
    "resourceVersion": "1",
    "selfLink": "/a",
    "uid": "u",
}
_TIMES = ["0001-01-01T00:00:00Z", "2020-01-01T01:00:00+01:00", "2020-01-01T00:00:00Z\n", "2020-02-30T00:00:00Z"]
_odd: st.SearchStrategy[Any] = st.sampled_from(
    ["", "x", "\ud800", {}, [], None, 0, 1.0, True, 2**63, {"a": None}, [{}], *_TIMES]
)

odd_entries = st.builds(
    lambda change, less: {key: value for key, value in {**ENTRY, **change}.items() if key not in less},
    st.dictionaries(st.sampled_from([*ENTRY, "subresource", "odd"]), _odd | json_values.values, max_size=2),
    st.sets(st.sampled_from([*ENTRY]), max_size=2),
)
odd_metadata = st.builds(
    lambda change, less: {key: value for key, value in {**USUAL, **change}.items() if key not in less},
    st.dictionaries(st.sampled_from([*USUAL, "finalizers", "odd"]), _odd | json_values.values, max_size=2)
    | st.builds(lambda entry: {"managedFields": [ENTRY, entry]}, odd_entries),
    st.sets(st.sampled_from([*USUAL]), max_size=9),
)


def test_metadata_as_we_write_it_is_recognised() -> None:
    assert is_usual(USUAL)
    assert decode(USUAL) == (USUAL, [])


@given(odd_metadata)
@settings(max_examples=300)
def test_what_is_recognised_decodes_to_itself(metadata: dict[str, Any]) -> None:
    """Without being recognised, that is; and what is not recognised decodes as it did."""
    recognised = is_usual(metadata)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(object_meta, "is_usual", lambda _metadata: False)
        try:
            expected: Any = decode(metadata)
        except MetadataError as error:
            expected = error
    if recognised:
        assert expected == (metadata, [])
        assert all(type(value) is type(metadata[key]) for key, value in expected.metadata.items())  # 1 is not 1.0


@given(st.dictionaries(st.text(max_size=3), st.none() | st.text(max_size=3), max_size=3))
def test_nulls_in_maps_of_texts_are_empty(labels: dict[str, Any]) -> None:
    decoded = decode({"labels": labels}).metadata.get("labels", {})
    assert decoded == {key: value or "" for key, value in labels.items()}


def test_tens_of_thousands_of_owners_are_compared_in_a_moment() -> None:
    """One with all before it would be two hundred million comparisons."""
    owners = [{"apiVersion": "v1", "kind": "K", "name": "n", "uid": str(number)} for number in range(20_000)]
    metadata = {"ownerReferences": [*owners, dict(owners[0])]}
    begun = time.process_time()
    (warning,) = deduplicate_owner_references(metadata)
    assert time.process_time() - begun < 1
    assert metadata["ownerReferences"] == owners
    assert warning.endswith("duplicate UID(s) observed: 0")
