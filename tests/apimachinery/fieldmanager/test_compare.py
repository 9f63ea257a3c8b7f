from __future__ import annotations

import copy
from typing import Any

import pytest

from clusterregistry.apimachinery.fieldmanager.compare import NO_CHANGE, compare, compile_compare
from tests.apimachinery.fieldmanager.schemas import SPEC_SCHEMA


def changes(old: dict[str, Any], new: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What was gained and what was removed."""
    before = copy.deepcopy((old, new))
    comparison = compare(SPEC_SCHEMA, old, new)
    assert (old, new) == before
    return comparison.gained, comparison.removed


def item(name: str, **rest: Any) -> dict[str, Any]:
    return {"name": name, **rest}


@pytest.mark.parametrize("value", [{}, {"text": "a"}, {"struct": {"a": None}, "set": ["a", "a"], "unknown": [{}]}])
def test_equal_objects_have_no_changes(value: dict[str, Any]) -> None:
    assert compare(SPEC_SCHEMA, value, value) is NO_CHANGE
    assert compare(SPEC_SCHEMA, value, copy.deepcopy(value)) == NO_CHANGE


@pytest.mark.parametrize(
    ("name", "value", "other"),
    [
        ("text", "a", "b"),
        ("number", 1, 2),
        ("flag", True, False),
        ("either", 1, "1"),
        ("text", None, "a"),
        ("when", "2024-01-01T00:00:00Z", "2024-01-01T00:00:01Z"),
        ("list", ["a"], ["a", "b"]),
        ("list", ["a"], []),
        ("listOfStructs", [{"a": "x"}], [{"a": "y"}]),
        ("atomicStruct", {"a": "x"}, {"a": "x", "b": "y"}),
        ("atomicStruct", {"a": "x"}, {}),
        ("atomicMap", {"a": "x"}, {"b": "x"}),
        ("unknown", {"a": 1}, {"a": 2}),
        ("unknown", [1], "x"),
    ],
)
def test_what_has_no_parts_is_a_leaf(name: str, value: Any, other: Any) -> None:
    leaf: dict[str, Any] = {f"f:{name}": {}}
    assert changes({}, {name: value}) == (leaf, {})
    assert changes({name: value}, {}) == ({}, leaf)
    assert changes({name: value}, {name: other}) == (leaf, {})
    assert changes({name: other}, {name: value}) == (leaf, {})


def test_whole_numbers_are_equal_with_and_without_a_point() -> None:
    assert changes({"number": 1}, {"number": 1.0}) == ({}, {})


@pytest.mark.parametrize(
    ("name", "value", "node"),
    [
        ("struct", {"a": "x", "deep": {"c": "y"}}, {".": {}, "f:a": {}, "f:deep": {".": {}, "f:c": {}}}),
        ("map", {"key": "x"}, {".": {}, "f:key": {}}),
        ("structs", {"key": {"a": "x"}}, {".": {}, "f:key": {".": {}, "f:a": {}}}),
        ("set", ["a", "b"], {".": {}, 'v:"a"': {}, 'v:"b"': {}}),
        ("numbers", [1], {".": {}, "v:1": {}}),
        ("items", [item("a", value="x")], {".": {}, 'k:{"name":"a"}': {".": {}, "f:name": {}, "f:value": {}}}),
        (
            "items",
            [item("a", tags=["t"])],
            {".": {}, 'k:{"name":"a"}': {".": {}, "f:name": {}, "f:tags": {".": {}, 'v:"t"': {}}}},
        ),
        ("ports", [{"port": 1}], {".": {}, 'k:{"port":1,"protocol":"TCP"}': {".": {}, "f:port": {}}}),
    ],
)
def test_what_has_parts_comes_and_goes_with_all_of_them_and_itself(name: str, value: Any, node: dict[str, Any]) -> None:
    assert changes({}, {name: value}) == ({f"f:{name}": node}, {})
    assert changes({name: value}, {}) == ({}, {f"f:{name}": node})


@pytest.mark.parametrize(
    ("name", "full", "parts"),
    [
        ("struct", {"a": "x"}, {"f:a": {}}),
        ("map", {"key": "x"}, {"f:key": {}}),
        ("set", ["a"], {'v:"a"': {}}),
        ("items", [item("a")], {'k:{"name":"a"}': {".": {}, "f:name": {}}}),
    ],
)
@pytest.mark.parametrize("nothing", [None, "empty"])
def test_filling_and_emptying_concerns_the_parts_alone(
    name: str, full: Any, parts: dict[str, Any], nothing: Any
) -> None:
    empty = None if nothing is None else type(full)()
    assert changes({name: empty}, {name: full}) == ({f"f:{name}": parts}, {})
    assert changes({name: full}, {name: empty}) == ({}, {f"f:{name}": parts})


@pytest.mark.parametrize("name", ["struct", "map", "set", "items", "list", "atomicStruct", "atomicMap"])
def test_empty_and_null_are_leaves_and_not_the_same(name: str) -> None:
    empty: Any = {} if name in ("struct", "map", "atomicStruct", "atomicMap") else []
    leaf: dict[str, Any] = {f"f:{name}": {}}
    assert changes({}, {name: empty}) == (leaf, {})
    assert changes({}, {name: None}) == (leaf, {})
    assert changes({name: empty}, {}) == ({}, leaf)
    assert changes({name: empty}, {name: None}) == (leaf, {})
    assert changes({name: None}, {name: empty}) == (leaf, {})


def test_only_the_parts_that_differ_are_named() -> None:
    old = {"struct": {"a": "x", "b": "y"}, "map": {"one": "1", "two": "2"}, "text": "same"}
    new = {"struct": {"a": "z", "b": "y"}, "map": {"two": "2", "three": "3"}, "text": "same"}
    assert changes(old, new) == (
        {"f:struct": {"f:a": {}}, "f:map": {"f:three": {}}},
        {"f:map": {"f:one": {}}},
    )


def test_the_order_of_items_with_an_identity_is_no_change() -> None:
    old = {"set": ["a", "b"], "items": [item("a"), item("b")]}
    new = {"set": ["b", "a"], "items": [item("b"), item("a")]}
    assert changes(old, new) == ({}, {})


def test_the_order_of_an_atomic_list_is_a_change() -> None:
    assert changes({"list": ["a", "b"]}, {"list": ["b", "a"]}) == ({"f:list": {}}, {})


def test_items_are_compared_with_those_of_the_same_keys() -> None:
    old = {"items": [item("a", value="1"), item("b"), item("c", value="1")]}
    new = {"items": [item("c", value="2"), item("a", value="1"), item("d")]}
    assert changes(old, new) == (
        {"f:items": {'k:{"name":"c"}': {"f:value": {}}, 'k:{"name":"d"}': {".": {}, "f:name": {}}}},
        {"f:items": {'k:{"name":"b"}': {".": {}, "f:name": {}}}},
    )


def test_a_key_that_is_left_out_has_its_default() -> None:
    old = {"ports": [{"port": 1}]}
    new = {"ports": [{"port": 1, "protocol": "TCP"}]}
    assert changes(old, new) == ({"f:ports": {'k:{"port":1,"protocol":"TCP"}': {"f:protocol": {}}}}, {})


def test_a_key_without_default_is_not_the_same_as_null() -> None:
    assert changes({"ports": [{"protocol": "x"}]}, {"ports": [{"port": None, "protocol": "x"}]}) == (
        {"f:ports": {'k:{"port":null,"protocol":"x"}': {".": {}, "f:port": {}, "f:protocol": {}}}},
        {"f:ports": {'k:{"protocol":"x"}': {".": {}, "f:protocol": {}}}},
    )


@pytest.mark.parametrize(
    ("old", "new", "gained", "removed"),
    [
        ([], ["a", "a"], {'v:"a"': {}}, {}),
        (["a", "a"], [], {}, {'v:"a"': {}}),
        (["a", "a"], ["a", "a", "a"], {'v:"a"': {}}, {}),
        (["a", "a"], ["b", "a", "a"], {'v:"b"': {}}, {}),
        (["a"], ["a", "a"], {'v:"a"': {}}, {'v:"a"': {}}),
        (["a", "a"], ["a"], {'v:"a"': {}}, {'v:"a"': {}}),
    ],
)
def test_repeated_items_of_a_set_are_owned_together(
    old: list[str], new: list[str], gained: dict[str, Any], removed: dict[str, Any]
) -> None:
    others = ["other"]
    assert changes({"set": others + old}, {"set": others + new}) == (
        {"f:set": gained} if gained else {},
        {"f:set": removed} if removed else {},
    )


def test_items_with_the_same_keys_are_owned_without_the_fields_below_them() -> None:
    one, two = item("a", value="1"), item("a", value="2")
    whole: dict[str, Any] = {".": {}, "f:name": {}, "f:value": {}}
    element = 'k:{"name":"a"}'
    assert changes({"items": [one]}, {"items": [one, two]}) == (
        {"f:items": {element: {}}},
        {"f:items": {element: whole}},
    )
    assert changes({"items": [one, two]}, {"items": [two]}) == (
        {"f:items": {element: whole}},
        {"f:items": {element: {}}},
    )
    assert changes({"items": [one, two]}, {"items": [two, one]}) == ({"f:items": {element: {}}}, {})
    assert changes({"items": [one, two]}, {"items": []}) == ({}, {"f:items": {element: {}}})
    assert changes({}, {"items": [one, two]}) == ({"f:items": {".": {}, element: {}}}, {})


@pytest.mark.parametrize("stray", [None, "x", [], {}, {"value": "x"}])
def test_items_that_nobody_can_tell_apart_are_passed_over(stray: Any) -> None:
    assert changes({"items": [stray]}, {"items": [item("a")]}) == (
        {"f:items": {'k:{"name":"a"}': {".": {}, "f:name": {}}}},
        {},
    )


def test_what_is_hidden_is_not_compared() -> None:
    compared = compile_compare(SPEC_SCHEMA, {"text": None, "struct": {"a": None}})
    old = {"text": "a", "struct": {"a": "x", "b": "x"}, "number": 1}
    assert compared(old, {"text": "b", "struct": {"a": "y", "b": "x"}, "number": 1}) == NO_CHANGE
    assert compared(old, {"struct": {"b": "y"}}) == ({"f:struct": {"f:b": {}}}, {"f:number": {}})
    assert compared({}, old) == ({"f:struct": {".": {}, "f:b": {}}, "f:number": {}}, {})
