"""OpenAPI 3.0: an index at ``/openapi/v3`` and one document for each group version.

The index names each document with a hash of its content, so that clients may keep it for good. As in
kube-apiserver the index is sent as text, and a document as JSON or as protobuf, which client-go 0.24 and 0.25
ask for; ``openapi_v3_protobuf`` is imported when the first of them does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from email.utils import format_datetime
from typing import Any

import orjson

from clusterregistry.apiserver.discovery import documents
from clusterregistry.apiserver.discovery.documents import JSON, Answer, Document
from clusterregistry.apiserver.discovery.openapi_schema import V3, rendered, rendered_all
from clusterregistry.apiserver.discovery.operations import (
    JSON_PATCH,
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

PROTOBUF = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf"
PROTOBUF_ASKED_FOR = "application/com.github.proto-openapi.spec.v3@v1.0+protobuf"
"""What client-go asks for. It is no valid media type, so the answer is not called so."""

_A_YEAR = timedelta(days=365)


class OpenAPIV3:
    """The index and the documents, encoded as JSON on construction, and as protobuf when first asked for."""

    def __init__(self, served: Served, *, title: str, version: str) -> None:
        self._documents = {
            name: documents.tagged(_encoded(specification(contents, title=title, version=version)))
            for name, contents in served.by_document().items()
        }
        self._protobuf: dict[str, Document] = {}
        self.index = documents.tagged(_encoded(self._index()), content_type="text/plain; charset=utf-8")

    def document(self, name: str) -> Document | None:
        """A document by its name in the index, such as ``apis/GROUP/VERSION``."""
        return self._documents.get(name)

    def protobuf(self, name: str) -> Document:
        """A document that exists, as protobuf, with the entity tag of the JSON as in kube-apiserver."""
        if name not in self._protobuf:
            from clusterregistry.apiserver.discovery import openapi_v3_protobuf  # noqa: PLC0415 - dear to import, rarely needed

            body = self._documents[name].body
            encoded = openapi_v3_protobuf.encoded(orjson.loads(body))
            self._protobuf[name] = documents.tagged(encoded, content_type=PROTOBUF, tag_of=body)
        return self._protobuf[name]

    def answer(
        self, name: str, *, now: datetime, accept: str = "", wanted_hash: str = "", if_none_match: str = ""
    ) -> Answer | None:
        """The answer to ``/openapi/v3/NAME?hash=WANTED_HASH``; None when there is no such document.

        As kube-apiserver does: with the right hash the answer may be kept for good, with another one the
        client is sent to the right one, and without one nothing is said about caching.
        """
        document = self._documents.get(name)
        if document is None:
            return None
        headers = {"Vary": "Accept"}
        media_type = documents.preferred(accept, [JSON, PROTOBUF, PROTOBUF_ASKED_FOR])
        if media_type is None:
            return Answer(status=406, headers=headers)
        if media_type != JSON:
            document = self.protobuf(name)
        if wanted_hash and wanted_hash != document.hash:
            target = {"ETag": document.etag, "Content-Type": document.content_type, "Location": _url(name, document)}
            return Answer(status=301, headers=headers | target)
        if wanted_hash:
            headers["Cache-Control"] = "public, immutable"
            headers["Expires"] = format_datetime(now + _A_YEAR, usegmt=True)
        return documents.answer(document, if_none_match=if_none_match, headers=headers)

    def _index(self) -> dict[str, Any]:
        paths = {name: {"serverRelativeURL": _url(name, document)} for name, document in self._documents.items()}
        return {"paths": paths}


def specification(contents: Contents, *, title: str, version: str) -> dict[str, Any]:
    """The document as a dict."""
    return {
        "openapi": "3.0.0",
        "info": {"title": title, "version": version},
        "paths": {path.path: _path(path) for path in contents.paths},
        "components": {"schemas": rendered_all(contents.schemas, V3)},
    }


def _url(name: str, document: Document) -> str:
    return f"/openapi/v3/{name}?hash={document.hash}"


def _encoded(document: Mapping[str, Any]) -> bytes:
    return orjson.dumps(document, option=orjson.OPT_SORT_KEYS)


def _path(path: Path) -> dict[str, Any]:
    out: dict[str, Any] = {operation.method: _operation(operation) for operation in path.operations}
    if path.parameters:
        out["parameters"] = [_parameter(parameter) for parameter in path.parameters]
    return out


def _operation(operation: Operation) -> dict[str, Any]:
    out: dict[str, Any] = {
        "operationId": operation.id,
        "description": operation.description,
        "tags": [operation.tag],
        "responses": _responses(operation),
    }
    if operation.parameters:
        out["parameters"] = [_parameter(parameter) for parameter in operation.parameters]
    if operation.body is not None:
        out["requestBody"] = _request_body(operation.body)
    if operation.kind is not None:
        out["x-kubernetes-action"] = operation.action
        out["x-kubernetes-group-version-kind"] = operation.kind.wire()
    return out


def _parameter(parameter: Parameter) -> dict[str, Any]:
    schema = rendered(parameter.schema, V3)
    description = schema.pop("description", "")
    out = {"name": parameter.name, "in": parameter.location, "description": description, "schema": schema}
    return out | ({"required": True} if parameter.required else {})


def _request_body(body: Body) -> dict[str, Any]:
    content = {media_type: {"schema": _body_schema(body, media_type)} for media_type in body.media_types}
    return {"content": content, "required": body.required}


def _body_schema(body: Body, media_type: str) -> dict[str, Any]:
    return _JSON_PATCH_SCHEMA if media_type == JSON_PATCH else _reference(body.schema)


def _responses(operation: Operation) -> dict[str, Any]:
    answered = {str(code): _response(SUCCESSES[code], names) for code, names in operation.answers.items()}
    return answered | {"401": _response("Unauthorized", (STATUS,)), "default": _response("A failure", (STATUS,))}


def _response(description: str, names: Sequence[str]) -> dict[str, Any]:
    references = [_reference(name) for name in names]
    schema = references[0] if len(references) == 1 else {"anyOf": references}
    return {"description": description, "content": {media_type: {"schema": schema} for media_type in OBJECT_TYPES}}


def _reference(name: str) -> dict[str, Any]:
    return {"$ref": V3.reference_prefix + name}


_JSON_PATCH_SCHEMA: dict[str, Any] = {
    "type": "array",
    "description": "A JSON patch (RFC 6902).",
    "items": {
        "type": "object",
        "required": ["op", "path"],
        "properties": {
            "op": {"type": "string", "enum": ["add", "remove", "replace", "move", "copy", "test"]},
            "path": {"type": "string", "description": "A JSON pointer (RFC 6901)."},
            "from": {"type": "string", "description": "A JSON pointer, for move and copy."},
            "value": {"description": "Any value, for add, replace and test."},
        },
    },
}
