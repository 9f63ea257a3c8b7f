from __future__ import annotations

import copy
from typing import Any

import pytest

from clusterregistry.apimachinery.fieldmanager.validate import compile_plainness, problems_text
from tests.apimachinery.fieldmanager.schemas import SPEC_SCHEMA


def problems(configuration: dict[str, Any]) -> str:
    before = copy.deepcopy(configuration)
    text = problems_text(SPEC_SCHEMA, configuration)
    assert not text or not compile_plainness(SPEC_SCHEMA)(configuration)
    assert configuration == before
    return text


@pytest.mark.parametrize(
    "configuration",
    [
        {},
        {"text": "a", "number": 1, "flag": True, "either": "a", "when": "now"},
        {"number": 1.5, "either": 1, "when": 5},
        {"struct": {"a": "x", "deep": {"c": "y"}}, "map": {"a": "x"}, "structs": {"a": {"a": "x"}}},
        {"list": ["a", "a"], "set": ["a", "b"], "numbers": [1, 2], "listOfStructs": [{"a": "x"}, {"a": "x"}]},
        {"items": [{"name": "a"}, {"name": "b"}], "ports": [{"port": 1}, {"port": 1, "protocol": "UDP"}]},
        {"atomicStruct": {"a": "x"}, "atomicMap": {"a": "x"}},
        dict.fromkeys(SPEC_SCHEMA.fields),
    ],
)
def test_what_fits_has_no_problems(configuration: dict[str, Any]) -> None:
    assert problems(configuration) == ""


STRING = "expected string, got &value.valueUnstructured{Value:"


@pytest.mark.parametrize(
    ("configuration", "text"),
    [
        ({"unknown": 1}, ".unknown: field not declared in schema"),
        ({"struct": {"x": 1}}, ".struct.x: field not declared in schema"),
        ({"atomicStruct": {"x": 1}}, ".atomicStruct.x: field not declared in schema"),
        ({"text": 1}, f".text: {STRING}1}}"),
        ({"text": True}, f".text: {STRING}true}}"),
        ({"text": 1.5}, f".text: {STRING}1.5}}"),
        ({"text": ["a", None]}, f'.text: {STRING}[]interface {{}}{{"a", interface {{}}(nil)}}}}'),
        ({"text": {"b": 1, "a": "é"}}, f'.text: {STRING}map[string]interface {{}}{{"a":"é", "b":1}}}}'),
        ({"number": "a"}, ".number: expected numeric (int or float), got string"),
        ({"number": True}, ".number: expected numeric (int or float), got bool"),
        ({"number": []}, ".number: expected numeric (int or float), got []interface {}"),
        ({"number": {}}, ".number: expected numeric (int or float), got map[string]interface {}"),
        ({"flag": "yes"}, ".flag: expected boolean, got &{yes}"),
        ({"flag": 1}, ".flag: expected boolean, got &{1}"),
        ({"when": {"a": None}}, ".when: expected any scalar, got &{map[a:<nil>]}"),
        ({"struct": "a"}, ".struct: expected map, got &{a}"),
        ({"struct": []}, ".struct: expected map, got &{[]}"),
        ({"map": [1, "a"]}, ".map: expected map, got &{[1 a]}"),
        ({"map": {"k": 1}}, f".map.k: {STRING}1}}"),
        ({"list": {"a": 1}}, ".list: expected list, got &{map[a:1]}"),
        ({"list": ["a", 1]}, f".list[1]: {STRING}1}}"),
        ({"listOfStructs": [{"x": 1}]}, ".listOfStructs[0].x: field not declared in schema"),
        ({"set": "a"}, ".set: expected list, got &{a}"),
        ({"set": [1]}, f".set[=1]: {STRING}1}}"),
        ({"set": ["a", "b", "a"]}, '.set: duplicate entries for key [="a"]'),
        ({"set": [{}]}, ".set: element 0: associative list without keys has an element that's a map type"),
        ({"set": ["a", []]}, ".set: element 1: not supported: associative list with lists as elements"),
        ({"set": [None]}, ".set: element 0: associative list without keys has an element that's an explicit null"),
        ({"items": [{"name": "a"}, {"name": "a"}]}, '.items: duplicate entries for key [name="a"]'),
        ({"items": [{"name": "a", "x": 1}]}, '.items[name="a"].x: field not declared in schema'),
        ({"items": [None]}, ".items: element 0: associative list with keys may not have a null element"),
        ({"items": ["a"]}, ".items: element 0: associative list with keys may not have non-map elements"),
        (
            {"items": [{"value": "a"}]},
            (
                '.items: element 0: associative list with keys has an element that omits all key fields ["name"] '
                "(and doesn't have default values for any key fields)"
            ),
        ),
        (
            {"ports": [{"port": 1}, {"port": 1, "protocol": "TCP"}]},
            '.ports: duplicate entries for key [port=1,protocol="TCP"]',
        ),
    ],
)
def test_what_does_not_fit_is_told_in_kubernetes_words(configuration: dict[str, Any], text: str) -> None:
    assert problems(configuration) == text


def test_several_problems_are_listed() -> None:
    assert problems({"text": 1, "flag": "x"}) == f"errors:\n  .flag: expected boolean, got &{{x}}\n  .text: {STRING}1}}"


def test_a_struct_is_not_looked_at_beyond_an_unknown_field() -> None:
    assert problems({"flag": "x", "nope": 1, "text": 1}) == (
        "errors:\n  .flag: expected boolean, got &{x}\n  .nope: field not declared in schema"
    )


def test_a_list_is_not_looked_at_beyond_an_item_without_identity() -> None:
    assert problems({"set": [1, None, "a", "a"]}) == (
        f"errors:\n  .set[=1]: {STRING}1}}\n"
        "  .set: element 1: associative list without keys has an element that's an explicit null"
    )


@pytest.mark.parametrize("number", [1.0, 1])
def test_equal_numbers_are_duplicates(number: float) -> None:
    assert problems({"numbers": [1, number]}) == ".numbers: duplicate entries for key [=1]"


def test_a_number_beyond_all_integers_is_an_item_like_any_other() -> None:
    assert problems({"numbers": [1e300, 1e19]}) == ""


@pytest.mark.parametrize(
    "configuration",
    [
        {},
        {"text": "a", "number": 1, "flag": True, "either": "a", "when": "now"},
        {"struct": {"a": "x", "deep": {"c": "y"}}, "map": {"a": "x"}, "structs": {"a": {"a": "x"}, "b": {}}},
        {"list": ["a", "a"], "set": ["a", "b"], "listOfStructs": [{"a": "x"}, {"a": "x"}]},
        {"items": [{"name": "a", "tags": ["x"]}, {"name": "b"}], "atomicStruct": {"a": "x"}, "atomicMap": {"a": "x"}},
    ],
)
def test_usual_configurations_are_plain(configuration: dict[str, Any]) -> None:
    assert compile_plainness(SPEC_SCHEMA)(configuration)
