import contextlib
import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterregistry.apimachinery.patch import InvalidPatch, PatchError, PatchFailed, merge_patch, strategic_merge
from clusterregistry.apimachinery.patch.json_patch import equal
from clusterregistry.apimachinery.schema.schemas import Array, Integer, Map, Object, String
from tests.apimachinery.codecs.wire_values import SMALL_MAPS, SMALL_VALUES

CONDITION = Object(
    fields={
        "type": String(),
        "status": String(),
        "reasons": Array(items=String(), list_type="set"),
        "details": Object(fields={"a": String(), "b": String()}),
    }
)
SCHEMA = Object(
    fields={
        "spec": Object(
            fields={
                "list": Array(items=Object(fields={"x": Integer()})),
                "named": Map(
                    values=Object(fields={"items": Array(items=CONDITION, list_type="map", map_keys=("type",))})
                ),
                "names": Array(items=String(), list_type="set"),
            }
        ),
        "status": Object(fields={"conditions": Array(items=CONDITION, list_type="map", map_keys=("type",))}),
    }
)


def apply(document: dict[str, Any], patch: Any) -> Any:
    before = copy.deepcopy((document, patch))
    try:
        return strategic_merge.apply(document, patch, schema=SCHEMA)
    finally:
        assert (document, patch) == before


def conditions(*items: dict[str, Any]) -> dict[str, Any]:
    return {"status": {"conditions": list(items)}}


def condition(kind: str, **rest: Any) -> dict[str, Any]:
    return {"type": kind, **rest}


