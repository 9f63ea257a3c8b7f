from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterregistry.api.coordination.v1.types import LEASE
from clusterregistry.api.core.v1.types import EVENT, NAMESPACE
from clusterregistry.api.events.v1.types import EVENT as EVENTS_EVENT
from clusterregistry.apimachinery.meta.json_types import ShapeError
from clusterregistry.apimachinery.schema import fast_path, native, schemas
from tests.api.go_objects import OBJECTS, name_of
from tests.apimachinery.json_values import shaped

SCHEMAS = {
    ("v1", "Namespace"): NAMESPACE,
    ("v1", "Event"): EVENT,
    ("events.k8s.io/v1", "Event"): EVENTS_EVENT,
    ("coordination.k8s.io/v1", "Lease"): LEASE,
}
COMMON = frozenset(("apiVersion", "kind", "metadata"))

SINGLE = [each for each in OBJECTS if (each["sent"]["apiVersion"], each["sent"]["kind"]) in SCHEMAS]


def decoder_of(obj: dict[str, Any]) -> Callable[[dict[str, Any]], list[str]]:
    return native.decoder(SCHEMAS[obj["apiVersion"], obj["kind"]], kind=obj["kind"])


@pytest.mark.parametrize("entry", SINGLE, ids=name_of)
def test_an_object_is_decoded_as_in_go(entry: dict[str, Any]) -> None:
    obj = copy.deepcopy(entry["sent"])
    if "error" in entry:
        with pytest.raises(ShapeError) as refused:
            decoder_of(obj)(obj)
        assert str(refused.value) == entry["error"]
        return
    unknown = decoder_of(obj)(obj)
    assert {"metadata": {}, **obj} == entry["answer"]
    mistakes = ", ".join(f'unknown field "{path}"' for path in unknown)
    assert (f"strict decoding error: {mistakes}" if unknown else "") == entry.get("unknown", "")


@pytest.mark.parametrize("entry", [each for each in SINGLE if "answer" in each], ids=name_of)
def test_what_go_writes_has_the_form_of_its_struct(entry: dict[str, Any]) -> None:
    obj = copy.deepcopy(entry["answer"])
    assert decoder_of(obj)(obj) == []
    assert obj == entry["answer"]


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=["Namespace", "Event", "events.k8s.io Event", "Lease"])
@given(data=st.data())
def test_the_fast_path_takes_only_what_decoding_does_not_change(schema: schemas.Object, data: st.DataObject) -> None:
    value = data.draw(shaped(schema))
    obj = value if isinstance(value, dict) else {"spec": value}
    for name in COMMON:
        obj.pop(name, None)
    if fast_path.compile_struct_recognition(schema, untouched=COMMON)(obj):
        before = copy.deepcopy(obj)
        assert native.decode_slowly(schema, obj, kind="Any") == []
        assert obj == before


def test_a_renewed_lease_takes_the_fast_path() -> None:
    spec = {
        "holderIdentity": "a",
        "leaseDurationSeconds": 15,
        "acquireTime": "2020-02-03T04:05:06.000007Z",
        "renewTime": "2020-02-03T04:05:07.500000Z",
        "leaseTransitions": 0,
    }
    recognise = fast_path.compile_struct_recognition(LEASE, untouched=COMMON)
    assert recognise({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "a"}, "spec": spec})
