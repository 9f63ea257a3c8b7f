"""Objects as Go's decoder reads them into structs. Recordings of kube-apiserver have more: area rbac-kinds."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given

from clusterregistry.apimachinery.meta.json_types import ShapeError
from clusterregistry.apimachinery.schema import fast_path, native
from clusterregistry.apimachinery.schema.schemas import MICRO_TIME, Array, Boolean, Integer, Map, Object, String
from tests.apimachinery.json_values import shaped

PART = Object(
    type_name="v1.Part",
    fields={"name": String(), "tags": Array(items=String()), "labels": Map(values=String())},
    required=("name",),
)
WHOLE = Object(
    fields={
        "parts": Array(items=PART),
        "first": PART,
        "last": PART,
        "colour": String(type_name="v1.Colour"),
        "count": Integer(format="int32"),
        "limit": Integer(),
        "done": Boolean(),
        "wanted": Boolean(),
        "counts": Array(items=Integer(format="int32")),
        "at": String(format="date-time"),
        "exactly": String(format="date-time", type_name=MICRO_TIME),
        "data": String(format="byte"),
        "comment": String(),
    },
    required=("first",),
    always_written=("parts", "at"),
    pointers=("limit", "wanted", "comment"),
)
EMPTY: dict[str, Any] = {"parts": None, "first": {"name": ""}, "at": None}

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
        ({"count": "1"}, "string into Go struct field Whole.count of type int32"),
        ({"count": 2**31}, "number 2147483648 into Go struct field Whole.count of type int32"),
        ({"limit": 1.5}, "number 1.5 into Go struct field Whole.limit of type int64"),
        ({"limit": True}, "bool into Go struct field Whole.limit of type int64"),
        ({"counts": [1, "2"]}, "string into Go struct field Whole.counts of type int32"),
        ({"done": 1}, "number into Go struct field Whole.done of type bool"),
        ({"at": 1}, "number into Go struct field Whole.at of type string"),
        ({"exactly": []}, "array into Go struct field Whole.exactly of type string"),
        ({"data": 1}, "number into Go struct field Whole.data of type []uint8"),
        ({"count": "1", "colour": 2}, "string into Go struct field Whole.count of type int32"),
    ],
)
def test_a_value_of_another_type_is_refused_in_the_words_of_go(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ShapeError) as refused:
        decode(dict(fields))
    assert str(refused.value) == f"json: cannot unmarshal {message}"


def test_an_empty_scalar_is_left_out_unless_it_is_a_pointer() -> None:
    empty = {"count": 0, "limit": 0, "done": False, "wanted": False, "comment": "", "data": ""}
    assert decoded(**empty) == {**EMPTY, "limit": 0, "wanted": False, "comment": ""}


def test_null_in_a_list_of_numbers_is_zero() -> None:
    assert decoded(counts=[None, 2])["counts"] == [0, 2]


def test_times_are_in_utc_and_have_the_decimals_of_their_type() -> None:
    found = decoded(at="2020-01-01T01:00:00.5+01:00", exactly="2020-01-01T01:00:00.500000+01:00")
    assert found == {**EMPTY, "at": "2020-01-01T00:00:00Z", "exactly": "2020-01-01T00:00:00.500000Z"}


def test_the_zero_time_of_go_counts_as_none() -> None:
    assert decoded(at="0001-01-01T00:00:00Z", exactly="0001-01-01T00:00:00.000000Z") == EMPTY


def test_what_is_no_time_is_refused_before_another_value_of_a_wrong_type() -> None:
    with pytest.raises(ShapeError, match="parsing time"):
        decode({"count": "1", "at": "noon"})
    with pytest.raises(ShapeError, match=r"Whole\.exactly of type string"):
        decode({"count": "1", "exactly": 5})


def test_bytes_are_written_as_go_writes_them() -> None:
    assert decoded(data="QUJD\nRB==")["data"] == "QUJDRA=="
    with pytest.raises(ShapeError, match="illegal base64 data at input byte 2"):
        decode({"data": "QU!D"})


@given(shaped(WHOLE))
def test_the_fast_path_takes_only_what_decoding_does_not_change(value: Any) -> None:
    obj = {**value} if isinstance(value, dict) else {"parts": value}
    if fast_path.compile_struct_recognition(WHOLE, untouched=frozenset())(obj):
        before = copy.deepcopy(obj)
        assert native.decode_slowly(WHOLE, obj, kind="Whole") == []
        assert obj == before


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
