from __future__ import annotations

import copy
from typing import Any

import pytest

from clusterregistry.apimachinery.fieldmanager import field_set
from clusterregistry.apimachinery.fieldmanager.field_set import (
    as_member,
    below,
    compile_reconcile,
    difference,
    intersection,
    is_atomic,
    is_member,
    parse,
    paths,
    union,
    with_structs,
)
from clusterregistry.apimachinery.fieldmanager.path_element import MalformedElementError
from clusterregistry.apimachinery.schema.schemas import Array, Map, Object, String
from tests.apimachinery.fieldmanager.schemas import SCHEMA, SPEC

A_LEAF: dict[str, Any] = {"f:a": {}}
B_LEAF: dict[str, Any] = {"f:b": {}}
A_WITH_X: dict[str, Any] = {"f:a": {".": {}, "f:x": {}}}
ONLY_X: dict[str, Any] = {"f:a": {"f:x": {}}}
ONLY_Y: dict[str, Any] = {"f:a": {"f:y": {}}}


def fitted(fields: dict[str, Any]) -> dict[str, Any]:
    fit = compile_reconcile(SCHEMA)
    assert fit is not None
    return fit(fields)


def test_an_empty_node_and_one_with_itself_are_members() -> None:
    assert is_member({})
    assert is_member({".": {}, "f:a": {}})
    assert not is_member({"f:a": {}})


def test_a_member_without_fields_below_it_is_a_leaf() -> None:
    assert as_member({}) == {}
    assert as_member({"f:a": {}}) == {".": {}, "f:a": {}}
    assert as_member({".": {}, "f:a": {}}) == {".": {}, "f:a": {}}


@pytest.mark.parametrize(
    ("one", "other", "joined"),
    [
        ({}, {}, {}),
        (A_LEAF, {}, A_LEAF),
        (A_LEAF, B_LEAF, {"f:a": {}, "f:b": {}}),
        (A_LEAF, A_LEAF, A_LEAF),
        (A_LEAF, ONLY_X, A_WITH_X),
        (A_LEAF, A_WITH_X, A_WITH_X),
        (ONLY_X, A_WITH_X, A_WITH_X),
        (ONLY_X, ONLY_Y, {"f:a": {"f:x": {}, "f:y": {}}}),
        (A_WITH_X, ONLY_Y, {"f:a": {".": {}, "f:x": {}, "f:y": {}}}),
    ],
)
def test_a_union_has_the_members_of_both(one: dict[str, Any], other: dict[str, Any], joined: dict[str, Any]) -> None:
    before = copy.deepcopy((one, other))
    assert union(one, other) == joined
    assert union(other, one) == joined
    assert (one, other) == before


@pytest.mark.parametrize(
    ("one", "other", "left"),
    [
        ({}, A_LEAF, {}),
        (A_LEAF, {}, A_LEAF),
        (A_LEAF, B_LEAF, A_LEAF),
        (A_LEAF, A_LEAF, {}),
        (A_LEAF, ONLY_X, A_LEAF),
        (A_LEAF, A_WITH_X, {}),
        (A_WITH_X, A_LEAF, ONLY_X),
        (A_WITH_X, ONLY_X, A_LEAF),
        (A_WITH_X, A_WITH_X, {}),
        (ONLY_X, A_LEAF, ONLY_X),
        (ONLY_X, A_WITH_X, {}),
        (ONLY_X, ONLY_Y, ONLY_X),
        ({"f:a": {"f:b": {"f:c": {}}}, "f:d": {}}, {"f:a": {"f:b": {"f:c": {}}}}, {"f:d": {}}),
    ],
)
def test_a_difference_leaves_the_children_of_what_is_taken(
    one: dict[str, Any], other: dict[str, Any], left: dict[str, Any]
) -> None:
    before = copy.deepcopy((one, other))
    assert difference(one, other) == left
    assert (one, other) == before


@pytest.mark.parametrize(
    ("one", "other", "common"),
    [
        ({}, A_LEAF, {}),
        (A_LEAF, B_LEAF, {}),
        (A_LEAF, A_LEAF, A_LEAF),
        (A_LEAF, ONLY_X, {}),
        (A_LEAF, A_WITH_X, A_LEAF),
        (A_WITH_X, A_WITH_X, A_WITH_X),
        (A_WITH_X, ONLY_X, ONLY_X),
        (A_WITH_X, {"f:a": {".": {}, "f:y": {}}}, A_LEAF),
        (ONLY_X, ONLY_Y, {}),
    ],
)
def test_an_intersection_has_what_belongs_to_both(
    one: dict[str, Any], other: dict[str, Any], common: dict[str, Any]
) -> None:
    before = copy.deepcopy((one, other))
    assert intersection(one, other) == common
    assert intersection(other, one) == common
    assert (one, other) == before


def test_what_adds_nothing_or_takes_nothing_gives_back_the_operand() -> None:
    fields: dict[str, Any] = {"f:a": {".": {}, "f:x": {}, "f:y": {"f:z": {}}}, "f:b": {}}
    assert union(fields, {}) is fields
    assert union({}, fields) is fields
    assert union(fields, {"f:a": {"f:y": {"f:z": {}}}}) is fields
    assert union(fields, copy.deepcopy(fields)) is fields
    assert difference(fields, {}) is fields
    assert difference(fields, {"f:c": {}, "f:a": {"f:y": {}}}) is fields
    assert fitted(fields) is fields


