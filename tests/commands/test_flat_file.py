"""The bytes of flat files, without a server."""

from __future__ import annotations

import random
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from clusterregistry.apimachinery.operator_error import OperatorError
from clusterregistry.commands import flat_file
from clusterregistry.commands.flat_file import Header
from tests.commands.cluster_objects import fleets

HEADER = Header(revision="7", taken="2026-01-02T03:04:05Z")


def exported(fleet: list[dict[str, Any]], header: Header = HEADER) -> bytes:
    return flat_file.with_header(flat_file.documents(fleet), header, count=len(fleet))


@given(fleets(), st.randoms(use_true_random=False))
def test_equal_clusters_give_equal_bytes_and_come_back(fleet: list[dict[str, Any]], order: random.Random) -> None:
    body = flat_file.documents(fleet)
    entries = flat_file.read(exported(fleet), "f")
    again = [entry.manifest for entry in entries if entry.manifest is not None]
    assert again == [flat_file.portable(each) for each in fleet]
    order.shuffle(again)
    assert flat_file.documents(again) == body


@given(fleets())
def test_other_programs_read_the_same(fleet: list[dict[str, Any]]) -> None:
    assert list(yaml.safe_load_all(exported(fleet))) == [flat_file.portable(each) for each in fleet]


@given(fleets().filter(bool), st.data())
def test_a_changed_file_is_noticed(fleet: list[dict[str, Any]], data: st.DataObject) -> None:
    whole = exported(fleet)
    start = whole.index(b"---\n")
    cut = data.draw(st.integers(start, len(whole) - 1))
    with pytest.raises(OperatorError, match="do not match the digest"):
        flat_file.read(whole[:cut], "f")
    changed = bytes([whole[cut] ^ 1])
    with pytest.raises(OperatorError, match="digest"):
        flat_file.read(whole[:cut] + changed + whole[cut + 1 :], "f")


def test_the_header_differs_and_the_documents_do_not() -> None:
    fleet = [cluster("a")]
    other = Header(revision="8", taken="2027-01-02T03:04:05Z", selector="env=prod")
    assert exported(fleet) != exported(fleet, other)
    assert exported(fleet).partition(b"---\n")[2] == exported(fleet, other).partition(b"---\n")[2]


def test_nothing_of_a_server_is_exported() -> None:
    whole = cluster("a", status={"state": "Ready"})
    whole["metadata"] |= {"uid": "u", "resourceVersion": "1", "managedFields": [], "generation": 1, "finalizers": ["x"]}
    assert flat_file.portable(whole) == {key: value for key, value in cluster("a").items() if key != "spec"}


def cluster(name: str, **fields: Any) -> dict[str, Any]:
    beta = "clusterregistry.k8s.io/v1beta1"
    return {"apiVersion": beta, "kind": "Cluster", "metadata": {"name": name}, "spec": {}, **fields}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"{", "is not YAML"),
        (b"kind: Pod\napiVersion: v1\n", "no Cluster"),
        (b"kind: Cluster\napiVersion: clusterregistry.k8s.io/v9\n", "unknown version v9"),
        (b"kind: Cluster\napiVersion: clusterregistry.k8s.io/v1beta1\n", "cluster 1 has the name"),
        (b"kind: Cluster\napiVersion: clusterregistry.k8s.io/v1beta1\nmetadata: [a]\n", "no mapping"),
        (b"kind: Cluster\napiVersion: clusterregistry.k8s.io/v1beta1\nmetadata: {labels: [a]}\n", "no mapping"),
        (flat_file.documents([cluster("a"), cluster("a")]), "a is there twice"),
        (
            flat_file.documents([cluster("a", spec={"clusterID": "x"}), cluster("b", spec={"clusterID": "x"})]),
            "a and b have the same spec.clusterID",
        ),
    ],
)
def test_a_file_with_a_mistake_is_refused_as_a_whole(content: bytes, said: str) -> None:
    with pytest.raises(OperatorError, match=said):
        flat_file.read(content, "f")


def test_v1alpha1_is_read_too() -> None:
    content = b"""\
apiVersion: clusterregistry.k8s.io/v1alpha1
kind: Cluster
metadata: {name: a}
spec: {authInfo: {providers: [{name: p, type: {name: exec}}]}}
"""
    (entry,) = flat_file.read(content, "f")
    assert entry.manifest is not None
    assert entry.manifest["spec"]["authInfo"]["providers"] == [{"name": "p", "type": "exec"}]
