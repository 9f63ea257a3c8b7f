"""Labels and metadata are read from stored bytes where they stand."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from clusterregistry.apiserver.storage.interface import KeyValue
from clusterregistry.apiserver.storage.object_bytes import (
    at_revision,
    decoded,
    decoded_to_read,
    labels_of,
    metadata_of,
    metadata_size,
    presented,
    size_of,
    to_stored,
)

LABELS = {"env": "prod", "app.kubernetes.io/name": "", "labels": "metadata"}
TRICKY = '"labels":{"not":"this"},"managedFields":[{"metadata":{"uid":"}'
LIKE_THE_END = {"resourceVersion": "42", "uid": "u-1"}
FIELDS = [{"manager": "m", "fieldsV1": {"labels": {"f:env": {}}, "metadata": {}, "uid": {}, TRICKY: {}}}]


def stored(**metadata: Any) -> KeyValue:
    obj = {
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"metadata": "x", "labels": TRICKY}}]},
        "metadata": {"name": "a", "uid": "u-1", **metadata},
        "spec": {"labels": {"no": "label"}, "metadata": {"labels": {"nor": "this"}, "uid": "}"}},
    }
    return presented(KeyValue("/a", to_stored(obj), 42))


OBJECTS = [
    stored(),
    stored(
        annotations={"name": "a", "resourceVersion": "42", "uid": "u-1"}, labels={"resourceVersion": "42", "uid": "u-1"}
    ),
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
    assert metadata_of([kv]) == [orjson.dumps(decoded(kv)["metadata"])]


@pytest.mark.parametrize("kv", OBJECTS)
def test_what_is_read_of_an_object_is_all_but_its_managed_fields(kv: KeyValue) -> None:
    wanted = decoded(kv)
    wanted["metadata"].pop("managedFields", None)
    assert decoded_to_read(kv) == wanted


@pytest.mark.parametrize("revision", [0, 7, 42, 10**12])
@pytest.mark.parametrize("kv", OBJECTS)
def test_an_object_under_another_revision_is_the_same_but_for_that(kv: KeyValue, revision: int) -> None:
    found, wanted = at_revision(kv, revision), decoded(kv)
    wanted["metadata"].pop("resourceVersion")
    if revision:
        wanted["metadata"]["resourceVersion"] = str(revision)
    assert decoded(found) == wanted
    assert found.revision == revision
    assert at_revision(found, 42) == kv
    assert metadata_of([found]) == [orjson.dumps(wanted["metadata"], option=orjson.OPT_SORT_KEYS)]


def test_sizes_are_those_of_what_is_served() -> None:
    items = [at_revision(kv, 7**number) for number, kv in enumerate(OBJECTS)]
    assert size_of(items) == sum(len(kv.value) for kv in items)
    assert metadata_size(items) == sum(map(len, metadata_of(items)))
    assert size_of([]) == metadata_size([]) == 0