def directives(children: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    keys = st.sampled_from(
        [
            *("type", "status", "conditions", "spec", "names", "$patch", "$retainKeys", "$setElementOrder/conditions"),
            *(
                "$setElementOrder/names",
                "$deleteFromPrimitiveList/names",
                "$deleteFromPrimitiveList",
                "$setElementOrder",
            ),
        ]
    )
    return st.lists(children, max_size=3) | st.dictionaries(keys, children, max_size=4)


PATCHES = st.recursive(
    st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from(["A", "B", "delete", "replace", "merge", "names"]),
    directives,
    max_leaves=12,
)


@given(PATCHES, PATCHES)
def test_inputs_are_never_modified_and_only_patch_errors_raised(document: Any, patch: Any) -> None:
    objects = {"status": document, "spec": document}, {"status": patch, "spec": patch}
    before = copy.deepcopy(objects)
    with contextlib.suppress(PatchError):
        strategic_merge.apply(objects[0], objects[1], schema=SCHEMA)
    assert objects == before


@given(SMALL_MAPS, SMALL_MAPS.map(merge_patch.without_nulls))
def test_fields_without_a_schema_merge_as_in_a_merge_patch(document: dict[str, Any], patch: dict[str, Any]) -> None:
    assert equal(apply(document, patch), merge_patch.apply(document, patch))


@given(st.lists(st.sampled_from("ABCDE"), unique=True), st.lists(st.sampled_from("ABCDE"), unique=True))
def test_sets_merge_to_their_union_with_both_orders_kept(old: list[str], new: list[str]) -> None:
    merged = apply({"spec": {"names": old}}, {"spec": {"names": new}})["spec"]["names"]
    assert sorted(merged) == sorted({*old, *new})
    assert [name for name in merged if name in new] == new
    assert [name for name in merged if name not in new] == [name for name in old if name not in new]


@pytest.mark.parametrize("value", [None, 1, "x", {}, [], [1]])
def test_null_removes_and_other_types_replace(value: Any) -> None:
    expected = {"spec": {}} if value is None else {"spec": {"names": value}}
    assert apply({"spec": {"names": {"a": 1}}}, {"spec": {"names": value, "gone": None}}) == (
        expected if value != {} else {"spec": {"names": {"a": 1}}}
    )


def test_a_null_patch_changes_nothing() -> None:
    assert apply({"a": 1}, None) == {"a": 1}


@pytest.mark.parametrize("patch", [[], "x", 1])
def test_a_patch_must_be_a_map(patch: Any) -> None:
    with pytest.raises(InvalidPatch, match="error decoding patch"):
        apply({}, patch)


def test_lists_of_maps_merge_by_their_key() -> None:
    old = conditions(condition("A", status="1", reasons=["x"]), condition("B", status="1"))
    patch = conditions(condition("C", status="3", details={"a": None}), condition("A", status="2", reasons=["y"]))
    assert apply(old, patch) == conditions(
        condition("C", status="3", details={}),
        condition("A", status="2", reasons=["y", "x"]),
        condition("B", status="1"),
    )


def test_lists_in_maps_merge_by_their_key_too() -> None:
    old = {"spec": {"named": {"n": {"items": [condition("A", status="1")]}}}}
    patch = {"spec": {"named": {"n": {"items": [condition("A", reasons=["x"])]}}}}
    merged = {"spec": {"named": {"n": {"items": [condition("A", status="1", reasons=["x"])]}}}}
    assert apply(old, patch) == merged


def test_atomic_lists_are_replaced() -> None:
    assert apply({"spec": {"list": [{"x": 1}, {"x": 2}]}}, {"spec": {"list": [{"x": 3}]}}) == {
        "spec": {"list": [{"x": 3}]}
    }


def test_finalizers_are_a_set_and_owners_merge_by_uid() -> None:
    old = {"metadata": {"finalizers": ["a", "b"], "ownerReferences": [{"uid": "1", "name": "x"}]}}
    patch = {"metadata": {"finalizers": ["c", "b"], "ownerReferences": [{"uid": "2"}, {"uid": "1", "name": "y"}]}}
    merged = apply(old, patch)["metadata"]
    assert merged["finalizers"] == ["c", "a", "b"]
    assert merged["ownerReferences"] == [{"uid": "2"}, {"uid": "1", "name": "y"}]


def test_delete_removes_an_item_by_its_key() -> None:
    patch = conditions({"$patch": "delete", "type": "A"}, {"$patch": "delete", "type": "missing"})
    assert apply(conditions(condition("A"), condition("B")), patch) == conditions(condition("B"))


def test_replace_in_a_list_takes_the_other_items_alone() -> None:
    patch = conditions({"$patch": "replace"}, condition("C"))
    assert apply(conditions(condition("A"), condition("B")), patch) == conditions(condition("C"))


def test_replace_in_a_map_takes_the_rest_of_the_map() -> None:
    assert apply({"spec": {"a": 1, "b": 2}}, {"spec": {"$patch": "replace", "c": 3, "d": None}}) == {"spec": {"c": 3}}


def test_delete_in_a_map_empties_it() -> None:
    assert apply({"spec": {"a": 1}, "x": 1}, {"spec": {"$patch": "delete"}}) == {"spec": {}, "x": 1}


def test_directives_never_become_part_of_the_object() -> None:
    patch = {
        "spec": {
            "deep": {
                "$retainKeys": ["a"],
                "$setElementOrder/l": [1],
                "$deleteFromPrimitiveList/l": [1],
                "a": {"$patch": "delete"},
            },
            "l": [{"$patch": "delete", "type": "A"}, {"type": "B"}],
            "gone": {"$patch": "replace", "a": 1},
        }
    }
    assert apply({}, patch) == {"spec": {"deep": {}, "l": [{"type": "B"}]}}


def test_retain_keys_clears_what_it_does_not_list() -> None:
    patch = {"spec": {"$retainKeys": ["a", "c"], "c": 3, "x": None}}
    assert apply({"spec": {"a": 1, "b": 2}}, patch) == {"spec": {"a": 1, "c": 3}}


@pytest.mark.parametrize("keys", ["a", None, {"a": 1}, ["a"]])
def test_retain_keys_must_list_what_the_patch_sets(keys: Any) -> None:
    with pytest.raises(InvalidPatch, match="invalid patch format of retainKeys"):
        apply({"spec": {"a": 1}}, {"spec": {"$retainKeys": keys, "b": 1}})


def test_delete_from_primitive_list_removes_scalars() -> None:
    old = {"metadata": {"finalizers": ["a", "b", "c"]}}
    patch = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a", "x"], "finalizers": ["d"]}}
    assert apply(old, patch) == {"metadata": {"finalizers": ["d", "b", "c"]}}


def test_delete_from_primitive_list_of_no_list_changes_nothing() -> None:
    assert apply({"spec": {"a": 1}}, {"spec": {"$deleteFromPrimitiveList/b": ["x"]}}) == {"spec": {"a": 1}}


def test_set_element_order_orders_what_it_lists_and_keeps_the_rest_in_place() -> None:
    old = {"spec": {"names": ["a", "server", "b", "c"]}}
    patch = {"spec": {"$setElementOrder/names": ["c", "new", "a", "b"], "names": ["new"]}}
    assert apply(old, patch) == {"spec": {"names": ["server", "c", "new", "a", "b"]}}


def test_set_element_order_works_on_lists_of_maps() -> None:
    old = conditions(condition("A", status="1"), condition("B"), condition("C"))
    patch = {
        "status": {
            "$setElementOrder/conditions": [{"type": "C"}, {"type": "A"}],
            "conditions": [condition("A", status="2"), {"$patch": "delete", "type": "B"}],
        }
    }
    assert apply(old, patch) == conditions(condition("C"), condition("A", status="2"))


def test_set_element_order_of_an_unchanged_list_only_orders() -> None:
    old = conditions(condition("A"), condition("B"))
    patch = {"status": {"$setElementOrder/conditions": [{"type": "B"}, {"type": "A"}]}}
    assert apply(old, patch) == conditions(condition("B"), condition("A"))


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        ({"$patch": "merge"}, "unknown patch type: merge"),
        ({"$patch": 1}, "unknown patch type: int64"),
        (conditions({"$patch": "merge", "type": "A"}), "merging lists cannot yet be specified in the patch"),
        (conditions({"$patch": "other", "type": "A"}), "unknown patch type: other"),
        (conditions({"$patch": "delete"}), "map does not contain declared merge key: type"),
        (conditions({"status": "1"}), "map does not contain declared merge key: type"),
        (conditions({"type": {}}), "expected a scalar, but received a map"),
        ({"status": {"conditions": ["a"]}}, "list element types are not identical"),
        ({"status": {"conditions": [None]}}, "list element types are not identical"),
        ({"status": {"$deleteFromPrimitiveList": []}}, "invalid patch format of primitive list"),
        ({"status": {"$deleteFromPrimitiveList/conditions": [{}]}}, "invalid patch format of primitive list"),
        ({"status": {"$setElementOrder": []}}, "invalid patch format of setElementOrder list"),
        ({"status": {"$setElementOrder/conditions": "x"}}, "expected a []interface {}, but received a string"),
        (
            {"status": {"$setElementOrder/conditions": ["x"]}},
            "expected a map[string]interface {}, but received a string",
        ),
        (
            {"status": {"$setElementOrder/conditions": [{"type": "B"}], "conditions": [condition("C")]}},
            "The order in patch list doesn't match $setElementOrder list",
        ),
    ],
)
def test_malformed_directives_are_invalid(patch: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidPatch) as raised:
        apply(conditions(condition("A"), condition("B")), patch)
    assert str(raised.value) == message


def test_lists_of_lists_cannot_be_merged() -> None:
    with pytest.raises(PatchFailed, match="lists of lists are not supported"):
        apply({"spec": {"names": ["a"]}}, {"spec": {"names": [["b"]]}})


@given(SMALL_VALUES)
def test_unchanged_parts_are_shared(value: Any) -> None:
    document = {"spec": {"a": value, "b": {"c": 1}}, "metadata": {}}
    result = strategic_merge.apply(document, {"metadata": {"labels": {"x": "1"}}}, schema=SCHEMA)
    assert result["spec"] is document["spec"]
