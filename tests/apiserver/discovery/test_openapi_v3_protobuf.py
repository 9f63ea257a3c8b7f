"""OpenAPI 3 as protobuf has all that the JSON has. It is read with a decoder of its own, so that a wrong number shows.

The numbers are those of gnostic's OpenAPIv3.proto; gnostic itself reads the same from both.
"""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from collections.abc import Callable, Container
from typing import Any

import pytest

from clusterregistry.apiserver.discovery import openapi_v3_protobuf
from clusterregistry.apiserver.discovery.openapi_v3 import OpenAPIV3
from clusterregistry.apiserver.discovery.operations import Served
from tests.apiserver.discovery.examples import RESOURCES
from tests.apiserver.discovery.test_openapi_v2 import fields, under
from tests.apiserver.discovery.test_openapi_v3 import NAME, NOW, all_names, answered, document

ASKED_FOR = "application/com.github.proto-openapi.spec.v3@v1.0+protobuf"
ANSWERED = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf"

Reader = Callable[[Any], Any]


def text(value: bytes) -> str:
    return value.decode()


def number(value: bytes) -> float:
    found: float = struct.unpack("<d", value)[0]
    return found


def any_value(message: bytes) -> Any:
    return json.loads(under(message, 2)[0])


def map_of(read: Reader) -> Reader:
    """A list of named values."""
    return lambda message: {text(under(each, 1)[0]): read(under(each, 2)[0]) for each in under(message, 1)}


Table = dict[int, tuple[str, Reader]]


def message(table: Table, *, lists: Container[int] = (), extensions: int = 0) -> Reader:
    def read(data: bytes) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for at, value in fields(data):
            if at == extensions:
                found[text(under(value, 1)[0])] = any_value(under(value, 2)[0])
            elif at in lists:
                found.setdefault(table[at][0], []).append(table[at][1](value))
            else:
                found[table[at][0]] = table[at][1](value)
        return found

    return read


def schema(data: bytes) -> dict[str, Any]:
    read = message(
        {
            1: ("nullable", bool),
            11: ("maximum", number),
            13: ("minimum", number),
            15: ("maxLength", int),
            17: ("pattern", text),
            23: ("required", text),
            24: ("enum", any_value),
            25: ("type", text),
            26: ("allOf", schema_or_reference),
            27: ("oneOf", schema_or_reference),
            28: ("anyOf", schema_or_reference),
            29: ("not", schema),
            30: ("items", lambda value: schema_or_reference(under(value, 1)[0])),
            31: ("properties", map_of(schema_or_reference)),
            32: ("additionalProperties", additional_properties),
            33: ("default", default),
            34: ("description", text),
            35: ("format", text),
        },
        lists={23, 24, 26, 27, 28},
        extensions=36,
    )
    found: dict[str, Any] = read(data)
    return found


def additional_properties(data: bytes) -> Any:
    ((at, value),) = fields(data)
    return bool(value) if at == 2 else schema_or_reference(value)


def default(data: bytes) -> Any:
    ((at, value),) = fields(data)
    readers: dict[int, Reader] = {1: number, 2: bool, 3: text}
    return readers[at](value)


def schema_or_reference(data: bytes) -> dict[str, Any]:
    ((at, value),) = fields(data)
    return schema(value) if at == 1 else {"$ref": text(under(value, 1)[0])}


def inner(read: Reader) -> Reader:
    """What may also be a reference, and is none."""
    return lambda data: read(under(data, 1)[0])


media_types = map_of(message({1: ("schema", schema_or_reference)}))
_PARAMETER: Table = {
    1: ("name", text),
    2: ("in", text),
    3: ("description", text),
    4: ("required", bool),
    10: ("schema", schema_or_reference),
}
parameter = inner(message(_PARAMETER))
response = inner(message({1: ("description", text), 3: ("content", media_types)}))


def responses(data: bytes) -> dict[str, Any]:
    codes = {text(under(each, 1)[0]): response(under(each, 2)[0]) for each in under(data, 2)}
    return codes | {"default": response(under(data, 1)[0])}


