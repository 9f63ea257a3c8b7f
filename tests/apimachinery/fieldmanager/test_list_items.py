from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterregistry.apimachinery.fieldmanager.list_items import compile_by_element, grouped
from clusterregistry.apimachinery.schema.schemas import Array
from tests.apimachinery.fieldmanager.schemas import SPEC

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
