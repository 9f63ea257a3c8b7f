from __future__ import annotations

import copy
import re
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from clusterregistry.apimachinery.meta.field_errors import ENOUGH
from clusterregistry.apimachinery.schema.schemas import Array, Boolean, Integer, IntOrString, Map, Object, String
from clusterregistry.apimachinery.schema.structural import Structural
from tests.apimachinery import json_values

SCHEMA = Object(
    fields={
        "spec": Object(
            fields={
                "id": String(max_length=5),
                "bundle": String(format="byte"),
                "on": Boolean(),
                "tags": Array(items=String(), list_type="set"),
                "map": Map(values=String()),
                "servers": Array(
                    items=Object(fields={"range": String(), "port": Integer()}, old_spellings={"Range": "range"})
                ),
                "nested": Object(fields={"name": String()}),
            }
        ),
        "status": Object(
            fields={
                "conditions": Array(
                    items=Object(
                        fields={
                            "type": String(),
                            "status": String(enum=("True", "False")),
                            "at": String(format="date-time"),
                        },
                        required=("type", "status"),
                    ),
                    list_type="map",
                    map_keys=("type",),
                ),
                "total": Integer(format="int32", minimum=0, maximum=2000000000),
                "count": Integer(format="int32"),
                "sizes": Map(values=IntOrString()),
                "pairs": Array(
                    items=Object(fields={"a": String(), "b": String()}), list_type="map", map_keys=("a", "b")
                ),
            }
        ),
    }
)
STRUCTURAL = Structural(SCHEMA)


def pruned(**parts: Any) -> tuple[dict[str, Any], list[str]]:
    unknown = STRUCTURAL.prune(parts)
    return parts, unknown


def errors(**parts: Any) -> list[str]:
    return [str(error) for error in STRUCTURAL.validate(parts)]


def test_unknown_fields_are_removed_and_their_paths_sorted() -> None:
    obj, unknown = pruned(
        extra={"a": 1},
        spec={"nope": 1, "nested": {"name": "x", "zone": "z"}, "servers": [{}, {"bogus": 1}]},
        apiVersion="v1",
        kind="K",
        metadata={"anything": 1},
    )
    assert unknown == ["extra", "spec.nested.zone", "spec.nope", "spec.servers[1].bogus"]
    assert obj == {
        "spec": {"nested": {"name": "x"}, "servers": [{}, {}]},
        "apiVersion": "v1",
        "kind": "K",
        "metadata": {"anything": 1},
    }


def test_the_order_of_fields_is_kept() -> None:
    obj, _ = pruned(apiVersion="v1", kind="K", metadata={}, spec={})
    assert list(obj) == ["apiVersion", "kind", "metadata", "spec"]


@pytest.mark.parametrize(
    ("spec", "unknown"),
    [
        ({"servers": {"port": 1}}, ["spec.servers.port"]),
        ({"id": {"a": {"b": 1}}}, ["spec.id.a"]),
        ([{"x": 1}, [{"y": 1}]], ["spec[0].x", "spec[1][0].y"]),
        ({"map": {"k": {"x": 1}}}, ["spec.map.k.x"]),
    ],
)
def test_an_object_in_the_place_of_something_else_loses_all_its_fields(spec: Any, unknown: list[str]) -> None:
    assert pruned(spec=spec)[1] == unknown


def test_nulls_count_as_absent_but_stay_in_lists() -> None:
    obj, unknown = pruned(
        spec={"nested": None, "servers": [None, {"range": None}], "map": {"k": None, "l": "x"}}, status=None
    )
    assert obj == {"spec": {"servers": [None, {}], "map": {"l": "x"}}}
    assert unknown == []
    assert errors(**obj) == [
        'spec.servers[0]: Invalid value: "null": spec.servers[0] in body must be of type object: "null"'
    ]


def test_unknown_nulls_are_still_unknown() -> None:
    assert pruned(spec={"nope": None}) == ({"spec": {}}, ["spec.nope"])


def test_whole_floats_become_integers() -> None:
    obj, _ = pruned(status={"total": 1.0, "sizes": {"cpu": 2.0}, "count": 1.5})
    assert obj["status"] == {"total": 1, "sizes": {"cpu": 2}, "count": 1.5}
    assert type(obj["status"]["total"]) is int


def test_a_very_deep_value_is_pruned() -> None:
    deep: Any = {"end": 1}
    for _ in range(5000):
        deep = [deep]
    (unknown,) = pruned(spec={"id": deep})[1]
    assert unknown.endswith("[0].end")


