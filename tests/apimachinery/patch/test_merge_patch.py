import copy
from typing import Any

import pytest
from hypothesis import given

from clusterregistry.apimachinery.patch import InvalidPatch, merge_patch
from clusterregistry.apimachinery.patch.json_patch import equal
from tests.apimachinery.codecs.wire_values import SMALL_MAPS, SMALL_VALUES


def difference(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """The merge patch from one map to another that has no nulls."""
    patch: dict[str, Any] = {key: None for key in old if key not in new}
    for key, value in new.items():
        if isinstance(value, dict) and isinstance(old.get(key), dict):
            patch[key] = difference(old[key], value)
        elif key not in old or not equal(old[key], value):
            patch[key] = value
    return patch


@given(SMALL_MAPS, SMALL_MAPS)
def test_inputs_are_never_modified(document: dict[str, Any], patch: dict[str, Any]) -> None:
    before = copy.deepcopy((document, patch))
    merge_patch.apply(document, patch)
    assert (document, patch) == before


def members(value: Any) -> list[Any]:
    """All values of maps at any depth, those of maps in lists too."""
    children = list(value.values() if isinstance(value, dict) else value if isinstance(value, list) else ())
    return (children if isinstance(value, dict) else []) + [each for child in children for each in members(child)]


def with_nulls_for_nulls(value: Any, original: Any) -> Any:
    """A value with the null members of another back in it, in their places."""
    if isinstance(original, dict):
        return {key: None if each is None else with_nulls_for_nulls(value[key], each) for key, each in original.items()}
    if isinstance(original, list):
        return [with_nulls_for_nulls(*pair) for pair in zip(value, original, strict=True)]
    return value


@given(SMALL_VALUES)
def test_what_is_added_lacks_the_null_members_and_nothing_else(value: Any) -> None:
    added = merge_patch.without_nulls(value)
    assert not [each for each in members(added) if each is None]
    assert repr(with_nulls_for_nulls(added, value)) == repr(value)


@given(SMALL_MAPS)
def test_what_is_added_is_a_copy(value: dict[str, Any]) -> None:
    """Whoever changes the patched object does not change the patch, which may have to be applied again."""
    added = merge_patch.without_nulls({"a": value, "b": [value]})
    assert added["a"] is not value
    assert added["b"][0] is not value


@given(SMALL_MAPS, SMALL_MAPS)
def test_a_patch_applied_twice_is_a_patch_applied_once(document: dict[str, Any], patch: dict[str, Any]) -> None:
    once = merge_patch.apply(document, patch)
    assert equal(merge_patch.apply(once, patch), once)


@given(SMALL_MAPS, SMALL_MAPS.map(merge_patch.without_nulls))
def test_the_difference_of_two_documents_leads_from_one_to_the_other(old: dict[str, Any], new: dict[str, Any]) -> None:
    assert equal(merge_patch.apply(old, difference(old, new)), new)


@given(SMALL_MAPS)
def test_an_empty_patch_changes_nothing(document: dict[str, Any]) -> None:
    assert merge_patch.apply(document, {}) == document


# What the table of RFC 7386 demonstrates, with values of our own, and what the Go library does with nulls.
@pytest.mark.parametrize(
    ("document", "patch", "result"),
    [
        ({"k": "v"}, {"k": "w"}, {"k": "w"}),
        ({"k": "v"}, {"l": "w"}, {"k": "v", "l": "w"}),
        ({"k": "v"}, {"k": None}, {}),
        ({"k": "v", "l": "w"}, {"k": None}, {"l": "w"}),
        ({"k": ["v"]}, {"k": "w"}, {"k": "w"}),
        ({"k": "v"}, {"k": ["w"]}, {"k": ["w"]}),
        ({"k": {"l": "m"}}, {"k": {"l": "n", "o": None}}, {"k": {"l": "n"}}),
        ({"k": [{"l": "m"}]}, {"k": [1]}, {"k": [1]}),
        ({"e": None}, {"k": 1}, {"e": None, "k": 1}),
        ({"k": "scalar"}, {"k": {"l": {"m": None}}}, {"k": {"l": {}}}),
        ({}, {"k": {"l": {"m": None}}}, {"k": {"l": {}}}),
        ({"k": None}, {"k": {"l": None, "m": 1}}, {"k": {"m": 1}}),
        ({}, {"k": [None, {"l": None, "m": [None]}]}, {"k": [None, {"m": [None]}]}),
        ([1, 2], {"k": "v", "l": None}, {"k": "v"}),
        ({}, {"missing": None}, {}),
    ],
)
def test_merging(document: Any, patch: dict[str, Any], result: Any) -> None:
    assert merge_patch.apply(document, patch) == result


@pytest.mark.parametrize(
    ("patch", "kind"), [([], "array"), ("x", "string"), (1, "number"), (1.5, "number"), (True, "bool")]
)
def test_a_patch_must_be_a_map(patch: Any, kind: str) -> None:
    with pytest.raises(InvalidPatch) as raised:
        merge_patch.apply({}, patch)
    assert str(raised.value) == (
        f"error decoding patch: json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"
    )


def test_null_is_no_patch() -> None:
    with pytest.raises(InvalidPatch, match=r"^Invalid JSON Patch$"):
        merge_patch.apply({}, None)


def test_unchanged_parts_are_shared() -> None:
    document = {"spec": {"a": 1}, "metadata": {"labels": {}}}
    result = merge_patch.apply(document, {"metadata": {"labels": {"x": "1"}}})
    assert result["spec"] is document["spec"]
