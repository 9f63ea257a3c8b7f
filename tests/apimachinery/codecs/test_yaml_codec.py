import importlib.util
import pathlib
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from hypothesis import example, given

from clusterregistry.apimachinery.codecs import yaml_codec
from clusterregistry.apimachinery.patch.json_patch import equal
from tests.apimachinery.codecs.wire_values import NASTY_STRINGS, VALUES

CLUSTER = {
    "apiVersion": "clusterregistry.k8s.io/v1alpha1",
    "kind": "Cluster",
    "metadata": {
        "name": "a",
        "creationTimestamp": "2024-01-01T00:00:00Z",
        "generation": 1,
        "labels": {"l": "1", "on": "yes", "example.com/x": ""},
        "annotations": {"note": "first: line\nsecond # line\n", "json": '{"a":1}'},
        "managedFields": [
            {"fieldsV1": {"f:metadata": {".": {}, "f:labels": {}}, 'k:{"type":"OK"}': {}}, "manager": "m"}
        ],
        "finalizers": ["example.com/a", "b"],
    },
    "spec": {
        "kubernetesApiEndpoints": {"serverEndpoints": [{"clientCIDR": "0.0.0.0/0", "serverAddress": "https://a:443"}]}
    },
    "status": {"conditions": [], "nodes": {"ready": 3}, "capacity": {}, "load": 1.5, "gone": None, "ok": True},
}


@given(VALUES)
@example(list(NASTY_STRINGS))
@example({text: text for text in NASTY_STRINGS})
def test_we_read_back_what_we_write(value: Any) -> None:
    decoded = yaml_codec.decode(b"---\n" + yaml_codec.encode(value))
    assert equal(decoded.value, value)
    assert decoded.strict_errors == []


@given(VALUES)
@example(list(NASTY_STRINGS))
@example({text: text for text in NASTY_STRINGS})
def test_another_reader_of_yaml_1_1_reads_the_same(value: Any) -> None:
    assert yaml.safe_load(yaml_codec.encode(value)) == value
    assert yaml.load(yaml_codec.encode(value), Loader=yaml.CSafeLoader) == value


@pytest.mark.parametrize("value", [1e16, -1e-7, 1.5, 1e300, 5e-324])
def test_floats_stay_floats_for_readers_of_yaml_1_1(value: float) -> None:
    assert yaml.safe_load(yaml_codec.encode(value)) == value


def test_objects_look_as_kube_apiserver_writes_them() -> None:
    value = {
        "b": [{"y": 1, "x": ["a", "b"]}, "c", [1, []]],
        "a": {"z": {}, "n": None, "t": "true", "u": "https://a:443"},
    }
    assert yaml_codec.encode(value).decode() == (
        'a:\n  "n": null\n  t: "true"\n  u: https://a:443\n  z: {}\n'
        'b:\n- x:\n  - a\n  - b\n  "y": 1\n- c\n- - 1\n  - []\n'
    )


def test_long_strings_are_not_folded() -> None:
    assert len(yaml_codec.encode({"a": "word " * 500}).splitlines()) == 1


@pytest.mark.parametrize("key", ["k" * 1500, "😀 " * 900])
def test_keys_too_long_for_a_simple_key_are_read_back(key: str) -> None:
    value = [{key: {key: [1, {"a": 2}]}, "b": {key: "x"}}]
    assert yaml_codec.decode(yaml_codec.encode(value)).value == value
    assert yaml.safe_load(yaml_codec.encode(value)) == value


def simple_reader() -> Callable[[str], Any]:
    """The reader of the recorded exchanges' replay, which knows only plain block style."""
    path = pathlib.Path(__file__).parents[2] / "conformance" / "replay.py"
    if not path.exists():
        pytest.skip("the replay of recorded exchanges is not here")
    spec = importlib.util.spec_from_file_location("replay", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    reader: Callable[[str], Any] = module.read_yaml
    return reader


def test_a_simple_reader_reads_objects_too() -> None:
    assert simple_reader()(yaml_codec.encode(CLUSTER).decode()) == CLUSTER
