from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from clusterregistry.apiserver.discovery.openapi_v2 import OpenAPIV2
from clusterregistry.apiserver.discovery.operations import Served
from tests.apiserver.discovery.examples import RESOURCES
from tests.apiserver.discovery.test_openapi_v3 import references

ASKED_FOR = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
ANSWERED = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
WIDGETS = "/apis/shop.example.com/v1/widgets"


@pytest.fixture(scope="module")
def openapi() -> OpenAPIV2:
    return OpenAPIV2(Served(resources=RESOURCES), title="Shop", version="v1.2.3")


@pytest.fixture(scope="module")
def document(openapi: OpenAPIV2) -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(openapi.json.body)
    return parsed


def test_one_document_holds_every_group_and_version(document: dict[str, Any]) -> None:
    assert document["swagger"] == "2.0"
    assert {"/api/", "/apis/", "/version/", WIDGETS, "/apis/cars.example.org/v2/cars/{name}"} <= set(document["paths"])
    assert {"com.example.shop.v1.Widget", "com.example.shop.v1beta1.Price"} <= set(document["definitions"])
    assert document["paths"][WIDGETS]["get"]["x-kubernetes-action"] == "list"


def test_every_reference_resolves(document: dict[str, Any]) -> None:
    assert set(references(document)) == {f"#/definitions/{name}" for name in document["definitions"]}


def test_the_document_is_valid_swagger(document: dict[str, Any]) -> None:
    definitions = pytest.importorskip("schemathesis.specs.openapi.definitions")
    definitions.SWAGGER_20_VALIDATOR.validate(document)


def test_old_spellings_are_listed(document: dict[str, Any]) -> None:
    spec = document["definitions"]["com.example.shop.v1.Widget"]["properties"]["spec"]
    assert "serialNumber" in spec["properties"]["parts"]["items"]["properties"]


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        ("", "application/json"),
        ("application/json", "application/json"),
        ("*/*", "application/json"),
        (ASKED_FOR, ANSWERED),
        (ANSWERED, ANSWERED),
        (f"{ASKED_FOR}, application/json", ANSWERED),
    ],
)
def test_the_accept_header_decides_on_the_encoding(openapi: OpenAPIV2, accept: str, content_type: str) -> None:
    answer = openapi.answer(accept=accept)
    assert (answer.status, answer.headers["Content-Type"]) == (200, content_type)
    assert answer.headers["Vary"] == "Accept"


def test_another_encoding_is_not_acceptable(openapi: OpenAPIV2) -> None:
    answer = openapi.answer(accept="text/html")
    assert (answer.status, answer.body) == (406, b"")


def test_a_matching_entity_tag_is_a_304(openapi: OpenAPIV2) -> None:
    etag = openapi.answer(accept=ASKED_FOR).headers["ETag"]
    answer = openapi.answer(accept=ASKED_FOR, if_none_match=etag)
    assert (answer.status, answer.body) == (304, b"")


def test_the_protobuf_runtime_is_imported_when_it_is_needed() -> None:
    script = """
import sys
from tests.apiserver.discovery.examples import discovery
openapi = discovery().openapi_v2
openapi.answer()
assert "google.protobuf" not in sys.modules
openapi.answer(accept="application/com.github.proto-openapi.spec.v2@v1.0+protobuf")
assert "google.protobuf" in sys.modules
"""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60, env=environment)


# The message is read back with a decoder of its own, so that a wrong field number shows.


def fields(message: bytes) -> Iterator[tuple[int, Any]]:
    at = 0
    while at < len(message):
        key, at = varint(message, at)
        match key & 7:
            case 0:
                value, at = varint(message, at)
                yield key >> 3, value
            case 1:
                yield key >> 3, message[at : at + 8]
                at += 8
            case 2:
                length, at = varint(message, at)
                yield key >> 3, message[at : at + length]
                at += length


def varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def under(message: bytes, *numbers: int) -> list[Any]:
    found: list[Any] = [message]
    for number in numbers:
        found = [value for inner in found for known, value in fields(inner) if known == number]
    return found


def named(messages: list[bytes], name: str) -> bytes:
    values: list[bytes] = [under(message, 2)[0] for message in messages if under(message, 1) == [name.encode()]]
    assert len(values) == 1
    return values[0]


def extension(messages: list[bytes], name: str) -> Any:
    return json.loads(under(named(messages, name), 2)[0])


def test_the_message_has_the_fields_where_gnostic_has_them(openapi: OpenAPIV2) -> None:
    message = openapi.protobuf.body
    assert under(message, 1) == [b"2.0"]
    assert under(message, 2, 1) == [b"Shop"]
    widget = named(under(message, 9, 1), "com.example.shop.v1.Widget")
    assert under(widget, 22, 1) == [b"object"]
    kinds = extension(under(widget, 31), "x-kubernetes-group-version-kind")
    assert kinds == [{"group": "shop.example.com", "kind": "Widget", "version": "v1"}]
    metadata = named(under(widget, 25, 1), "metadata")
    assert under(metadata, 1) == [b"#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"]
    spec = named(under(widget, 25, 1), "spec")
    part = under(named(under(spec, 25, 1), "parts"), 23, 1)[0]
    assert under(named(under(part, 25, 1), "colour"), 20, 2) == [b'"red"\n', b'"green"\n']
    assert under(named(under(part, 25, 1), "serialNumber"), 11) == [20]
    assert under(named(under(spec, 25, 1), "options"), 21, 1, 22, 1) == [b"string"]


def test_the_operations_have_what_kubectl_looks_for(openapi: OpenAPIV2) -> None:
    item = named(under(openapi.protobuf.body, 8, 2), WIDGETS + "/{name}")
    patch = under(item, 8)[0]
    assert under(patch, 5) == [b"patchShopExampleComV1Widget"]
    assert b"application/merge-patch+json" in under(patch, 7)
    assert b"fieldValidation" in under(patch, 8, 1, 2, 3, 4)
    assert under(patch, 8, 1, 1, 2) == [b"body"]
    assert b"default" in under(patch, 9, 1, 1)
    assert extension(under(patch, 13), "x-kubernetes-group-version-kind")["kind"] == "Widget"
    assert b"name" in under(item, 9, 1, 2, 4, 4)
