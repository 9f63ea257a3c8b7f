"""The invariants of object_bytes: offsets, slot, metadata span, labels and memo, for any object that can be stored."""

from __future__ import annotations

import copy
import json
from typing import Any

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from clusterregistry.apiserver.storage.interface import KeyValue
from clusterregistry.apiserver.storage.object_bytes import (
    Memo,
    Object,
    at_revision,
    decoded,
    decoded_to_read,
    has_owners,
    has_same_property,
    is_being_deleted,
    labels_of,
    memo_of,
    metadata_of,
    metadata_size,
    metadata_span,
    name_of,
    newest_write_time,
    owner_references_of,
    presented,
    read_labels,
    read_metadata,
    size_of,
    to_served,
    to_stored,
    uid_of,
)

REVISION = 42
TRICKY = '"labels":{"not":"this"},"managedFields":[{"metadata":{"uid":"}\n'
LABELS = {"env": "prod", "app.kubernetes.io/name": "", "labels": "metadata"}
FIELDS = [{"manager": "m", "fieldsV1": {"labels": {"f:env": {}}, "metadata": {}, "uid": {}, TRICKY: {}}}]
OWNERS = [{"kind": TRICKY, "name": '],"name":', "uid": "}"}]


def new_object(**metadata: Any) -> Object:
    """An object that repeats the names of metadata wherever a kind may have them."""
    return {
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"metadata": "x", "labels": TRICKY}}]},
        "metadata": {"name": "a", "uid": "u-1", **metadata},
        "spec": {"labels": {"no": "label"}, "metadata": {"labels": {"nor": "this"}, "uid": "}"}},
    }


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8) | st.just(TRICKY)
label_texts = st.text("abc/.-_", max_size=8) | st.sampled_from(["labels", "metadata", "uid", "resourceVersion"])
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | texts,
    lambda children: st.lists(children, max_size=3) | st.dictionaries(texts | label_texts, children, max_size=3),
    max_leaves=6,
)
objects = st.fixed_dictionaries(
    {},
    optional={
        "annotations": st.dictionaries(texts | label_texts | st.just("deletionTimestamp"), texts, max_size=3),
        "deletionTimestamp": st.just("2026-01-02T03:04:05Z"),
        "finalizers": st.lists(texts, max_size=2),
        "generation": st.integers(0, 9),
        "labels": st.dictionaries(label_texts, label_texts, max_size=3),
        "managedFields": st.lists(st.dictionaries(texts | label_texts, json_values, max_size=2), max_size=2)
        | st.just(FIELDS),
        "namespace": st.just("default"),
        "ownerReferences": st.just(OWNERS),
        "resourceVersion": st.just("7"),
    },
).map(lambda metadata: new_object(**metadata))
"""Objects that break no invariant: labels without braces, and names of metadata in all other places."""

revisions = st.sampled_from([0, 1, 9, 10, REVISION, 10**18])

for_any_object = given(objects)


def served(obj: Object, revision: int = REVISION) -> KeyValue:
    return presented(KeyValue("/group/plural/a", to_stored(obj), revision))


def with_version(obj: Object, revision: int) -> Object:
    """The object as a client gets it."""
    found = copy.deepcopy(obj)
    found["metadata"].pop("resourceVersion", None)
    if revision:
        found["metadata"]["resourceVersion"] = str(revision)
    return found


