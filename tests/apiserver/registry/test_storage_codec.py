"""Each stored value is validated: a good one is served, any other is refused."""

from __future__ import annotations

import copy
import dataclasses
import re
from collections.abc import Callable
from typing import Any

import orjson
import pytest

from clusterregistry.apimachinery.schema.structural import Structural
from clusterregistry.apiserver.registry.rbac.resources import cluster_role_resource
from clusterregistry.apiserver.registry.resource import Resource
from clusterregistry.apiserver.registry.storage_codec import StorageCodec
from clusterregistry.apiserver.storage import interface
from clusterregistry.apiserver.storage.errors import CorruptObject
from clusterregistry.apiserver.storage.interface import KeyValue
from clusterregistry.apiserver.storage.object_bytes import (
    decoded,
    decoded_to_read,
    labels_of,
    metadata_of,
    owner_references_of,
    presented,
    to_stored,
)
from clusterregistry.registry.cluster import cluster_resource

Object = dict[str, Any]

METADATA: Object = {
    "name": "a",
    "uid": "6c1ba40c-6a7b-4d5b-8ddf-000000000000",
    "creationTimestamp": "2026-01-02T03:04:05Z",
    "generation": 1,
    "labels": {"env": "prod"},
    "annotations": {"note": '"metadata":{"labels":{"x":"y"}}'},
    "managedFields": [
        {
            "manager": "kubectl",
            "operation": "Update",
            "apiVersion": "clusterregistry.k8s.io/v1alpha1",
            "time": "2026-01-02T03:04:05Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:spec": {}},
        }
    ],
    "finalizers": ["example.com/hold"],
    "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}],
}
CLUSTER: Object = {
    "apiVersion": "clusterregistry.k8s.io/v1alpha1",
    "kind": "Cluster",
    "metadata": METADATA,
    "spec": {"cloudProvider": {"name": "aws"}},
    "status": {"nodes": {"total": 3}},
}
ROLE: Object = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRole",
    "metadata": METADATA,
    "rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["nodes"]}],
}


def codec(resource: Resource) -> StorageCodec:
    return StorageCodec(resource, Structural(resource.stored_as.schema))


def stored(value: bytes, resource: Resource, *, name: str = "a") -> KeyValue:
    return KeyValue(interface.prefix_of(resource.group, resource.plural) + name, value, 7)


def read(value: bytes, *, name: str = "a") -> KeyValue:
    resource = cluster_resource("off")
    return codec(resource).decode(stored(value, resource, name=name))


def read_role(value: bytes) -> KeyValue:
    resource = cluster_role_resource()
    return codec(resource).decode(stored(value, resource))


def changed(**parts: Any) -> bytes:
    return orjson.dumps({**CLUSTER, **parts})


def with_metadata(**fields: Any) -> bytes:
    return changed(metadata={**METADATA, **fields})


def without_metadata(field: str) -> bytes:
    return changed(metadata={key: value for key, value in METADATA.items() if key != field})


@pytest.mark.parametrize(("obj", "reads"), [(CLUSTER, read), (ROLE, read_role)])
def test_what_the_server_stores_is_served_byte_for_byte(obj: Object, reads: Callable[[bytes], KeyValue]) -> None:
    value = to_stored(copy.deepcopy(obj))
    kv = reads(value)
    assert kv == presented(KeyValue(kv.key, value, 7))


GOOD = {
    "with spaces": orjson.dumps(CLUSTER, option=orjson.OPT_INDENT_2),
    "in another order": orjson.dumps(dict(reversed(CLUSTER.items()))),
    "with its revision": with_metadata(resourceVersion="3"),
    "with unknown fields": with_metadata(zone="x", resources={"uid": "y"})[:-1] + b',"extra":{"metadata":{}}}',
    "with a key twice": to_stored(copy.deepcopy(CLUSTER))[:-1] + b',"kind":"Cluster"}',
    "with empty labels": with_metadata(labels={}),
    "with the link of an old server": with_metadata(selfLink="/apis/somewhere"),
}


