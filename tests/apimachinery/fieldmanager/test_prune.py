"""Fields that are removed when a manager applies less, in one version; and removal itself."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from clusterregistry.apimachinery.fieldmanager.prune import remove
from tests.apimachinery.fieldmanager.schemas import SPEC_SCHEMA, Clock, field_manager, thing


def pruned(first: Any, then: Any, *, others: Any = None) -> Any:
    """The spec that is left when a manager applies first one and then another, beside what others apply."""
    main = field_manager(Clock())
    live = main.apply(None, thing(first), manager="a", force=False)
    if others is not None:
        live = main.apply(live, thing(others), manager="b", force=False)
    return main.apply(live, thing(then), manager="a", force=False).get("spec")


@pytest.mark.parametrize(
    ("first", "then", "left"),
    [
        ({"text": "x"}, None, None),
        ({"text": "x"}, {"text": "y"}, {"text": "y"}),
        ({"text": "x", "number": 1}, {"number": 1}, {"number": 1}),
        ({"struct": {"a": "x", "b": "y"}}, {"struct": {"b": "y"}}, {"struct": {"b": "y"}}),
        ({"struct": {"deep": {"c": "x"}}, "text": "x"}, {"text": "x"}, {"text": "x"}),
        ({"map": {"a": "1", "b": "2"}}, {"map": {"b": "2"}}, {"map": {"b": "2"}}),
        ({"structs": {"k": {"a": "x", "b": "y"}}}, {"structs": {"k": {"a": "x"}}}, {"structs": {"k": {"a": "x"}}}),
        ({"set": ["a", "b"]}, {"set": ["b"]}, {"set": ["b"]}),
        ({"list": ["a"], "text": "x"}, {"text": "x"}, {"text": "x"}),
        ({"atomicStruct": {"a": "x", "b": "y"}}, {"atomicStruct": {"a": "x"}}, {"atomicStruct": {"a": "x"}}),
        ({"items": [{"name": "a"}, {"name": "b"}]}, {"items": [{"name": "b"}]}, {"items": [{"name": "b"}]}),
        (
            {"items": [{"name": "a", "value": "1", "tags": ["x"]}]},
            {"items": [{"name": "a"}]},
            {"items": [{"name": "a"}]},
        ),
        (
            {"ports": [{"port": 1}, {"port": 2}]},
            {"ports": [{"port": 1, "protocol": "TCP"}]},
            {"ports": [{"port": 1, "protocol": "TCP"}]},
        ),
        ({"struct": {}, "text": "x"}, {"text": "x"}, {"text": "x"}),
    ],
)
def test_what_is_applied_no_more_goes_with_what_held_nothing_else(first: Any, then: Any, left: Any) -> None:
    assert pruned(first, then) == left


@pytest.mark.parametrize(
    ("first", "others", "left"),
    [
        ({"text": "x"}, {"text": "x"}, {"text": "x"}),
        ({"struct": {"a": "x"}}, {"struct": {"b": "y"}}, {"struct": {"b": "y"}}),
        ({"map": {"a": "1"}}, {"map": {"b": "2"}}, {"map": {"b": "2"}}),
        ({"set": ["a", "b"]}, {"set": ["b", "c"]}, {"set": ["b", "c"]}),
        ({"items": [{"name": "a"}]}, {"items": [{"name": "b"}]}, {"items": [{"name": "b"}]}),
        (
            {"items": [{"name": "a", "value": "1"}]},
            {"items": [{"name": "a", "tags": ["t"]}]},
            {"items": [{"name": "a", "tags": ["t"]}]},
        ),
        ({"structs": {"k": {"a": "x"}}}, {"structs": {"k": {"b": "y"}}}, {"structs": {"k": {"b": "y"}}}),
        ({"struct": {"a": "x"}, "text": "x"}, {"number": 1}, {"number": 1}),
    ],
)
def test_what_others_apply_stays(first: Any, others: Any, left: Any) -> None:
    assert pruned(first, None, others=others) == left


def test_the_name_and_what_the_server_set_are_never_pruned() -> None:
    main = field_manager(Clock())
    live = main.apply(None, thing(labels={"l": "1"}), manager="a", force=False)
    live["metadata"] |= {"uid": "u", "resourceVersion": "1", "creationTimestamp": "2024-01-01T00:00:00Z"}
    left = main.apply(live, {"apiVersion": live["apiVersion"], "kind": live["kind"]}, manager="a", force=False)
    assert {name: value for name, value in left["metadata"].items() if name != "managedFields"} == {
        "name": "thing",
        "uid": "u",
        "resourceVersion": "1",
        "creationTimestamp": "2024-01-01T00:00:00Z",
    }


def test_defaults_and_other_fields_that_nobody_owns_stay() -> None:
    main = field_manager(Clock())
    live = main.apply(None, thing({"struct": {"a": "x"}, "text": "x"}), manager="a", force=False)
    live["spec"]["struct"]["b"] = "default"
    live["spec"]["number"] = 5
    assert main.apply(live, thing({"struct": {"a": "x"}}), manager="a", force=False)["spec"] == {
        "struct": {"a": "x", "b": "default"},
        "number": 5,
    }


# Removal

VALUE: dict[str, Any] = {
    "text": "a",
    "struct": {"a": "x", "b": "y"},
    "atomicStruct": {"a": "x", "b": "y"},
    "map": {"one": "1", "two": "2"},
    "list": ["a", "b"],
    "set": ["a", "b"],
    "items": [{"name": "a", "value": "1"}, {"name": "b", "value": "2", "inner": {"a": "x"}}],
}


def removed(fields: dict[str, Any], value: dict[str, Any] = VALUE) -> Any:
    before = copy.deepcopy((value, fields))
    result = remove(SPEC_SCHEMA, value, fields)
    assert (value, fields) == before
    return result


def test_removing_nothing_leaves_everything() -> None:
    assert removed({}) == VALUE


def test_what_is_not_there_cannot_be_removed() -> None:
    assert removed({"f:flag": {}, "f:map": {"f:three": {}}, "f:set": {'v:"c"': {}}, "f:unknown": {"f:x": {}}}) == VALUE


@pytest.mark.parametrize("name", sorted(VALUE))
def test_a_member_goes_with_all_that_is_in_it(name: str) -> None:
    expected = {each: value for each, value in VALUE.items() if each != name}
    assert removed({f"f:{name}": {}}) == expected
    assert removed({f"f:{name}": {".": {}, "f:x": {}}}) == expected


@pytest.mark.parametrize(
    ("fields", "name", "left"),
    [
        ({"f:struct": {"f:a": {}}}, "struct", {"b": "y"}),
        ({"f:map": {"f:two": {}}}, "map", {"one": "1"}),
        ({"f:set": {'v:"a"': {}}}, "set", ["b"]),
        ({"f:items": {'k:{"name":"a"}': {}}}, "items", VALUE["items"][1:]),
        (
            {"f:items": {'k:{"name":"a"}': {"f:value": {}}, 'k:{"name":"b"}': {"f:inner": {"f:a": {}}}}},
            "items",
            [{"name": "a"}, {"name": "b", "value": "2", "inner": None}],
        ),
    ],
)
def test_parts_go_one_by_one(fields: dict[str, Any], name: str, left: Any) -> None:
    assert removed(fields) == {**VALUE, name: left}


@pytest.mark.parametrize(
    "fields",
    [
        {"f:struct": {"f:a": {}, "f:b": {}}},
        {"f:map": {"f:one": {}, "f:two": {}}},
        {"f:set": {'v:"a"': {}, 'v:"b"': {}}},
        {"f:items": {'k:{"name":"a"}': {}, 'k:{"name":"b"}': {}}},
        {"f:list": {"i:0": {}}},
        {"f:atomicStruct": {"f:a": {}}},
    ],
)
def test_a_container_of_which_nothing_is_left_is_null(fields: dict[str, Any]) -> None:
    (name,) = (element[2:] for element in fields)
    assert removed(fields) == {**VALUE, name: None}


def test_when_all_is_removed_nothing_is_left() -> None:
    assert removed({f"f:{name}": {} for name in VALUE}) is None
    assert remove(SPEC_SCHEMA, {}, {"f:text": {}}) is None


def test_duplicates_go_together() -> None:
    value = {"set": ["a", "b", "a"], "items": [{"name": "a", "value": "1"}, {"name": "a"}, {"name": "b"}]}
    fields: dict[str, Any] = {"f:set": {'v:"a"': {}}, "f:items": {'k:{"name":"a"}': {}}}
    assert removed(fields, value) == {"set": ["b"], "items": [{"name": "b"}]}


@pytest.mark.parametrize("stray", [None, "x", {}, {"value": "1"}])
def test_items_without_an_identity_stay(stray: Any) -> None:
    value = {"items": [stray, {"name": "a"}]}
    fields: dict[str, Any] = {"f:items": {'k:{"name":"a"}': {}}}
    assert removed(fields, value) == {"items": [stray]}


def test_what_is_not_concerned_is_shared() -> None:
    assert removed({"f:text": {}})["items"] is VALUE["items"]
    assert removed({"f:items": {'k:{"name":"a"}': {}}})["items"][0] is VALUE["items"][1]
