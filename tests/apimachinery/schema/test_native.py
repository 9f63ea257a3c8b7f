"""Objects as Go's decoder reads them into structs. Recordings of kube-apiserver have more: area rbac-kinds."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given

from clusterregistry.apimachinery.meta.json_types import ShapeError
from clusterregistry.apimachinery.schema import native
from clusterregistry.apimachinery.schema.schemas import Array, Map, Object, String
from tests.apimachinery.json_values import shaped

PART = Object(
    type_name="v1.Part",
    fields={"name": String(), "tags": Array(items=String()), "labels": Map(values=String())},
    required=("name",),
)
WHOLE = Object(
    fields={"parts": Array(items=PART), "first": PART, "last": PART, "colour": String(type_name="v1.Colour")},
    required=("first",),
    always_written=("parts",),
)
EMPTY: dict[str, Any] = {"parts": None, "first": {"name": ""}}

decode = native.decoder(WHOLE, kind="Whole")


def decoded(**fields: Any) -> dict[str, Any]:
    obj: dict[str, Any] = {"kind": "Whole", "metadata": {"any": None}, **fields}
    assert decode(obj) == []
    assert obj.pop("kind") == "Whole"
    assert obj.pop("metadata") == {"any": None}
    return obj


def test_what_the_struct_always_writes_is_there() -> None:
    assert decoded() == decoded(parts=None, first=None, last=None, colour=None) == EMPTY


def test_what_is_empty_is_left_out_unless_it_is_required() -> None:
    part = {"name": "a", "tags": [], "labels": {}}
    assert decoded(parts=[], last=part, colour="") == {**EMPTY, "parts": [], "last": {"name": "a"}}


def test_null_in_a_list_or_map_is_an_empty_value() -> None:
    part = {"name": "a", "tags": [None], "labels": {"x": None}}
    assert decoded(parts=[None, part])["parts"] == [{"name": ""}, {"name": "a", "tags": [""], "labels": {"x": ""}}]


def test_unknown_fields_are_dropped_and_named_in_the_order_of_the_document() -> None:
    obj = {"parts": [{"z": 1, "name": "a", "a": {}}], "b": 1, "first": {"c": None}, "a": []}
    assert decode(obj) == ["parts[0].z", "parts[0].a", "b", "first.c", "a"]
    assert obj == {**EMPTY, "parts": [{"name": "a"}]}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"parts": "x"}, "string into Go struct field Whole.parts of type []v1.Part"),
        ({"parts": [1]}, "number into Go struct field Whole.parts of type v1.Part"),
        ({"parts": [{"name": True}]}, "bool into Go struct field Part.parts.name of type string"),
        ({"last": []}, "array into Go struct field Whole.last of type v1.Part"),
        ({"last": {"labels": []}}, "array into Go struct field Part.last.labels of type map[string]string"),
        ({"last": {"labels": {"a": 1}}}, "number into Go struct field Part.last.labels of type string"),
        ({"last": {"tags": [{}]}}, "object into Go struct field Part.last.tags of type string"),
        ({"colour": 1}, "number into Go struct field Whole.colour of type v1.Colour"),
    ],
)
def test_a_value_of_another_type_is_refused_in_the_words_of_go(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ShapeError) as refused:
        decode(dict(fields))
    assert str(refused.value) == f"json: cannot unmarshal {message}"


@given(shaped(WHOLE))
def test_decoding_twice_changes_nothing_more(value: Any) -> None:
    obj = {**value} if isinstance(value, dict) else {"parts": value}
    try:
        decode(obj)
    except ShapeError:
        return
    once = copy.deepcopy(obj)
    assert decode(obj) == []
    assert obj == once