def test_many_unknown_fields_are_pruned_in_reasonable_time() -> None:
    assert len(pruned(spec={str(number): 1 for number in range(100_000)})[1]) == 100_000


def test_old_spellings_are_renamed_with_a_warning() -> None:
    obj = {"spec": {"servers": [{"Range": "a"}, {"range": "b"}]}}
    assert STRUCTURAL.rename_old_spellings(obj) == ["spec.servers[0].Range: deprecated, use range"]
    assert obj == {"spec": {"servers": [{"range": "a"}, {"range": "b"}]}}


def test_the_present_spelling_wins_over_the_old_one() -> None:
    obj = {"spec": {"servers": [{"Range": "a", "range": "b"}]}}
    assert STRUCTURAL.rename_old_spellings(obj) == [
        "spec.servers[0].Range: deprecated and ignored, as range is given too"
    ]
    assert obj == {"spec": {"servers": [{"range": "b"}]}}


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        ("text", 'spec: Invalid value: "string": spec in body must be of type object: "string"'),
        ([1], 'spec: Invalid value: "array": spec in body must be of type object: "array"'),
        ({"id": 5}, 'spec.id: Invalid value: "integer": spec.id in body must be of type string: "integer"'),
        ({"id": 5.5}, 'spec.id: Invalid value: "number": spec.id in body must be of type string: "number"'),
        ({"id": True}, 'spec.id: Invalid value: "boolean": spec.id in body must be of type string: "boolean"'),
        ({"id": "123456"}, "spec.id: Too long: may not be more than 5 bytes"),
        ({"on": "yes"}, 'spec.on: Invalid value: "string": spec.on in body must be of type boolean: "string"'),
        ({"tags": {}}, 'spec.tags: Invalid value: "object": spec.tags in body must be of type array: "object"'),
        ({"map": []}, 'spec.map: Invalid value: "array": spec.map in body must be of type object: "array"'),
        (
            {"map": {"k": 1}},
            'spec.map.k: Invalid value: "integer": spec.map.k in body must be of type string: "integer"',
        ),
        ({"bundle": "*no*"}, 'spec.bundle: Invalid value: "*no*": spec.bundle in body must be of type byte: "*no*"'),
        ({"bundle": ""}, 'spec.bundle: Invalid value: "": spec.bundle in body must be of type byte: ""'),
        ({"bundle": 5}, 'spec.bundle: Invalid value: "int64": spec.bundle in body must be of type byte: "int64"'),
        ({"tags": ["a", "b", "a", "a"]}, 'spec.tags[2]: Duplicate value: "a"'),
    ],
)
def test_what_breaks_the_spec_is_said_as_kube_apiserver_says_it(spec: Any, error: str) -> None:
    assert errors(spec=spec) == [error]


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({"total": -1}, ["status.total: Invalid value: -1: total in body should be greater than or equal to 0"]),
        (
            {"total": 2000000001},
            ["status.total: Invalid value: 2000000001: total in body should be less than or equal to 2000000000"],
        ),
        ({"total": "many"}, ['status.total: Invalid value: "string": total in body must be of type integer: "string"']),
        ({"total": True}, ['status.total: Invalid value: "": total in body must be of type int32: ""']),
        ({"total": 1.5}, ['status.total: Invalid value: "float64": total in body must be of type int32: "float64"']),
        ({"total": 10**20}, ['status.total: Invalid value: "float64": total in body must be of type int32: "float64"']),
        (
            {"count": 2**31},
            ['status: Invalid value: "": Checked value must be of type integer with format int32 in count'],
        ),
        (
            {"sizes": {"cpu": True}},
            ['status.sizes.cpu: Invalid value: "boolean": sizes.cpu in body must be of type integer,string: "boolean"'],
        ),
        (
            {"conditions": [{"type": "OK", "status": "Maybe"}]},
            ['status.conditions[0].status: Unsupported value: "Maybe": supported values: "True", "False"'],
        ),
        (
            {"conditions": [{}]},
            ["status.conditions[0].type: Required value", "status.conditions[0].status: Required value"],
        ),
        (
            {"conditions": [{"type": "OK", "status": "True", "at": "yesterday"}]},
            [
                (
                    'status.conditions[0].at: Invalid value: "yesterday": '
                    'conditions[0].at in body must be of type date-time: "yesterday"'
                )
            ],
        ),
        (
            {"conditions": [{"type": "OK", "status": "True"}, {"type": "OK", "status": "False"}]},
            ['status.conditions[1]: Duplicate value: {"type":"OK"}'],
        ),
        (
            {"pairs": [{"a": "1", "b": "2"}, {"a": "1"}, {"b": "2", "a": "1"}, {"a": "1"}]},
            [
                'status.pairs[2]: Duplicate value: {"a":"1","b":"2"}',
                'status.pairs[3]: Duplicate value: {"a":"1"}',
            ],
        ),
        ("text", ['status: Invalid value: "string":  in body must be of type object: "string"']),
        (None, []),
    ],
)
def test_a_part_on_its_own_is_named_from_that_part_on(status: Any, expected: list[str]) -> None:
    assert [str(error) for error in STRUCTURAL.validate_part("status", status)] == expected


