"""Swagger 2.0 at ``/openapi/v2``, as JSON and as protobuf.

kubectl up to 1.26 reads nothing else, and only as protobuf; ``openapi_v2_protobuf`` is imported when the
first of them asks.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import orjson

from clusterregistry.apiserver.discovery import documents
from clusterregistry.apiserver.discovery.documents import JSON, Answer, Document
from clusterregistry.apiserver.discovery.openapi_schema import V2, rendered, rendered_all
from clusterregistry.apiserver.discovery.operations import (
    OBJECT_TYPES,
    STATUS,
    SUCCESSES,
    Body,
    Contents,
    Operation,
    Parameter,
    Path,
    Served,
)

PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
PROTOBUF_ASKED_FOR = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
"""What kubectl asks for. It is no valid media type, so the answer is not called so."""


class OpenAPIV2:
    """The document in both encodings, each made when first asked for."""

    def __init__(self, served: Served, *, title: str, version: str) -> None:
        self._specification = specification(served.all_in_one(), title=title, version=version)

    @cached_property
    def json(self) -> Document:
        return documents.tagged(orjson.dumps(self._specification, option=orjson.OPT_SORT_KEYS))

    @cached_property
    def protobuf(self) -> Document:
        from clusterregistry.apiserver.discovery import openapi_v2_protobuf  # noqa: PLC0415 - dear to import, rarely needed

        return documents.tagged(
            openapi_v2_protobuf.encoded(self._specification), content_type=PROTOBUF, tag_of=self.json.body
        )

    def answer(self, *, accept: str = "", if_none_match: str = "") -> Answer:
        """The answer to ``/openapi/v2``; 406 without a body when neither encoding is wanted, as kube-apiserver does."""
        headers = {"Vary": "Accept"}
        media_type = documents.preferred(accept, [JSON, PROTOBUF_ASKED_FOR, PROTOBUF])
        if media_type is None:
            return Answer(status=406, headers=headers)
        document = self.json if media_type == JSON else self.protobuf
        return documents.answer(document, if_none_match=if_none_match, headers=headers)


def specification(contents: Contents, *, title: str, version: str) -> dict[str, Any]:
    """The document as a dict."""
    return {
        "swagger": "2.0",
        "info": {"title": title, "version": version},
        "paths": {path.path: _path(path) for path in contents.paths},
        "definitions": rendered_all(contents.schemas, V2),
    }


def _path(path: Path) -> dict[str, Any]:
    out: dict[str, Any] = {operation.method: _operation(operation) for operation in path.operations}
    if path.parameters:
        out["parameters"] = [_parameter(parameter) for parameter in path.parameters]
    return out


def _operation(operation: Operation) -> dict[str, Any]:
    parameters = [_parameter(parameter) for parameter in operation.parameters]
    out: dict[str, Any] = {
        "operationId": operation.id,
        "description": operation.description,
        "tags": [operation.tag],
        "produces": list(OBJECT_TYPES),
        "schemes": ["https"],
        "responses": _responses(operation),
    }
    if operation.body is not None:
        out["consumes"] = list(operation.body.media_types)
        parameters.append(_body(operation.body))
    if parameters:
        out["parameters"] = parameters
    if operation.kind is not None:
        out["x-kubernetes-action"] = operation.action
        out["x-kubernetes-group-version-kind"] = operation.kind.wire()
    return out


def _parameter(parameter: Parameter) -> dict[str, Any]:
    out = {"name": parameter.name, "in": parameter.location} | rendered(parameter.schema, V2)
    return out | ({"required": True} if parameter.required else {})


def _body(body: Body) -> dict[str, Any]:
    out: dict[str, Any] = {"name": "body", "in": "body", "schema": _reference(body.schema)}
    return out | ({"required": True} if body.required else {})


def _responses(operation: Operation) -> dict[str, Any]:
    # a version 2 response has one schema: the usual one, which is the first
    answered = {str(code): _response(SUCCESSES[code], names[0]) for code, names in operation.answers.items()}
    return answered | {"401": _response("Unauthorized", STATUS), "default": _response("A failure", STATUS)}


def _response(description: str, name: str) -> dict[str, Any]:
    return {"description": description, "schema": _reference(name)}


def _reference(name: str) -> dict[str, Any]:
    return {"$ref": V2.reference_prefix + name}
