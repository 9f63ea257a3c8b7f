from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterregistry.apimachinery.fieldmanager.merge import merge, settled
from tests.apimachinery.fieldmanager.schemas import SPEC_SCHEMA


def merged(live: dict[str, Any], applied: dict[str, Any]) -> Any:
    before = copy.deepcopy((live, applied))
    result = merge(SPEC_SCHEMA, live, applied)
    assert (live, applied) == before
    return result


def names(items: list[dict[str, Any]]) -> str:
    return "".join(each["name"] for each in items)


def items(order: str, **rest: Any) -> list[dict[str, Any]]:
    return [{"name": name, **rest} for name in order]


@pytest.mark.parametrize("live", [{}, {"text": "a"}, {"struct": {"a": "x"}, "set": ["a"], "items": items("ab")}])
def test_nothing_applied_changes_nothing(live: dict[str, Any]) -> None:
    assert merged(live, {}) == live


@pytest.mark.parametrize(
    ("name", "live", "applied"),
    [
        ("text", "a", "b"),
        ("text", "a", None),
        ("number", 1, 2),
        ("list", ["a", "b"], ["b"]),
        ("list", ["a"], []),
        ("list", ["a"], None),
        ("atomicStruct", {"a": "x", "b": "y"}, {"a": "z"}),
        ("atomicStruct", {"a": "x"}, {}),
        ("atomicMap", {"a": "x"}, {"b": "y"}),
        ("atomicMap", {"a": "x"}, None),
        ("unknown", {"a": 1}, {"b": 2}),
    ],
)
def test_what_has_no_parts_is_replaced(name: str, live: Any, applied: Any) -> None:
    assert merged({name: live}, {name: applied}) == {name: applied}
    assert merged({}, {name: applied}) == {name: applied}
    assert merged({name: live}, {}) == {name: live}


@pytest.mark.parametrize(
    ("name", "live"),
    [("struct", {"a": "x"}), ("map", {"a": "x"}), ("set", ["a"]), ("items", items("a")), ("structs", {"a": {}})],
)
@pytest.mark.parametrize("nothing", ["null", "empty"])
def test_applying_nothing_to_what_has_parts_leaves_it(name: str, live: Any, nothing: str) -> None:
    applied = None if nothing == "null" else type(live)()
    assert merged({name: live}, {name: applied}) == {name: live}


@pytest.mark.parametrize("live", [None, {}])
def test_what_is_empty_becomes_what_is_applied(live: Any) -> None:
    assert merged({"struct": live}, {"struct": {"a": "x"}}) == {"struct": {"a": "x"}}
    assert merged({"struct": live}, {"struct": None}) == {"struct": None}
    assert merged({"set": live and []}, {"set": ["a"]}) == {"set": ["a"]}


def test_structs_and_maps_merge_field_by_field() -> None:
    live = {"struct": {"a": "1", "deep": {"c": "1"}}, "map": {"one": "1"}, "structs": {"x": {"a": "1"}}}
    applied = {"struct": {"b": "2", "deep": {"c": "2"}}, "map": {"two": "2"}, "structs": {"x": {"b": "2"}, "y": {}}}
    assert merged(live, applied) == {
        "struct": {"a": "1", "b": "2", "deep": {"c": "2"}},
        "map": {"one": "1", "two": "2"},
        "structs": {"x": {"a": "1", "b": "2"}, "y": {}},
    }


def test_items_with_the_same_keys_merge() -> None:
    live = {"items": [{"name": "a", "value": "1", "tags": ["x"]}, {"name": "b", "value": "1"}]}
    applied = {"items": [{"name": "a", "tags": ["y"], "inner": {"a": "2"}}]}
    assert merged(live, applied) == {
        "items": [
            {"name": "a", "value": "1", "tags": ["x", "y"], "inner": {"a": "2"}},
            {"name": "b", "value": "1"},
        ]
    }


def test_an_item_with_a_default_key_merges_with_the_one_that_names_it() -> None:
    live = {"ports": [{"port": 1, "protocol": "TCP"}, {"port": 1, "protocol": "UDP"}]}
    applied = {"ports": [{"port": 1, "note": "x"}]}
    assert merged(live, applied) == {
        "ports": [{"port": 1, "protocol": "TCP", "note": "x"}, {"port": 1, "protocol": "UDP"}]
    }