def test_an_item_of_a_map_list_must_be_an_object() -> None:
    found = errors(status={"conditions": [5]})
    assert found[0].startswith('status.conditions[0]: Invalid value: "integer"')
    assert found[1] == "status.conditions[0]: Invalid value: 5: must be an object for an array of list-type map"


def test_lengths_count_characters() -> None:
    assert errors(spec={"id": "äöüßé"}) == []


@pytest.mark.parametrize(
    "time",
    ["2024-01-02T03:04:05Z", "2024-02-29T23:59:59.123+01:00", "2024-01-02t03:04:05z", "1999-12-31T00:00:00Z"],
)
def test_times_that_are_good(time: str) -> None:
    assert errors(status={"conditions": [{"type": "a", "status": "True", "at": time}]}) == []


@pytest.mark.parametrize(
    "time", ["2023-02-29T00:00:00Z", "2024-01-02T24:00:00Z", "2024-01-02T03:04:05", "2024-01-02", ""]
)
def test_times_that_are_not(time: str) -> None:
    assert len(errors(status={"conditions": [{"type": "a", "status": "True", "at": time}]})) == 1


def test_errors_of_the_reason_that_kubernetes_gives() -> None:
    found = STRUCTURAL.validate(
        {"spec": {"id": 5}, "status": {"conditions": [{"type": "a", "status": "x"}], "total": -1}}
    )
    assert [error.reason for error in found] == ["FieldValueTypeInvalid", "FieldValueNotSupported", "FieldValueInvalid"]


def test_a_part_that_did_not_change_is_not_checked_again() -> None:
    bad = {"spec": {"id": 5}, "status": {"total": -1}}
    assert STRUCTURAL.validate(bad, copy.deepcopy(bad)) == []
    assert [error.field for error in STRUCTURAL.validate(bad, {"spec": {"id": 5}})] == ["status.total"]


BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})")


@given(st.text(alphabet="AQab9+/=-_ \n", max_size=12))
@example("9999=")
@example("9999====")
def test_base64_is_what_the_reference_takes_for_it(text: str) -> None:
    assert (errors(spec={"bundle": text}) == []) is bool(BASE64.fullmatch(text))


objects = st.fixed_dictionaries({}, optional={name: json_values.shaped(part) for name, part in SCHEMA.fields.items()})


@settings(max_examples=200)
@given(objects)
def test_any_json_is_renamed_pruned_and_validated_without_an_exception(obj: dict[str, Any]) -> None:
    STRUCTURAL.rename_old_spellings(obj)
    STRUCTURAL.validate(obj)
    STRUCTURAL.prune(obj)
    assert all(error.field.startswith(("spec", "status")) for error in STRUCTURAL.validate(obj))


@given(objects)
def test_pruning_once_is_enough(obj: dict[str, Any]) -> None:
    STRUCTURAL.prune(obj)
    again = copy.deepcopy(obj)
    assert STRUCTURAL.prune(again) == []
    assert again == obj


GOOD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "K",
    "metadata": {"anything": None},
    "spec": {
        "id": "a",
        "bundle": "YWJj",
        "on": True,
        "tags": ["a", "b"],
        "map": {"a": "b"},
        "servers": [{"range": "10.0.0.0/8", "port": 443}, {}],
        "nested": {"name": "x"},
    },
    "status": {
        "conditions": [{"type": "a", "status": "True", "at": "2026-01-02T03:04:05Z"}],
        "total": 1,
        "count": -(2**31),
        "sizes": {"cpu": "1", "pods": 5},
        "pairs": [{"a": "x"}],
    },
}


def test_what_needs_neither_renaming_nor_pruning_is_known_to_be_tidy() -> None:
    assert STRUCTURAL.is_tidy(GOOD)


@pytest.mark.parametrize(
    "obj",
    [
        {"spec": {"id": "a" * 6}},
        {"spec": {"bundle": "no base64"}},
        {"status": {"total": -1}},
        {"status": {"conditions": [{"type": "a", "status": "Maybe", "at": "today"}]}},
    ],
)
def test_tidy_is_also_what_will_be_refused_for_its_values(obj: dict[str, Any]) -> None:
    assert STRUCTURAL.is_tidy(obj)
    assert STRUCTURAL.validate(obj)