@for_any_object
def test_a_stored_value_is_sorted_json_with_one_slot(obj: Object) -> None:
    stored = to_stored(obj)
    assert stored.count(b"\n") == 1
    expected = json.dumps(with_version(obj, 0), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert stored.replace(b"\n", b"") == expected.encode()


@given(objects, revisions)
def test_a_served_value_is_the_object_with_its_revision(obj: Object, revision: int) -> None:
    kv = served(obj, revision)
    assert decoded(kv) == with_version(obj, revision)
    assert kv.value == to_served(to_stored(obj), revision)
    begin = b'"resourceVersion":"%d"' % revision if revision else b'"uid":"u-1"}'
    assert kv.value.startswith(begin, kv.slot)


@given(objects, revisions, revisions)
@example(new_object(labels={"resourceVersion": "42"}, annotations={"resourceVersion": "42"}), REVISION, 0)
def test_another_revision_changes_nothing_else(obj: Object, before: int, after: int) -> None:
    kv = served(obj, before)
    changed = at_revision(kv, after)
    assert changed == served(obj, after)
    assert changed.slot == kv.slot
    assert at_revision(changed, before) == kv


@given(objects, revisions)
def test_the_metadata_span_is_the_metadata(obj: Object, revision: int) -> None:
    kv = served(obj, revision)
    start, end = metadata_span(kv)
    assert orjson.loads(kv.value[start:end]) == with_version(obj, revision)["metadata"]
    assert metadata_of([kv, kv]) == [kv.value[start:end]] * 2
    assert metadata_size([kv, kv]) == 2 * (end - start)
    assert size_of([kv, kv]) == 2 * len(kv.value)


@for_any_object
@example(new_object(managedFields=FIELDS))
@example(new_object(labels={}, managedFields=FIELDS))
@example(new_object(labels=LABELS, managedFields=FIELDS, annotations={"labels": TRICKY, "managedFields": "["}))
def test_labels_are_those_of_the_metadata(obj: Object) -> None:
    expected = obj["metadata"].get("labels", {})
    kv = served(obj)
    assert read_labels(kv) == expected
    assert kv.memo is None  # a single use leaves no memo
    assert labels_of(kv) == expected
    assert labels_of(kv) is read_labels(kv)  # from now on both are the memo's


@for_any_object
@example(new_object(managedFields=FIELDS, ownerReferences=OWNERS))
def test_decoding_to_read_leaves_out_managed_fields_alone(obj: Object) -> None:
    expected = with_version(obj, REVISION)
    expected["metadata"].pop("managedFields", None)
    assert decoded_to_read(served(obj)) == expected


def test_a_memo_is_made_once_and_may_be_replaced_by_a_larger_one() -> None:
    class Row(Memo, gc=False, kw_only=True):
        cells: bytes

    kv = served(new_object(labels=LABELS))
    memo = memo_of(kv)
    assert memo_of(kv) is memo
    assert (memo.start, memo.end) == metadata_span(kv)
    kv.memo = Row(memo.start, memo.end, memo.labels, cells=b"[]")
    assert labels_of(kv) == LABELS
    assert kv.memo.labels == LABELS
    assert memo_of(kv) is kv.memo
    assert kv == served(new_object(labels=LABELS))  # a memo is no part of the value


def test_the_name_of_an_object_is_the_last_part_of_its_key() -> None:
    assert name_of(served(new_object())) == "a"


def test_an_object_without_a_uid_cannot_be_stored() -> None:
    with pytest.raises(ValueError, match="subsection not found"):
        to_stored({"metadata": {"name": "a"}})


@given(objects, revisions)
def test_owners_deletion_and_uid_are_read_without_decoding_the_object(obj: Object, revision: int) -> None:
    kv, metadata = served(obj, revision), with_version(obj, revision)["metadata"]
    for _ in range(2):  # without and with the memo
        assert uid_of(kv) == metadata["uid"]
        assert has_owners(kv) == bool(metadata.get("ownerReferences"))
        assert owner_references_of(kv) == metadata.get("ownerReferences", [])
        assert is_being_deleted(kv) == ("deletionTimestamp" in metadata)
        assert read_metadata(kv) == metadata
        memo_of(kv)


def test_a_uid_with_escaped_characters_is_read_too() -> None:
    assert uid_of(served(new_object(uid='a"b\\c'))) == 'a"b\\c'


def test_the_newest_write_is_that_of_the_managed_fields() -> None:
    created, changed = "2026-01-02T03:04:05Z", "2026-01-02T04:00:00Z"
    fields = [{"manager": "a", "time": changed, "fieldsV1": {"f:time": {}}}, {"manager": "b", "time": created}]
    assert newest_write_time(served(new_object(creationTimestamp=created, managedFields=fields))) == changed
    assert newest_write_time(served(new_object(creationTimestamp=changed, managedFields=fields[1:]))) == changed
    assert newest_write_time(served(new_object(creationTimestamp=created))) == ""
    assert newest_write_time(served(new_object(managedFields=[{"manager": "a"}]))) == ""


_IDENTITIES = st.sampled_from(["a", "ab", "", 'a"', "a\\", '"id":"', 'a","id":"b'])
_SPECS = st.fixed_dictionaries(
    {},
    optional={
        "id": _IDENTITIES,
        "aa": _IDENTITIES,
        "zz": _IDENTITIES,
        "ie": st.fixed_dictionaries({"id": _IDENTITIES}),
    },
)


@given(_SPECS, _SPECS)
def test_a_property_that_is_certainly_the_same_is_the_same(one: Object, other: Object) -> None:
    """Whatever is beside it; and what is the same is recognised, unless it needs escapes."""
    states = [served({**new_object(labels={"id": "x"}), "spec": spec}) for spec in (one, other)]
    same = has_same_property(states[0], states[1], "id")
    found = [
        [each for each in (spec.get("id"), spec.get("ie", {}).get("id")) if each is not None] for spec in (one, other)
    ]
    assert not same or found[0] == found[1]
    if one == other and all(each in {"a", "ab", ""} for each in found[0]):
        assert same
