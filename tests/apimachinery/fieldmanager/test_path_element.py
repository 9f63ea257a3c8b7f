from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterregistry.apimachinery.fieldmanager import path_element
from clusterregistry.apimachinery.fieldmanager.path_element import MalformedElementError, compile_by_element, grouped
from clusterregistry.apimachinery.schema.schemas import Array
from tests.apimachinery.fieldmanager.schemas import SPEC


@pytest.mark.parametrize(
    ("element", "canonical"),
    [
        ("f:", "f:"),
        ("f:spec", "f:spec"),
        ("f:a.b/c", "f:a.b/c"),
        ("f:{not json", "f:{not json"),
        ('k:{ "b": 1, "a": "x" }', 'k:{"a":"x","b":1}'),
        ("k:{}", "k:{}"),
        ('v: "a" ', 'v:"a"'),
        ("v:null", "v:null"),
        ("v:true", "v:true"),
        ('v:{"b":[1, 2],"a":null}', 'v:{"a":null,"b":[1,2]}'),
        ("i:007", "i:7"),
        ("i:-1", "i:-1"),
    ],
)
def test_an_element_has_one_form(element: str, canonical: str) -> None:
    assert path_element.canonical(element) == canonical
    assert path_element.canonical(canonical) == canonical


@pytest.mark.parametrize("element", ["x:1", "F:spec", "::", "1:", " :"])
def test_an_element_of_an_unknown_kind_has_no_form(element: str) -> None:
    assert path_element.canonical(element) is None


@pytest.mark.parametrize(
    "element",
    [
        *("", ".", ":", "f", "fs:", "spec", "k:", "k:[]", 'k:"a"', "k:{", "k:1", "v:", "v:{", "v:a", "v:'a'"),
        *("i:", "i:a", "i:1.5", "i:1e3", 'v:"\\ud800"'),
    ],
)
def test_what_is_no_element_is_malformed(element: str) -> None:
    with pytest.raises(MalformedElementError):
        path_element.canonical(element)


@pytest.mark.parametrize(("before", "after"), [("v:", ""), ('k:{"a":', "}")])
def test_an_element_nested_too_deep_to_be_written_is_malformed(before: str, after: str) -> None:
    with pytest.raises(MalformedElementError):
        path_element.canonical(before + "[" * 300 + "]" * 300 + after)


@pytest.mark.parametrize("element", ["i:1_0", "i: 1", "i:1 ", "i:\N{ARABIC-INDIC DIGIT ONE}"])
def test_an_index_is_written_in_plain_digits(element: str) -> None:
    with pytest.raises(MalformedElementError):
        path_element.canonical(element)


@pytest.mark.parametrize("element", ["v:1.0", "v:1e0", "v:1"])
def test_a_whole_number_has_one_form(element: str) -> None:
    assert path_element.canonical(element) == "v:1"


@pytest.mark.parametrize("element", ["v:1e+300", 'k:{"a":-1e+300}', "v:[1e+300]"])
def test_a_number_beyond_all_integers_stays_a_float(element: str) -> None:
    canonical = path_element.canonical(element)
    assert canonical is not None
    assert path_element.canonical(canonical) == canonical
    assert "e" in canonical


def test_what_is_longer_than_what_is_remembered_has_the_same_form() -> None:
    text = "x" * 5000
    assert path_element.canonical(f'v: "{text}"') == f'v:"{text}"'


@pytest.mark.parametrize(
    ("element", "shown"),
    [
        ("f:spec", ".spec"),
        ("f:a.b/c", ".a.b/c"),
        ("i:0", "[0]"),
        ('v:"a\\"b"', '[="a\\"b"]'),
        ("v:1", "[=1]"),
        ("v:1.5", "[=1.5]"),
        ("v:true", "[=true]"),
        ("v:null", "[=null]"),
        ("v:[1,2]", "[=[1,2]]"),
        ('v:{"b":1,"a":"x"}', '[=a="x"b=1]'),
        ('k:{"type":"OK"}', '[type="OK"]'),
        ('k:{"port":80,"protocol":"TCP"}', '[port=80,protocol="TCP"]'),
        ('k:{"b":1,"a":2}', "[a=2,b=1]"),
    ],
)
def test_an_element_is_shown_as_in_kubernetes_messages(element: str, shown: str) -> None:
    assert path_element.shown(element) == shown


def test_what_html_trips_over_is_escaped_as_go_does() -> None:
    assert path_element.of_value("<a & b>") == 'v:"\\u003ca \\u0026 b\\u003e"'
    assert path_element.of_key({"a": "\u2028"}) == 'k:{"a":"\\u2028"}'
    assert path_element.shown(path_element.of_value("<a>")) == '[="<a>"]'


def test_keys_are_written_in_the_order_of_their_names() -> None:
    assert path_element.of_key({"b": 1, "a": "x"}) == 'k:{"a":"x","b":1}'


def test_fields_come_before_keys_and_these_before_values_and_indices() -> None:
    ordered = ["f:a", "f:b", 'k:{"a":"x"}', 'k:{"a":"y"}', 'v:"a"', 'v:"b"', "i:0", "i:1"]
    assert sorted(set(ordered), key=path_element.position) == ordered


@pytest.mark.parametrize(
    "ordered",
    [["v:9", "v:10"], ['v:"a"', 'v:"a b"'], ["i:2", "i:10"], ['k:{"port":9}', 'k:{"port":10}'], ["v:-1", "v:0"]],
)
def test_elements_of_one_kind_are_ordered_by_value_not_by_text(ordered: list[str]) -> None:
    assert sorted(set(ordered), key=path_element.position) == ordered


# Items of lists

LISTS: dict[str, Array] = {name: each for name, each in SPEC.items() if isinstance(each, Array)}
NAMES: st.SearchStrategy[Any] = st.sampled_from(["a", "b", "<&>", "x" * 200, None, 0, 1, True])
ITEMS: st.SearchStrategy[Any] = (
    NAMES | st.dictionaries(st.sampled_from(["name", "port", "protocol", "value"]), NAMES) | st.just([])
)


@pytest.mark.parametrize("name", ["set", "numbers", "items", "ports"])
@given(items=st.lists(ITEMS, max_size=4))
def test_items_are_simple_to_tell_apart_only_where_each_is_a_group_of_its_own(name: str, items: list[Any]) -> None:
    found = compile_by_element(LISTS[name])(items)
    if found is not None:
        assert {element: [item] for element, item in found.items()} == grouped(LISTS[name], items)
        assert list(found.values()) == items


@given(st.lists(st.text(max_size=3), unique=True))
def test_different_texts_are_simple_to_tell_apart(texts: list[str]) -> None:
    assert compile_by_element(LISTS["set"])(texts) is not None
    assert compile_by_element(LISTS["items"])([{"name": text, "value": None} for text in texts]) is not None


@pytest.mark.parametrize("items", [None, {}, "ab", ["a", "a"], ["a", 1], ["a", None], ["a", []]])
def test_anything_else_is_not_simple(items: Any) -> None:
    assert compile_by_element(LISTS["set"])(items) is None
