from __future__ import annotations

import copy
from typing import Any

import pytest

from clusterregistry.apimachinery.fieldmanager.to_field_set import to_field_set
from tests.apimachinery.fieldmanager.schemas import SCHEMA, SPEC_SCHEMA


def claimed(configuration: dict[str, Any]) -> dict[str, Any]:
    before = copy.deepcopy(configuration)
    fields = to_field_set(SPEC_SCHEMA, configuration)
    assert configuration == before
    return fields


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("text", "a"),
        ("text", None),
        ("number", 0),
        ("flag", False),
        ("either", "1"),
        ("list", ["a"]),
        ("list", []),
        ("list", None),
        ("atomicStruct", {"a": "x"}),
        ("atomicMap", {"a": "x"}),
        ("atomicMap", {}),
        ("struct", {}),
        ("struct", None),
        ("map", {}),
        ("map", None),
        ("set", None),
        ("items", None),
        ("unknown", {"a": {"b": 1}}),
    ],
)
def test_what_has_no_parts_is_claimed_as_a_whole(name: str, value: Any) -> None:
    assert claimed({name: value}) == {f"f:{name}": {}}


@pytest.mark.parametrize("name", ["set", "items"])
def test_an_empty_list_of_items_claims_nothing(name: str) -> None:
    assert claimed({name: []}) == {}


def test_an_empty_configuration_claims_nothing() -> None:
    assert claimed({}) == {}


def test_a_struct_is_not_claimed_but_what_is_in_it() -> None:
    assert claimed({"struct": {"a": "x", "deep": {"c": "y"}}}) == {"f:struct": {"f:a": {}, "f:deep": {"f:c": {}}}}
    assert claimed({"struct": {"deep": {}}}) == {"f:struct": {"f:deep": {}}}


def test_keys_of_a_map_are_claimed_and_the_map_is_not() -> None:
    assert claimed({"map": {"one": "1", "two": None}}) == {"f:map": {"f:one": {}, "f:two": {}}}


def test_a_struct_in_a_map_is_claimed_with_what_is_in_it() -> None:
    configuration = {"structs": {"one": {"a": "x"}, "two": {}, "three": None}}
    assert claimed(configuration) == {"f:structs": {"f:one": {".": {}, "f:a": {}}, "f:two": {}, "f:three": {}}}


def test_items_of_a_set_are_claimed_and_the_set_is_not() -> None:
    assert claimed({"set": ["b", "a"], "numbers": [1]}) == {
        "f:set": {'v:"a"': {}, 'v:"b"': {}},
        "f:numbers": {"v:1": {}},
    }


def test_items_are_claimed_with_their_keys_and_fields() -> None:
    configuration = {"items": [{"name": "a", "inner": {"a": "x"}, "tags": ["t"]}, {"name": "b"}]}
    assert claimed(configuration) == {
        "f:items": {
            'k:{"name":"a"}': {".": {}, "f:name": {}, "f:inner": {"f:a": {}}, "f:tags": {'v:"t"': {}}},
            'k:{"name":"b"}': {".": {}, "f:name": {}},
        }
    }


def test_an_items_default_key_is_part_of_its_identity_but_not_claimed() -> None:
    assert claimed({"ports": [{"port": 1}]}) == {"f:ports": {'k:{"port":1,"protocol":"TCP"}': {".": {}, "f:port": {}}}}


def test_an_atomic_item_is_claimed_as_a_whole() -> None:
    reference = {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}
    assert to_field_set(SCHEMA, {"metadata": {"ownerReferences": [reference]}}) == {
        "f:metadata": {"f:ownerReferences": {'k:{"uid":"u"}': {}}}
    }


def test_items_with_the_same_keys_are_claimed_without_their_fields() -> None:
    configuration = {"items": [{"name": "a", "value": "1"}, {"name": "a", "value": "2"}], "set": ["a", "a"]}
    assert claimed(configuration) == {"f:items": {'k:{"name":"a"}': {}}, "f:set": {'v:"a"': {}}}


@pytest.mark.parametrize("value", [1.0, 1])
def test_a_whole_number_is_claimed_in_one_form(value: float) -> None:
    """It is stored as an integer: a claim of anything else would not meet it again."""
    assert claimed({"numbers": [value], "ports": [{"port": value}]}) == {
        "f:numbers": {"v:1": {}},
        "f:ports": {'k:{"port":1,"protocol":"TCP"}': {".": {}, "f:port": {}}},
    }
