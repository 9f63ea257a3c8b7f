from __future__ import annotations

import copy
from typing import Any

import pytest

from clusterregistry.apimachinery.fieldmanager.remove import extract, remove
from tests.apimachinery.fieldmanager.schemas import SPEC_SCHEMA

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


def extracted(fields: dict[str, Any], value: dict[str, Any] = VALUE) -> Any:
    before = copy.deepcopy((value, fields))
    result = extract(SPEC_SCHEMA, value, fields)
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
def test_items_without_an_identity_stay_and_are_not_extracted(stray: Any) -> None:
    value = {"items": [stray, {"name": "a"}]}
    fields: dict[str, Any] = {"f:items": {'k:{"name":"a"}': {}}}
    assert removed(fields, value) == {"items": [stray]}
    assert extracted(fields, value) == {"items": [{"name": "a"}]}


def test_what_is_not_concerned_is_shared() -> None:
    assert removed({"f:text": {}})["items"] is VALUE["items"]
    assert removed({"f:items": {'k:{"name":"a"}': {}}})["items"][0] is VALUE["items"][1]


def test_extracting_nothing_gives_nothing() -> None:
    assert extracted({}) is None
    assert extracted({"f:unknown": {}, "f:flag": {}}) is None


@pytest.mark.parametrize(
    ("fields", "left"),
    [
        ({"f:text": {}}, {"text": "a"}),
        ({"f:list": {}, "f:atomicStruct": {}}, {"list": ["a", "b"], "atomicStruct": {"a": "x", "b": "y"}}),
        ({"f:struct": {"f:a": {}}}, {"struct": {"a": "x"}}),
        ({"f:struct": {}}, {"struct": {"a": "x", "b": "y"}}),
        ({"f:map": {"f:one": {}, "f:three": {}}}, {"map": {"one": "1"}}),
        ({"f:set": {'v:"b"': {}}}, {"set": ["b"]}),
        ({"f:items": {'k:{"name":"b"}': {".": {}, "f:name": {}}}}, {"items": [{"name": "b"}]}),
        ({"f:items": {'k:{"name":"b"}': {}}}, {"items": VALUE["items"][1:]}),
        (
            {"f:items": {'k:{"name":"b"}': {"f:inner": {"f:a": {}}}, 'k:{"name":"a"}': {"f:value": {}}}},
            {"items": [{"name": "a", "value": "1"}, {"name": "b", "inner": {"a": "x"}}]},
        ),
    ],
)
def test_only_the_fields_are_extracted_with_the_keys_of_items(fields: dict[str, Any], left: Any) -> None:
    assert extracted(fields) == left


@pytest.mark.parametrize("empty", [None, {}, []])
def test_what_is_empty_is_extracted_as_it_is(empty: Any) -> None:
    assert extracted({"f:struct": {"f:a": {}}, "f:set": {}}, {"struct": empty, "set": empty}) == {
        "struct": empty,
        "set": empty,
    }
