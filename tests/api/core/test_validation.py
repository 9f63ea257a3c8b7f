from __future__ import annotations

from typing import Any

import pytest

from clusterregistry.api.core.v1.types import EVENT, NAMESPACE
from clusterregistry.api.core.v1.validation import (
    validate_event,
    validate_event_update,
    validate_namespace,
    validate_namespace_finalizers,
    validate_namespace_status,
    validate_new_event,
)
from clusterregistry.apimachinery.meta.field_errors import FieldError
from clusterregistry.apimachinery.schema import native

TIME = "2020-02-03T04:05:06.000007Z"
NEW = {"eventTime": TIME, "reportingComponent": "c", "reportingInstance": "i", "action": "a", "reason": "r"}
NOT_QUALIFIED = "name is neither a standard finalizer name nor is it fully qualified"


def event(*, namespace: str = "ns", **fields: Any) -> dict[str, Any]:
    obj = {"metadata": {"name": "e", "namespace": namespace}, "involvedObject": {"namespace": namespace}, **fields}
    assert native.decoder(EVENT, kind="Event")(obj) == []
    return obj


def namespace(**fields: Any) -> dict[str, Any]:
    obj = {"metadata": {"name": "n"}, **fields}
    assert native.decoder(NAMESPACE, kind="Namespace")(obj) == []
    return obj


def texts(errors: list[FieldError]) -> list[str]:
    return [str(error) for error in errors]


def fields(errors: list[FieldError]) -> list[str]:
    return [error.field for error in errors]


# Namespace


def test_finalizers_of_a_namespace_are_qualified() -> None:
    obj = namespace(spec={"finalizers": ["kubernetes", "example.com/f", "plain", "a b"]})
    assert validate_namespace(namespace()) == []
    assert fields(validate_namespace(obj)) == ["spec.finalizers"] * 3
    assert fields(validate_namespace_finalizers(obj)) == [
        "spec.finalizers[2]",
        "spec.finalizers[3]",
        "spec.finalizers[3]",
    ]
    assert texts(validate_namespace(obj))[0] == f'spec.finalizers: Invalid value: "plain": {NOT_QUALIFIED}'


def test_a_namespace_is_terminating_while_it_is_deleted_and_only_then() -> None:
    deleted = {"name": "n", "deletionTimestamp": "2020-02-03T04:05:06Z"}
    assert validate_namespace_status(namespace(status={"phase": "Active"})) == []
    assert validate_namespace_status(namespace(metadata=deleted, status={"phase": "Terminating"})) == []
    assert texts(validate_namespace_status(namespace(status={"phase": "Terminating"}))) == [
        "status.Phase: Invalid value: \"Terminating\": may only be 'Active' if `deletionTimestamp` is empty"
    ]
    assert texts(validate_namespace_status(namespace(metadata=deleted))) == [
        "status.Phase: Invalid value: \"\": may only be 'Terminating' if `deletionTimestamp` is not empty"
    ]


# Event


@pytest.mark.parametrize(
    ("of_event", "of_object", "is_valid"),
    [
        ("ns", "ns", True),
        ("ns", "other", False),
        ("ns", "", False),
        ("default", "", True),
        ("default", "other", False),
        ("kube-system", "", False),
    ],
)
def test_an_old_event_is_in_the_namespace_of_its_object(of_event: str, of_object: str, *, is_valid: bool) -> None:
    errors = validate_event(event(namespace=of_event, involvedObject={"namespace": of_object}))
    wrong = f'involvedObject.namespace: Invalid value: "{of_object}": does not match event.namespace'
    assert texts(errors) == ([] if is_valid else [wrong])


@pytest.mark.parametrize(
    ("of_event", "of_object", "is_valid"),
    [("ns", "other", True), ("ns", "", False), ("default", "", True), ("kube-system", "", True)],
)
def test_a_new_event_may_be_about_an_object_elsewhere(of_event: str, of_object: str, *, is_valid: bool) -> None:
    errors = validate_event(event(namespace=of_event, **NEW, involvedObject={"namespace": of_object}))
    assert fields(errors) == ([] if is_valid else ["involvedObject.namespace"])


def test_an_old_event_may_be_almost_anything() -> None:
    assert validate_event(event(type="Odd", count=-1, message="x" * 5000, reason="r" * 500, series={"count": 1})) == []