@pytest.mark.parametrize(
    ("live", "applied", "order"),
    [
        ("", "ab", "ab"),
        ("ab", "", "ab"),
        ("ab", "cd", "abcd"),
        ("ab", "ba", "ba"),
        ("abc", "b", "abc"),
        ("abc", "ca", "bca"),
        ("abc", "xby", "axbcy"),
        ("abc", "cxa", "bcxa"),
        ("abc", "axc", "abxc"),
        ("ab", "xa", "xab"),
        ("abcd", "dxb", "acdxb"),
        ("axbyc", "cba", "xycba"),
    ],
)
def test_applied_items_keep_their_order_and_live_ones_come_early(live: str, applied: str, order: str) -> None:
    assert names(merged({"items": items(live)}, {"items": items(applied)})["items"]) == order
    assert "".join(merged({"set": list(live)}, {"set": list(applied)})["set"]) == order


@given(st.lists(st.sampled_from("abcdefg"), unique=True, min_size=1), st.lists(st.sampled_from("abcdefg"), unique=True))
def test_a_merged_list_has_the_items_of_both_each_in_its_order(live: list[str], applied: list[str]) -> None:
    result = merged({"set": live}, {"set": applied})["set"]
    assert sorted(result) == sorted({*live, *applied})
    assert [name for name in result if name in applied] == applied
    only_live = [name for name in live if name not in applied]
    assert [name for name in result if name in only_live] == only_live


def test_live_duplicates_that_are_not_applied_stay() -> None:
    live = {"items": [*items("a", value="1"), *items("b"), *items("a", value="2")]}
    assert merged(live, {"items": items("c")})["items"] == [*live["items"], {"name": "c"}]


def test_live_duplicates_are_replaced_by_the_applied_item() -> None:
    live = {"items": [*items("a", value="1"), *items("b"), *items("a", value="2")]}
    result = merged(live, {"items": items("a", inner={"a": "x"})})["items"]
    assert result == [{"name": "a", "inner": {"a": "x"}}, {"name": "b"}]
    assert merged({"set": ["a", "b", "a"]}, {"set": ["a"]}) == {"set": ["a", "b"]}


@pytest.mark.parametrize("name", ["struct", "atomicStruct", "map", "atomicMap", "list", "set", "items", "structs"])
def test_a_null_in_place_of_a_container_is_nothing(name: str) -> None:
    obj = {name: None, "text": None, "number": None}
    assert settled(SPEC_SCHEMA, obj) == {"text": None, "number": None}


def test_nulls_go_at_every_depth_and_empties_stay() -> None:
    obj = {
        "struct": {"a": None, "deep": None},
        "structs": {"x": None, "y": {}},
        "items": [{"name": "a", "tags": None, "inner": {}}],
        "set": [],
        "unknown": None,
    }
    before = copy.deepcopy(obj)
    assert settled(SPEC_SCHEMA, obj) == {
        "struct": {"a": None},
        "structs": {"y": {}},
        "items": [{"name": "a", "inner": {}}],
        "set": [],
        "unknown": None,
    }
    assert obj == before


def test_whole_floats_become_integers_where_the_schema_has_them() -> None:
    result = settled(SPEC_SCHEMA, {"number": 2.0, "numbers": [1.0, 2], "either": 1.0, "unknown": 1.0})
    assert [type(result["number"]), *map(type, result["numbers"])] == [int, int, int]
    assert type(result["either"]) is type(result["unknown"]) is float
    assert type(settled(SPEC_SCHEMA, {"number": 2.5})["number"]) is float


def test_what_is_settled_shares_nothing_that_can_change() -> None:
    obj = {"struct": {"a": "x"}, "list": ["a"], "items": items("a")}
    result = settled(SPEC_SCHEMA, obj)
    assert result == obj
    assert all(result[name] is not obj[name] for name in obj)
    assert result["items"][0] is not obj["items"][0]  # type: ignore[index]