operation = message(
    {
        1: ("tags", text),
        3: ("description", text),
        5: ("operationId", text),
        6: ("parameters", parameter),
        7: ("requestBody", inner(message({2: ("content", media_types), 3: ("required", bool)}))),
        8: ("responses", responses),
    },
    lists={1, 6},
    extensions=13,
)
path_item = message(
    {4: ("get", operation), 5: ("put", operation), 6: ("post", operation), 7: ("delete", operation)}
    | {10: ("patch", operation), 13: ("parameters", parameter)},
    lists={13},
)
read_document = message(
    {
        1: ("openapi", text),
        2: ("info", message({1: ("title", text), 6: ("version", text)})),
        4: ("paths", map_of(path_item)),
        5: ("components", message({1: ("schemas", map_of(schema_or_reference))})),
    }
)


def without_zeros(value: Any) -> Any:
    """Protobuf does not tell zero from absent."""
    if isinstance(value, dict):
        return {name: without_zeros(each) for name, each in value.items() if each is not False and each != 0}
    return [without_zeros(each) for each in value] if isinstance(value, list) else value


@pytest.fixture(scope="module")
def openapi() -> OpenAPIV3:
    return OpenAPIV3(Served(resources=RESOURCES), title="Shop", version="v1.2.3")


def test_the_message_has_all_that_the_json_has(openapi: OpenAPIV3) -> None:
    for name in all_names(openapi):
        assert read_document(openapi.protobuf(name).body) == without_zeros(json.loads(document(openapi, name).body))


def test_schemas_that_are_not_in_use_yet_have_their_fields_too() -> None:
    various: dict[str, Any] = {
        "type": "object",
        "nullable": True,
        "not": {"type": "string", "pattern": "^a"},
        "oneOf": [{"$ref": "#/x"}, {}],
        "additionalProperties": False,
        "properties": {
            "a": {"default": "x"},
            "b": {"default": True},
            "c": {"default": 1.5},
            "d": {"additionalProperties": True},
        },
    }
    whole = {"openapi": "3.0.0", "info": {}, "paths": {}, "components": {"schemas": {"V": various}}}
    assert read_document(openapi_v3_protobuf.encoded(whole))["components"]["schemas"]["V"] == various


def test_a_default_that_is_no_scalar_is_left_out() -> None:
    whole = {"openapi": "3.0.0", "info": {}, "paths": {}, "components": {"schemas": {"V": {"default": {}}}}}
    assert under(openapi_v3_protobuf.encoded(whole), 5, 1, 1, 2, 1, 33) == [b""]


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        ("", "application/json"),
        ("*/*", "application/json"),
        (ASKED_FOR, ANSWERED),
        (ANSWERED, ANSWERED),
        (f"{ASKED_FOR}, application/json", ANSWERED),
        (f"application/json, {ASKED_FOR}", "application/json"),
    ],
)
def test_the_accept_header_decides_on_the_encoding(openapi: OpenAPIV3, accept: str, content_type: str) -> None:
    answer = answered(openapi, accept=accept)
    assert (answer.status, answer.headers["Content-Type"]) == (200, content_type)
    assert answer.headers["Vary"] == "Accept"


def test_both_encodings_have_the_hash_of_the_json(openapi: OpenAPIV3) -> None:
    answer = answered(openapi, accept=ASKED_FOR, wanted_hash=document(openapi).hash)
    assert answer.headers["ETag"] == document(openapi).etag
    assert answer.headers["Cache-Control"] == "public, immutable"
    assert answered(openapi, accept=ASKED_FOR, if_none_match=document(openapi).etag).status == 304
    redirected = answered(openapi, accept=ASKED_FOR, wanted_hash="OLD")
    assert (redirected.status, redirected.headers["Content-Type"]) == (301, ANSWERED)
    assert openapi.answer("apis/nope/v1", now=NOW, accept=ASKED_FOR) is None


def test_the_protobuf_runtime_is_imported_when_it_is_needed() -> None:
    script = f"""
import sys
from datetime import UTC, datetime
from tests.apiserver.discovery.examples import discovery
openapi, now = discovery().openapi_v3, datetime.now(UTC)
openapi.answer({NAME!r}, now=now)
assert "google.protobuf" not in sys.modules
openapi.answer({NAME!r}, now=now, accept={ASKED_FOR!r})
assert "google.protobuf" in sys.modules
"""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60, env=environment)