def test_a_result_shares_the_parts_that_it_does_not_change() -> None:
    fields = {"f:a": {"f:x": {"f:deep": {}}}, "f:b": {"f:y": {}}}
    assert union(fields, {"f:b": {"f:z": {}}})["f:a"] is fields["f:a"]
    assert difference(fields, {"f:b": {"f:y": {}}})["f:a"] is fields["f:a"]


def test_paths_list_the_members_of_a_level_before_those_below_it() -> None:
    fields = {
        "f:b": {".": {}, "f:y": {}, 'k:{"type":"OK"}': {".": {}, "f:x": {}}},
        "f:a": {'v:"one"': {}, "i:3": {}},
        "f:c": {},
    }
    assert list(paths(fields)) == [
        ".b",
        ".c",
        '.a[="one"]',
        ".a[3]",
        ".b.y",
        '.b[type="OK"]',
        '.b[type="OK"].x',
    ]


def test_the_empty_set_has_no_paths() -> None:
    assert list(paths({})) == []


@pytest.mark.parametrize(
    ("value", "fields"),
    [
        (None, {}),
        ({}, {}),
        ({".": {}}, {}),
        ({"f:a": {}}, A_LEAF),
        ({"f:a": None}, A_LEAF),
        ({"f:a": {".": {}}}, A_LEAF),
        ({"f:a": {".": 5, "f:x": {".": None}}}, A_WITH_X),
        ({"f:a": {"f:x": {}}, ".": {}}, ONLY_X),
        ({"x:1": {"f:y": {}}, "f:a": {}}, A_LEAF),
        ({"f:a": {"x:1": {}}}, A_LEAF),
        ({'k:{ "b":1,"a":2}': {"f:b": {}}}, {'k:{"a":2,"b":1}': {"f:b": {}}}),
    ],
)
def test_a_clients_set_is_read_into_the_one_form(value: Any, fields: dict[str, Any]) -> None:
    parsed = parse(value)
    assert parsed == fields
    assert parse(parsed) == parsed


@pytest.mark.parametrize(
    "value", ["f:a", 1, [], True, {"a": {}}, {"f:a": []}, {"f:a": {"f:b": "x"}}, {"f:a": {"b": {}}}, {"k:[]": {}}]
)
def test_what_is_no_set_is_malformed(value: Any) -> None:
    with pytest.raises(MalformedElementError):
        parse(value)


def test_the_schema_is_followed_along_the_elements() -> None:
    spec = below(SCHEMA, "f:spec")
    assert below(spec, "f:text") is SPEC["text"]
    assert below(spec, "f:unknown") is None
    assert below(SPEC["map"], "f:anything") == String()
    assert below(SPEC["items"], 'k:{"name":"a"}') is not None
    assert below(SPEC["set"], 'v:"a"') == String()
    assert below(SPEC["set"], "f:a") is None
    assert below(SPEC["text"], "f:a") is None
    assert below(None, "f:a") is None


def test_structs_with_members_below_them_become_members_and_nothing_else_does() -> None:
    fields = {
        "f:spec": {
            "f:text": {},
            "f:struct": {"f:deep": {"f:c": {}}},
            "f:map": {"f:key": {}},
            "f:structs": {"f:key": {"f:a": {}}},
            "f:items": {'k:{"name":"a"}': {"f:inner": {"f:a": {}}}},
            "f:unknown": {"f:a": {}},
        }
    }
    before = copy.deepcopy(fields)
    assert with_structs(fields, SCHEMA) == {
        "f:spec": {
            ".": {},
            "f:text": {},
            "f:struct": {".": {}, "f:deep": {".": {}, "f:c": {}}},
            "f:map": {".": {}, "f:key": {}},
            "f:structs": {".": {}, "f:key": {"f:a": {}}},
            "f:items": {".": {}, 'k:{"name":"a"}': {"f:inner": {".": {}, "f:a": {}}}},
            "f:unknown": {"f:a": {}},
        }
    }
    assert fields == before


def test_of_what_is_atomic_no_parts_are_owned() -> None:
    fields = {
        "f:spec": {
            "f:atomicStruct": {"f:a": {}},
            "f:atomicMap": {".": {}, "f:key": {}},
            "f:list": {"i:0": {}},
            "f:text": {},
            "f:struct": {"f:a": {}},
        },
        "f:metadata": {"f:ownerReferences": {'k:{"uid":"u"}': {".": {}, "f:name": {}}}},
    }
    before = copy.deepcopy(fields)
    assert fitted(fields) == {
        "f:spec": {
            "f:atomicStruct": {},
            "f:atomicMap": {},
            "f:list": {},
            "f:text": {},
            "f:struct": {"f:a": {}},
        },
        "f:metadata": {"f:ownerReferences": {'k:{"uid":"u"}': {}}},
    }
    assert fields == before


def test_fields_that_the_schema_does_not_know_stay_as_they_are() -> None:
    fields: dict[str, Any] = {"f:spec": {"f:unknown": {"f:a": {"i:0": {}}}}}
    assert fitted(fields) is fields


@pytest.mark.parametrize(
    ("schema", "atomic"),
    [
        (None, False),
        (String(), False),
        (Array(items=String()), True),
        (Array(items=String(), list_type="set"), False),
        (Array(items=Object(fields={}), list_type="map", map_keys=("a",)), False),
        (Map(values=String()), False),
        (Map(values=String(), atomic=True), True),
        (Object(fields={}), False),
        (Object(fields={}, atomic=True), True),
    ],
)
def test_atomic_is_what_changes_as_a_whole(schema: Any, *, atomic: bool) -> None:
    assert is_atomic(schema) is atomic


def test_the_shared_leaf_is_empty() -> None:
    assert field_set.LEAF == {}
