from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterregistry.api.authorization.v1.types import SUBJECT_ACCESS_REVIEW
from clusterregistry.apimachinery.meta.json_types import ShapeError
from clusterregistry.apimachinery.schema import native

REVIEW = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview"}

decode = native.decoder(SUBJECT_ACCESS_REVIEW, kind="SubjectAccessReview")

names = st.sampled_from(
    ["spec", "status", "groups", "extra", "user", "allowed", "resourceAttributes", "fieldSelector", "requirements"]
)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(names | st.text(max_size=2), below, max_size=3),
    max_leaves=12,
)


def decoded(**fields: Any) -> tuple[dict[str, Any], list[str]]:
    obj = {**REVIEW, **copy.deepcopy(fields)}
    unknown = decode(obj)
    return {name: value for name, value in obj.items() if name not in REVIEW}, unknown


@pytest.mark.parametrize(
    ("spec", "kept"),
    [
        ({"user": "", "groups": [], "extra": {}}, {}),
        ({"user": None, "groups": None, "resourceAttributes": None}, {}),
        ({"resourceAttributes": {}}, {"resourceAttributes": {}}),
        ({"groups": [None, "g"]}, {"groups": ["", "g"]}),
        ({"extra": {"b": [None], "a": []}}, {"extra": {"a": [], "b": [""]}}),
        (
            {"resourceAttributes": {"fieldSelector": {"requirements": [None, {"key": "k"}]}}},
            {
                "resourceAttributes": {
                    "fieldSelector": {"requirements": [{"key": "", "operator": ""}, {"key": "k", "operator": ""}]}
                }
            },
        ),
    ],
)
def test_a_round_trip_through_go(spec: dict[str, Any], kept: dict[str, Any]) -> None:
    assert decoded(spec=spec) == ({"spec": kept}, [])


def test_unknown_fields_are_reported_in_the_order_of_the_document() -> None:
    requirements = [{"key": "k", "operator": "In", "x": 1}]
    spec = {"b": 1, "resourceAttributes": {"labelSelector": {"requirements": requirements}}, "a": {"c": {}}}
    assert decoded(z=1, spec=spec)[1] == [
        "z",
        "spec.b",
        "spec.resourceAttributes.labelSelector.requirements[0].x",
        "spec.a",
    ]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("x", "string into Go struct field SubjectAccessReview.spec of type v1.SubjectAccessReviewSpec"),
        ({"user": 1}, "number into Go struct field SubjectAccessReviewSpec.spec.user of type string"),
        ({"groups": "x"}, "string into Go struct field SubjectAccessReviewSpec.spec.groups of type []string"),
        ({"groups": [{}]}, "object into Go struct field SubjectAccessReviewSpec.spec.groups of type string"),
        (
            {"extra": []},
            "array into Go struct field SubjectAccessReviewSpec.spec.extra of type map[string]v1.ExtraValue",
        ),
        ({"extra": {"k": "v"}}, "string into Go struct field SubjectAccessReviewSpec.spec.extra of type v1.ExtraValue"),
    ],
)
def test_a_wrong_type_has_gos_message(spec: Any, message: str) -> None:
    with pytest.raises(ShapeError) as wrong:
        decoded(spec=spec)
    assert str(wrong.value) == f"json: cannot unmarshal {message}"


@given(st.dictionaries(names, values, max_size=4))
def test_whatever_is_taken_stays_as_it_is_when_taken_again(fields: dict[str, Any]) -> None:
    try:
        once, _ = decoded(**fields)
    except ShapeError:
        return
    assert decoded(**once) == (once, [])
