"""A document of OpenAPI 3 as the protobuf message that client-go 0.24 and 0.25 read (gnostic's openapi.v3.Document).

As for version 2, the message types are built from a table, with the numbers of gnostic's OpenAPIv3.proto, and whatever
has no type of its own is YAML text. Where OpenAPI allows a reference, the message has one of two fields.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from google.protobuf import json_format
from google.protobuf.message import Message

from clusterregistry.apimachinery.codecs.protobuf_tables import message_classes
from clusterregistry.apiserver.discovery.openapi_v2_protobuf import JSONObject, Shaped, named, yaml_text

_PACKAGE = "openapi.v3"

_MESSAGES: dict[str, str] = {
    "Document": "openapi:1 info:2:Info paths:4:Paths components:5:Components",
    "Info": "title:1 version:6",
    "Paths": "path:1:[]NamedPathItem",
    "NamedPathItem": "name:1 value:2:PathItem",
    "PathItem": "get:4:Operation put:5:Operation post:6:Operation delete:7:Operation patch:10:Operation "
    "parameters:13:[]ParameterOrReference",
    "Operation": "tags:1:[]string description:3 operation_id:5 parameters:6:[]ParameterOrReference "
    "request_body:7:RequestBodyOrReference responses:8:Responses specification_extension:13:[]NamedAny",
    "ParameterOrReference": "parameter:1:Parameter",
    "Parameter": "name:1 in:2 description:3 required:4:bool schema:10:SchemaOrReference",
    "RequestBodyOrReference": "request_body:1:RequestBody",
    "RequestBody": "content:2:MediaTypes required:3:bool",
    "MediaTypes": "additional_properties:1:[]NamedMediaType",
    "NamedMediaType": "name:1 value:2:MediaType",
    "MediaType": "schema:1:SchemaOrReference",
    "Responses": "default:1:ResponseOrReference response_or_reference:2:[]NamedResponseOrReference",
    "NamedResponseOrReference": "name:1 value:2:ResponseOrReference",
    "ResponseOrReference": "response:1:Response",
    "Response": "description:1 content:3:MediaTypes",
    "Components": "schemas:1:SchemasOrReferences",
    "SchemasOrReferences": "additional_properties:1:[]NamedSchemaOrReference",
    "NamedSchemaOrReference": "name:1 value:2:SchemaOrReference",
    "SchemaOrReference": "schema:1:Schema reference:2:Reference",
    "Reference": "_ref:1",
    "Schema": "nullable:1:bool deprecated:8:bool title:9 multiple_of:10:double maximum:11:double "
    "exclusive_maximum:12:bool minimum:13:double exclusive_minimum:14:bool max_length:15:int64 min_length:16:int64 "
    "pattern:17 max_items:18:int64 min_items:19:int64 unique_items:20:bool max_properties:21:int64 "
    "min_properties:22:int64 required:23:[]string enum:24:[]Any type:25 all_of:26:[]SchemaOrReference "
    "one_of:27:[]SchemaOrReference any_of:28:[]SchemaOrReference not:29:Schema items:30:ItemsItem "
    "properties:31:SchemasOrReferences additional_properties:32:AdditionalPropertiesItem default:33:DefaultType "
    "description:34 format:35 specification_extension:36:[]NamedAny",
    "ItemsItem": "schema_or_reference:1:[]SchemaOrReference",
    "AdditionalPropertiesItem": "schema_or_reference:1:SchemaOrReference boolean:2:?bool",
    "DefaultType": "number:1:?double boolean:2:?bool string:3:?string",
    "NamedAny": "name:1 value:2:Any",
    "Any": "yaml:2",
}


def encoded(specification: JSONObject) -> bytes:
    """The bytes of the message. Always the same for the same document: names are in order."""
    message = json_format.ParseDict(_document(specification), _document_class()())
    return message.SerializeToString(deterministic=True)


def _document(specification: JSONObject) -> Shaped:
    schemas = named(specification["components"]["schemas"], _schema_or_reference)
    return {
        "openapi": specification["openapi"],
        "info": dict(specification["info"]),
        "paths": {"path": named(specification["paths"], _path_item)},
        "components": {"schemas": {"additional_properties": schemas}},
    }


def _path_item(item: JSONObject) -> Shaped:
    shaped: Shaped = {method: _operation(operation) for method, operation in item.items() if method != "parameters"}
    if "parameters" in item:
        shaped["parameters"] = [_parameter(parameter) for parameter in item["parameters"]]
    return shaped


def _operation(operation: JSONObject) -> Shaped:
    shaped = _without_extensions(operation)
    shaped["parameters"] = [_parameter(parameter) for parameter in operation.get("parameters", ())]
    if "requestBody" in operation:
        body = operation["requestBody"]
        shaped["requestBody"] = {"request_body": {**body, "content": _media_types(body["content"])}}
    others = {code: response for code, response in operation["responses"].items() if code != "default"}
    shaped["responses"] = {
        "default": _response(operation["responses"]["default"]),
        "response_or_reference": named(others, _response),
    }
    return shaped


def _parameter(parameter: JSONObject) -> Shaped:
    return {"parameter": {**parameter, "schema": _schema_or_reference(parameter["schema"])}}


def _response(response: JSONObject) -> Shaped:
    return {"response": {**response, "content": _media_types(response["content"])}}


def _media_types(content: JSONObject) -> Shaped:
    return {
        "additional_properties": named(content, lambda value: {"schema": _schema_or_reference(value["schema"])}),
    }


def _schema_or_reference(schema: JSONObject) -> Shaped:
    if "$ref" in schema:
        return {"reference": {"_ref": schema["$ref"]}}
    return {"schema": _schema(schema)}


def _schema(schema: JSONObject) -> Shaped:
    shaped = _without_extensions(schema)
    for name in ("allOf", "oneOf", "anyOf"):
        if name in shaped:
            shaped[name] = [_schema_or_reference(each) for each in schema[name]]
    if "not" in shaped:
        shaped["not"] = _schema(schema["not"])
    if "enum" in shaped:
        shaped["enum"] = [yaml_text(value) for value in schema["enum"]]
    if "items" in shaped:
        shaped["items"] = {"schema_or_reference": [_schema_or_reference(schema["items"])]}
    if "properties" in shaped:
        shaped["properties"] = {"additional_properties": named(schema["properties"], _schema_or_reference)}
    if "additionalProperties" in shaped:
        shaped["additionalProperties"] = _additional_properties(schema["additionalProperties"])
    if "default" in shaped:
        shaped["default"] = _default(schema["default"])
    return shaped


def _additional_properties(value: JSONObject | bool) -> Shaped:  # noqa: FBT001 - as the document has it
    return {"boolean": value} if isinstance(value, bool) else {"schema_or_reference": _schema_or_reference(value)}


def _default(value: Any) -> Shaped:
    """A scalar. The message has no other defaults, and gnostic leaves them out too."""
    match value:
        case bool():
            return {"boolean": value}
        case int() | float():
            return {"number": value}
        case str():
            return {"string": value}
    return {}


def _without_extensions(value: JSONObject) -> Shaped:
    shaped = {name: inner for name, inner in value.items() if not name.startswith("x-")}
    extensions = {name: inner for name, inner in value.items() if name.startswith("x-")}
    if extensions:
        shaped["specification_extension"] = named(extensions, yaml_text)
    return shaped


@cache
def _document_class() -> type[Message]:
    return message_classes(_PACKAGE, _MESSAGES)["Document"]
