"""Labels and metadata are read from stored bytes where they stand."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from clusterregistry.registry.objects import (
    decoded,
    decoded_to_read,
    labels_of,
    served_all,
    served_metadata,
    served_metadata_size,
    served_size,
)
from clusterregistry.registry.objects import served as served_bytes
from clusterregistry.storage.interface import KeyValue
from clusterregistry.storage.revisions import to_stored

LABELS = {"env": "prod", "app.kubernetes.io/name": "", "labels": "metadata"}
TRICKY = '"labels":{"not":"this"},"managedFields":[{"metadata":{"uid":"}'
FIELDS = [{"manager": "m", "fieldsV1": {"labels": {"f:env": {}}, "metadata": {}, "uid": {}, TRICKY: {}}}]


def stored(**metadata: Any) -> KeyValue:
    obj = {
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"metadata": "x", "labels": TRICKY}}]},
        "metadata": {"name": "a", "uid": "u-1", **metadata},
        "spec": {"labels": {"no": "label"}, "metadata": {"labels": {"nor": "this"}, "uid": "}"}},
    }
    return KeyValue("/a", to_stored(obj), 42)


OBJECTS = [
    stored(),
    stored(labels=LABELS),
    stored(labels={}),
    stored(labels=LABELS, managedFields=FIELDS),
    stored(managedFields=FIELDS),
    stored(annotations={"labels": TRICKY, TRICKY: "{}", "managedFields": "[]"}),
    stored(annotations={"labels": TRICKY, "managedFields": "["}, labels=LABELS, managedFields=FIELDS),
    stored(managedFields=FIELDS, ownerReferences=[{"kind": "Fleet", "name": '],"name":', "uid": "u-2"}]),
    stored(finalizers=["labels", TRICKY], ownerReferences=[{"kind": TRICKY, "uid": "}"}], labels=LABELS),
]


@pytest.mark.parametrize("kv", OBJECTS)
def test_labels_are_those_of_the_metadata(kv: KeyValue) -> None:
    assert labels_of(kv) == decoded(kv)["metadata"].get("labels", {})


@pytest.mark.parametrize("kv", OBJECTS)
def test_metadata_is_that_of_the_object(kv: KeyValue) -> None:
    assert served_metadata([kv]) == [orjson.dumps(decoded(kv)["metadata"])]


@pytest.mark.parametrize("kv", OBJECTS)
def test_what_is_read_of_an_object_is_all_but_who_owns_it_and_its_version(kv: KeyValue) -> None:
    wanted = decoded(kv)
    wanted["metadata"].pop("managedFields", None)
    wanted["metadata"].pop("resourceVersion")
    assert decoded_to_read(kv) == wanted


def test_many_are_served_as_each_is() -> None:
    items = [*OBJECTS, KeyValue("/new", OBJECTS[0].value, 0)]
    assert served_all(items) == list(map(served_bytes, items))


def test_sizes_are_those_of_what_is_served() -> None:
    items = [KeyValue(kv.key, kv.value, 7**number) for number, kv in enumerate(OBJECTS)]
    assert served_size(items) == sum(len(served_bytes(kv)) for kv in items)
    assert served_metadata_size(items) == sum(map(len, served_metadata(items)))
    assert served_size([]) == served_metadata_size([]) == 0