@pytest.mark.parametrize("value", GOOD.values(), ids=GOOD.keys())
def test_a_good_object_in_another_form_is_brought_into_ours(value: bytes) -> None:
    kv = read(value)
    obj = decoded(kv)
    assert obj["metadata"].pop("resourceVersion") == "7"
    assert {**obj, "metadata": {**obj["metadata"], "labels": METADATA["labels"]}} == CLUSTER
    # All that is cut out of its bytes is where it is looked for.
    (metadata,) = metadata_of([kv])
    assert orjson.loads(metadata)["name"] == "a"
    assert labels_of(kv) == orjson.loads(metadata).get("labels", {})
    assert owner_references_of(kv) == METADATA["ownerReferences"]
    assert "managedFields" not in decoded_to_read(kv)["metadata"]


BAD = {
    "nothing": b"",
    "no JSON": b"garbage",
    "cut off": to_stored(copy.deepcopy(CLUSTER))[:-10],
    "one byte that is no text": to_stored(copy.deepcopy(CLUSTER)).replace(b"aws", b"a\xf3s"),
    "not a number": changed(spec={"x": 1}).replace(b'{"x":1}', b"NaN"),
    "no object": b"[]",
    "too deep": changed().replace(b'{"f:spec":{}}', b'{"f:spec":' * 600 + b"{}" + b"}" * 600),
    "no kind": changed(kind=None),
    "another kind": changed(kind="Node"),
    "another version": changed(apiVersion="v1"),
    "no metadata": changed(metadata=None),
    "metadata of another type": changed(metadata=[]),
    "another name": with_metadata(name="b"),
    "no name": without_metadata("name"),
    "no uid": without_metadata("uid"),
    "no time": without_metadata("creationTimestamp"),
    "a time that is none": with_metadata(creationTimestamp="yesterday"),
    "a uid with a brace": with_metadata(uid="a}b"),
    "labels that are no strings": with_metadata(labels={"a": {"b": "c"}}),
    "labels with a brace": with_metadata(labels={"a": "}"}),
    "labels that are a list": with_metadata(labels=["a"]),
    "finalizers that are a string": with_metadata(finalizers="a"),
    "a spec of another type": changed(spec="x"),
    "a status of another type": changed(status={"nodes": [1]}),
    "endpoints of another type": changed(spec={"kubernetesApiEndpoints": {"serverEndpoints": "x"}}),
}


@pytest.mark.parametrize("value", BAD.values(), ids=BAD.keys())
def test_what_is_no_object_is_refused_with_a_reason(value: bytes) -> None:
    with pytest.raises(CorruptObject) as caught:
        read(value)
    assert (caught.value.key, caught.value.revision) == ("/clusterregistry.k8s.io/clusters/a", 7)
    assert 5 < len(caught.value.reason) < 300


def test_a_key_below_another_one_is_no_object() -> None:
    with pytest.raises(CorruptObject, match="not that of its key"):
        read(to_stored(copy.deepcopy(CLUSTER)), name="below/a")


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "50%"])
def test_a_name_that_no_request_can_have_is_no_name(name: str) -> None:
    """No page could go on behind it, and no client could ask for it."""
    with pytest.raises(CorruptObject, match="no request can name it") as caught:
        read(with_metadata(name=name), name=name)
    assert "has to be removed from the storage" in caught.value.reason


ENTRY = METADATA["managedFields"][0]
MALFORMED_ENTRIES: dict[str, Object] = {
    "no version": {key: value for key, value in ENTRY.items() if key != "apiVersion"},
    "no operation": {key: value for key, value in ENTRY.items() if key != "operation"},
    "another operation": {**ENTRY, "operation": "Bpply"},
    "another form": {**ENTRY, "fieldsType": "FieldsV2"},
    "a number for fields": {**ENTRY, "fieldsV1": {"f:spec": 5}},
    "an element that is none": {**ENTRY, "fieldsV1": {"k:{bad": {}}},
}


