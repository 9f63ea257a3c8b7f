from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterregistry.api.core.v1.types import EVENT
from clusterregistry.api.events.v1.conversion import FIELD_LABELS, from_core, to_core
from clusterregistry.api.events.v1.types import EVENT as EVENTS_EVENT
from clusterregistry.apimachinery.schema import native, schemas

CORE = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "a", "namespace": "ns"}}
NEW = {**CORE, "apiVersion": "events.k8s.io/v1"}

texts = st.text(max_size=5)
times = st.datetimes().map(lambda time: time.isoformat(timespec="seconds") + "Z")
micro_times = st.datetimes().map(lambda time: time.isoformat(timespec="microseconds") + "Z")


def valid(schema: schemas.Schema) -> st.SearchStrategy[Any]:
    match schema:
        case schemas.Object(fields=fields):
            return st.fixed_dictionaries({}, optional={name: valid(field) for name, field in fields.items()})
        case schemas.Integer():
            return st.integers(-(2**31), 2**31 - 1)
        case schemas.String(format="date-time", type_name=schemas.MICRO_TIME):
            return micro_times
        case schemas.String(format="date-time"):
            return times
    return texts


def decoded(schema: schemas.Object, common: dict[str, Any], fields: dict[str, Any]) -> dict[str, Any]:
    obj = {**common, **fields}
    assert native.decoder(schema, kind="Event")(obj) == []
    return obj


@given(valid(EVENT))
def test_an_event_of_the_core_group_comes_back_from_the_new_one_as_it_was(fields: dict[str, Any]) -> None:
    event = decoded(EVENT, CORE, fields)
    before = copy.deepcopy(event)
    there = from_core(event)
    assert event == before
    assert there == decoded(EVENTS_EVENT, NEW, copy.deepcopy(there))
    assert to_core(there) == event


@given(valid(EVENTS_EVENT))
def test_an_event_of_the_new_group_comes_back_from_the_core_group_as_it_was(fields: dict[str, Any]) -> None:
    event = decoded(EVENTS_EVENT, NEW, fields)
    before = copy.deepcopy(event)
    there = to_core(event)
    assert event == before
    assert there == decoded(EVENT, CORE, copy.deepcopy(there))
    assert from_core(there) == event


@pytest.mark.parametrize(
    ("new", "core"),
    [
        ({"note": "n"}, {"message": "n"}),
        ({"regarding": {"name": "p"}}, {"involvedObject": {"name": "p"}}),
        ({"reportingController": "c", "reportingInstance": "i"}, {"reportingComponent": "c", "reportingInstance": "i"}),
        ({"deprecatedSource": {"host": "h"}, "deprecatedCount": 3}, {"source": {"host": "h"}, "count": 3}),
        (
            {"deprecatedFirstTimestamp": "2020-01-01T00:00:00Z", "deprecatedLastTimestamp": "2020-01-02T00:00:00Z"},
            {"firstTimestamp": "2020-01-01T00:00:00Z", "lastTimestamp": "2020-01-02T00:00:00Z"},
        ),
        ({"series": {}}, {"series": {}}),
    ],
)
def test_fields_have_their_names_of_each_group(new: dict[str, Any], core: dict[str, Any]) -> None:
    assert to_core(decoded(EVENTS_EVENT, NEW, new)) == decoded(EVENT, CORE, core)
    assert from_core(decoded(EVENT, CORE, core)) == decoded(EVENTS_EVENT, NEW, new)


def test_selectable_fields_have_their_names_of_each_group() -> None:
    assert FIELD_LABELS["regarding.name"] == "involvedObject.name"
    assert FIELD_LABELS["reportingController"] == "reportingComponent"
    assert FIELD_LABELS.keys() & {"source", "reportingComponent", "involvedObject.name"} == set()
