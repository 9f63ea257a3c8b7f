"""The Swagger document as the protobuf message that kubectl reads (gnostic's ``openapi.v2.Document``).

The message types are built from the table below, which has the fields that our documents use; the
numbers are those of gnostic's OpenAPIv2.proto. Maps are lists of named values there, and whatever has no
type of its own (vendor extensions, enum values) travels as YAML text, of which JSON is a part.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import orjson
from google.protobuf import json_format
from google.protobuf.message import Message

from clusterregistry.apimachinery.codecs.protobuf_tables import message_classes

_PACKAGE = "openapi.v2"

_PARAMETER_FIELDS = "maximum:{}:double minimum:{}:double max_length:{}:int64 enum:{}:[]Any"

_MESSAGES: dict[str, str] = {
    "Document": "swagger:1 info:2:Info paths:8:Paths definitions:9:Definitions",
    "Info": "title:1 version:2",
    "Paths": "path:2:[]NamedPathItem",
    "NamedPathItem": "name:1 value:2:PathItem",
    "PathItem": "get:2:Operation put:3:Operation post:4:Operation delete:5:Operation patch:8:Operation "
    "parameters:9:[]ParametersItem",
    "Operation": "tags:1:[]string description:3 operation_id:5 produces:6:[]string consumes:7:[]string "
    "parameters:8:[]ParametersItem responses:9:Responses schemes:10:[]string vendor_extension:13:[]NamedAny",
    "ParametersItem": "parameter:1:Parameter",
    "Parameter": "body_parameter:1:BodyParameter non_body_parameter:2:NonBodyParameter",
    "BodyParameter": "description:1 name:2 in:3 required:4:bool schema:5:Schema",
    "NonBodyParameter": "query_parameter_sub_schema:3:QueryParameter path_parameter_sub_schema:4:PathParameter",
    "QueryParameter": "required:1:bool in:2 description:3 name:4 type:6 format:7 "
    + _PARAMETER_FIELDS.format(11, 13, 15, 21),
    "PathParameter": "required:1:bool in:2 description:3 name:4 type:5 format:6 "
    + _PARAMETER_FIELDS.format(10, 12, 14, 20),
    "Responses": "response_code:1:[]NamedResponseValue",
    "NamedResponseValue": "name:1 value:2:ResponseValue",
    "ResponseValue": "response:1:Response",
    "Response": "description:1 schema:2:SchemaItem",
    "SchemaItem": "schema:1:Schema",
    "Schema": "_ref:1 format:2 description:4 maximum:7:double minimum:9:double max_length:11:int64 "
    "required:19:[]string enum:20:[]Any additional_properties:21:AdditionalPropertiesItem type:22:TypeItem "
    "items:23:ItemsItem properties:25:Properties vendor_extension:31:[]NamedAny",
    "AdditionalPropertiesItem": "schema:1:Schema",
    "TypeItem": "value:1:[]string",
    "ItemsItem": "schema:1:[]Schema",
    "Properties": "additional_properties:1:[]NamedSchema",
    "Definitions": "additional_properties:1:[]NamedSchema",
    "NamedSchema": "name:1 value:2:Schema",
    "NamedAny": "name:1 value:2:Any",
    "Any": "yaml:2",
}

JSONObject = Mapping[str, Any]
Shaped = dict[str, Any]


def encoded(specification: JSONObject) -> bytes:
    """The bytes of the message. Always the same for the same document: names are in order."""
    message = json_format.ParseDict(_document(specification), _document_class()())
    return message.SerializeToString(deterministic=True)


def _document(specification: JSONObject) -> Shaped:
    return {
        "swagger": specification["swagger"],
        "info": dict(specification["info"]),
        "paths": {"path": named(specification["paths"], _path_item)},
        "definitions": {"additional_properties": named(specification["definitions"], _schema)},
    }


def named(values: JSONObject, shape: Callable[[Any], Any]) -> list[Shaped]:
    """A map as a list of named values, in the order of the names."""
    return [{"name": name, "value": shape(values[name])} for name in sorted(values)]


def _path_item(item: JSONObject) -> Shaped:
    shaped: Shaped = {method: _operation(operation) for method, operation in item.items() if method != "parameters"}
    if "parameters" in item:
        shaped["parameters"] = [_parameter(parameter) for parameter in item["parameters"]]
    return shaped


def _operation(operation: JSONObject) -> Shaped:
    shaped = _without_extensions(operation)
    shaped["operation_id"] = shaped.pop("operationId")
    shaped["parameters"] = [_parameter(parameter) for parameter in operation.get("parameters", ())]
    shaped["responses"] = {"response_code": named(operation["responses"], _response)}
    return shaped


def _parameter(parameter: JSONObject) -> Shaped:
    if parameter["in"] == "body":
        return {"parameter": {"body_parameter": {**parameter, "schema": _schema(parameter["schema"])}}}
    location = f"{parameter['in']}_parameter_sub_schema"
    return {"parameter": {"non_body_parameter": {location: _limits(dict(parameter))}}}


def _response(response: JSONObject) -> Shaped:
    schema = {"schema": _schema(response["schema"])}
    return {"response": {"description": response["description"], "schema": schema}}


def _schema(schema: JSONObject) -> Shaped:
    shaped = _limits(_without_extensions(schema))
    if "$ref" in shaped:
        shaped["_ref"] = shaped.pop("$ref")
    if "type" in shaped:
        shaped["type"] = {"value": [schema["type"]]}
    if "items" in shaped:
        shaped["items"] = {"schema": [_schema(schema["items"])]}
    if "properties" in shaped:
        shaped["properties"] = {"additional_properties": named(schema["properties"], _schema)}
    if "additionalProperties" in shaped:
        shaped["additional_properties"] = {"schema": _schema(shaped.pop("additionalProperties"))}
    return shaped


def _limits(shaped: Shaped) -> Shaped:
    if "maxLength" in shaped:
        shaped["max_length"] = shaped.pop("maxLength")
    if "enum" in shaped:
        shaped["enum"] = [yaml_text(value) for value in shaped["enum"]]
    return shaped


def _without_extensions(value: JSONObject) -> Shaped:
    shaped = {name: inner for name, inner in value.items() if not name.startswith("x-")}
    extensions = {name: inner for name, inner in value.items() if name.startswith("x-")}
    if extensions:
        shaped["vendor_extension"] = named(extensions, yaml_text)
    return shaped


def yaml_text(value: Any) -> Shaped:
    """A value of any type: JSON, of which YAML is a superset."""
    return {"yaml": orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode() + "\n"}


@cache
def _document_class() -> type[Message]:
    return message_classes(_PACKAGE, _MESSAGES)["Document"]