@pytest.mark.parametrize("entry", MALFORMED_ENTRIES.values(), ids=MALFORMED_ENTRIES.keys())
def test_managed_fields_that_cannot_be_understood_count_as_none(entry: Object) -> None:
    """As in kube-apiserver. Every write relies on them, and the object itself is good."""
    obj = decoded(read(with_metadata(managedFields=[ENTRY, entry])))
    assert "managedFields" not in obj["metadata"]
    assert obj["spec"] == CLUSTER["spec"]


@pytest.mark.parametrize("rules", [5, {"a": 1}, [5], [{"verbs": "get"}], [{"verbs": [5]}]])
def test_a_role_whose_rules_are_none_is_refused(rules: Any) -> None:
    with pytest.raises(CorruptObject):
        read_role(orjson.dumps({**ROLE, "rules": rules}))


def test_a_role_without_rules_has_none() -> None:
    bare = {key: value for key, value in ROLE.items() if key != "rules"}
    assert decoded(read_role(orjson.dumps(bare)))["rules"] is None


def test_rules_that_came_later_than_the_object_do_not_count() -> None:
    """A schema may become stricter; what was stored before it did is still served, as by kube-apiserver."""
    long = "x" * 300
    assert decoded(read(changed(spec={"clusterID": long})))["spec"] == {"clusterID": long}


def in_beta(**parts: Any) -> bytes:
    return changed(apiVersion="clusterregistry.k8s.io/v1beta1", **parts)


def test_an_object_is_decoded_by_its_own_version() -> None:
    obj = decoded(read(in_beta(spec={"authInfo": {"providers": [{"type": "x"}]}, "location": {"region": "north"}})))
    assert obj["apiVersion"] == "clusterregistry.k8s.io/v1alpha1"
    assert obj["spec"] == {"authInfo": {"providers": [{"type": {"name": "x"}}]}}
    assert obj["metadata"]["annotations"]["clusterregistry.k8s.io/location"] == '{"region":"north"}'


def test_a_version_that_is_not_served_is_decoded_all_the_same() -> None:
    beta, alpha = cluster_resource("off").versions
    resource = dataclasses.replace(cluster_resource("off"), versions=(beta,), unserved=(alpha,))
    value = to_stored(copy.deepcopy(CLUSTER))
    kv = codec(resource).decode(stored(value, resource))
    assert kv == presented(KeyValue(kv.key, value, 7))
    only_old = dataclasses.replace(cluster_resource("off"), versions=(alpha,), unserved=(beta,))
    kv = codec(only_old).decode(stored(in_beta(), only_old))
    assert decoded(kv)["apiVersion"] == "clusterregistry.k8s.io/v1alpha1"


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (changed(apiVersion="clusterregistry.k8s.io/v2"), "a Cluster of clusterregistry.k8s.io/v2"),
        (changed(apiVersion="rbac.authorization.k8s.io/v1"), "a Cluster of rbac"),
        (changed(apiVersion=["clusterregistry.k8s.io/v1beta1"]), "it is not a Cluster of"),
        (changed(apiVersion=None), "a Cluster of None"),
        (in_beta(kind="Clusters"), "a Clusters of clusterregistry.k8s.io/v1beta1"),
        (in_beta(spec={"location": {"region": 5}}), "spec.location.region"),
        (in_beta(spec={"authInfo": {"providers": [{"type": {"name": "x"}}]}}), "spec.authInfo.providers[0].type"),
    ],
)
def test_an_object_that_is_of_no_known_version_is_set_aside(value: bytes, reason: str) -> None:
    with pytest.raises(CorruptObject, match=re.escape(reason)):
        read(value)


def test_an_object_is_encoded_in_any_version_and_comes_back() -> None:
    resource = cluster_resource("off")
    beta, _ = resource.versions
    status = {"conditions": [{"type": "OK", "status": "True", "lastHeartbeatTime": "2024-01-02T03:04:05Z"}]}
    kv = stored(to_stored({**copy.deepcopy(CLUSTER), "status": status}), resource)
    value = codec(resource).encode(kv, beta)
    assert orjson.loads(value)["apiVersion"] == "clusterregistry.k8s.io/v1beta1"
    again = stored(value, resource)
    assert codec(resource).encode(again, resource.stored_as) == kv.value
    assert codec(resource).encode(again, beta) == value