def test_an_event_with_a_time_names_its_reporter() -> None:
    errors = validate_event(event(eventTime=TIME))
    assert fields(errors) == ["reportingComponent"] * 3 + ["reportingInstance", "action", "reason"]
    assert (
        fields(validate_event(event(eventTime=TIME), controller_field="reportingController"))[:3]
        == ["reportingController"] * 3
    )


@pytest.mark.parametrize(
    ("changed", "wrong"),
    [
        ({"reportingInstance": "i" * 128, "action": "a" * 128, "reason": "r" * 128, "message": "m" * 1024}, []),
        ({"reportingInstance": "i" * 129}, ["reportingInstance"]),
        ({"action": "ü" * 65}, ["action"]),
        ({"reason": "r" * 129}, ["reason"]),
        ({"message": "m" * 1025}, ["message"]),
        ({"reportingComponent": "not a name"}, ["reportingComponent"]),
    ],
)
def test_texts_of_an_event_with_a_time_are_short(changed: dict[str, Any], wrong: list[str]) -> None:
    assert fields(validate_event(event(**NEW | changed))) == wrong


def test_the_limit_of_a_text_is_told() -> None:
    assert texts(validate_event(event(**NEW | {"message": "m" * 1025}))) == [
        'message: Invalid value: "": can have at most 1024 characters'
    ]


def test_a_new_event_has_a_known_type_a_time_and_no_deprecated_fields() -> None:
    assert validate_new_event(event(**NEW, type="Warning")) == []
    wrong = event(
        count=1,
        source={"host": "h"},
        firstTimestamp="2020-02-03T04:05:06Z",
        lastTimestamp="2020-02-03T04:05:06Z",
        series={"count": 1},
        type="Odd",
    )
    assert texts(validate_new_event(wrong)) == [
        'series.count: Invalid value: "": should be at least 2',
        "series.lastObservedTime: Required value",
        "eventTime: Required value",
        'type: Invalid value: "": has invalid value: Odd',
        'firstTimestamp: Invalid value: "": needs to be unset',
        'lastTimestamp: Invalid value: "": needs to be unset',
        'count: Invalid value: "": needs to be unset',
        'source: Invalid value: "": needs to be unset',
    ]


@pytest.mark.parametrize(
    ("changed", "shown"),
    [
        ({"reason": "x"}, ['reason: Invalid value: "x"', 'reason: Invalid value: "x"']),
        ({"message": "x"}, ['message: Invalid value: "x"']),
        ({"type": "x"}, ['type: Invalid value: "x"']),
        ({"action": "x"}, ['action: Invalid value: "x"']),
        ({"count": 3}, ["count: Invalid value: 3"]),
        ({"source": {"host": "h"}}, ['source: Invalid value: {"Component":"","Host":"h"}']),
        ({"firstTimestamp": "2020-02-03T04:05:06Z"}, ['firstTimestamp: Invalid value: "2020-02-03T04:05:06Z"']),
        ({"eventTime": None}, ["eventTime: Invalid value: null"]),
        ({"reportingComponent": "x"}, ['reportingController: Invalid value: "x"']),
        ({"reportingInstance": "x"}, ['reportingInstance: Invalid value: "x"']),
        (
            {"related": {"kind": "Pod", "uid": "u"}},
            [
                (
                    'related: Invalid value: {"Kind":"Pod","Namespace":"","Name":"","UID":"u","APIVersion":"",'
                    '"ResourceVersion":"","FieldPath":""}'
                )
            ],
        ),
        ({"series": {"count": 2, "lastObservedTime": TIME}}, []),
    ],
)
def test_an_event_does_not_change_but_for_its_series(changed: dict[str, Any], shown: list[str]) -> None:
    old = event(**NEW)
    errors = validate_event_update(event(**NEW | changed), old)
    assert texts(errors) == [f"{text}: field is immutable" for text in shown]


def test_a_series_is_validated_when_it_changes() -> None:
    old = event(**NEW, series={"count": 1})
    assert validate_event_update(old, old) == []
    assert fields(validate_event_update(event(**NEW, series={"count": 0}), old)) == [
        "series.count",
        "series.lastObservedTime",
    ]