@pytest.mark.parametrize(
    "obj",
    [
        {"extra": "a"},
        {"kind": None},
        {"spec": None},
        {"spec": []},
        {"spec": {"id": None}},
        {"spec": {"id": {}}},
        {"spec": {"nested": {"zone": "z"}}},
        {"spec": {"servers": [{"Range": "10.0.0.0/8"}]}},
        {"spec": {"servers": [{"port": 443.0}]}},
        {"spec": {"map": {"a": None}}},
        {"spec": {"map": {"a": {"b": "c"}}}},
        {"spec": {"tags": [{"a": "b"}]}},
        {"status": {"total": 1.0}},
        {"status": {"sizes": {"cpu": 1.0}}},
    ],
)
def test_what_may_need_it_is_not(obj: dict[str, Any]) -> None:
    assert not STRUCTURAL.is_tidy(obj)


def _places(value: Any, place: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where there is anything in a value."""
    below = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place, *(found for key, item in below for found in _places(item, (*place, key)))]


def _with(place: tuple[Any, ...], given: Any) -> dict[str, Any]:
    """The good object with something else in one place."""
    changed: Any = copy.deepcopy(GOOD)
    *way, last = place
    holder = changed
    for step in way:
        holder = holder[step]
    holder[last] = given
    return changed  # type: ignore[no-any-return]


_ODD: list[Any] = [None, True, 0, 1, -1, 1.0, 1.5, 2**31, 2**63, 2**70, "", "a", "True", "YWJj===", "YQ", "a" * 6]
_ODD += ["a\n", "2026-02-29T00:00:00Z", "2026-01-02T03:04:05Z\n", "\u0662026-01-02T03:04:05Z", "\ud800"]
_ODD += [[], {}, [{}], {"a": None}]

odd_objects = st.builds(
    _with, st.sampled_from([place for place in _places(GOOD) if place]), st.sampled_from(_ODD) | json_values.scalars
)

whole_objects = st.builds(
    lambda common, parts: common | parts,
    st.dictionaries(st.sampled_from(["apiVersion", "kind", "metadata", "extra"]), json_values.scalars, max_size=2),
    objects,
)


@settings(max_examples=500)
@given(whole_objects | odd_objects)
@example(GOOD)
def test_in_what_is_tidy_nothing_is_renamed_pruned_or_changed(obj: dict[str, Any]) -> None:
    if STRUCTURAL.is_tidy(obj):
        before = repr(obj)  # unlike ==, repr distinguishes 1 and 1.0
        assert STRUCTURAL.rename_old_spellings(obj) == []
        assert STRUCTURAL.prune(obj) == []
        assert repr(obj) == before


@given(odd_objects)
@settings(max_examples=1000)
def test_in_what_is_recognised_nothing_is_wrong(obj: dict[str, Any]) -> None:
    """It is a second opinion on what the checks find, and may only err in being too strict."""
    for part, recognise in STRUCTURAL._recognise.items():
        if recognise(obj.get(part)):
            assert STRUCTURAL._checks[part](obj[part]) is None
            assert STRUCTURAL.prune({part: copy.deepcopy(obj[part])}) == []


@pytest.mark.parametrize("part", ["spec", "status"])
def test_a_good_part_is_recognised(part: str) -> None:
    assert STRUCTURAL._recognise[part](GOOD[part])


def test_what_a_type_cannot_say_is_never_recognised() -> None:
    """An enumeration of times may hold what is none: both would have to be looked at."""
    at = String(enum=("2026-01-02T03:04:05Z", "today"), format="date-time")
    both = Structural(Object(fields={"spec": Object(fields={"at": at})}))
    assert not any(both._recognise["spec"]({"at": value}) for value in at.enum)
    assert [str(error) for error in both.validate({"spec": {"at": "2026-01-02T03:04:05Z"}})] == []
    assert len(both.validate({"spec": {"at": "today"}})) == 1


def test_enough_problems_are_enough() -> None:
    """No response reports more of them, and a search for all takes a second."""
    structural = Structural(Object(fields={"spec": Array(items=String())}))
    assert len(structural.validate({"spec": [1] * 100_000})) == ENOUGH
    nested = Structural(Object(fields={"spec": Map(values=Array(items=String()))}))
    assert len(nested.validate({"spec": {str(key): [1] * 100 for key in range(1000)}})) == ENOUGH
