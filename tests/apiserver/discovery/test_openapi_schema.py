from __future__ import annotations

from clusterregistry.apimachinery.schema.schemas import Array, Object, Schema, String
from clusterregistry.apiserver.discovery.definitions import Reference
from clusterregistry.apiserver.discovery.openapi_schema import V2, V3, rendered
from tests.apiserver.discovery.examples import WIDGET_SCHEMA

SPEC = rendered(WIDGET_SCHEMA, V3)["properties"]["spec"]["properties"]
STATUS = rendered(WIDGET_SCHEMA, V3)["properties"]["status"]["properties"]


def test_single_values_have_their_limits() -> None:
    assert SPEC["key"] == {"type": "string", "format": "byte"}
    assert SPEC["size"] == {"type": "integer", "format": "int32", "minimum": 0, "maximum": 9}
    assert SPEC["sold"] == {"type": "boolean"}
    part = SPEC["parts"]["items"]["properties"]
    assert part["colour"] == {"type": "string", "enum": ["red", "green"], "description": "The colour."}
    assert part["serialNo"] == {"type": "string", "maxLength": 20}


def test_lists_say_how_they_merge() -> None:
    assert SPEC["parts"]["x-kubernetes-list-type"] == "atomic"
    assert "x-kubernetes-patch-strategy" not in SPEC["parts"]
    assert SPEC["tags"] == {
        "type": "array",
        "items": {"type": "string"},
        "x-kubernetes-list-type": "set",
        "x-kubernetes-patch-strategy": "merge",
    }
    conditions = {name: value for name, value in STATUS["conditions"].items() if name.startswith("x-")}
    assert conditions == {
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "x-kubernetes-patch-strategy": "merge",
        "x-kubernetes-patch-merge-key": "type",
    }


def test_maps_have_additional_properties() -> None:
    assert SPEC["options"] == {"type": "object", "additionalProperties": {"type": "string"}}


def test_a_number_or_string_has_alternatives_in_version_3_alone() -> None:
    extension = {"x-kubernetes-int-or-string": True}
    assert STATUS["amounts"]["additionalProperties"] == extension | {"anyOf": [{"type": "integer"}, {"type": "string"}]}
    old = rendered(WIDGET_SCHEMA, V2)["properties"]["status"]["properties"]
    assert old["amounts"]["additionalProperties"] == extension


def test_old_spellings_are_deprecated_properties_in_version_2_alone() -> None:
    old = rendered(WIDGET_SCHEMA, V2)["properties"]["spec"]["properties"]["parts"]["items"]
    assert old["properties"]["serialNumber"] == {
        "type": "string",
        "maxLength": 20,
        "description": "Deprecated: use serialNo.",
    }
    assert "serialNumber" not in SPEC["parts"]["items"]["properties"]


def test_a_field_with_an_old_spelling_is_not_required_in_version_2() -> None:
    assert "required" not in rendered(WIDGET_SCHEMA, V2)["properties"]["spec"]["properties"]["parts"]["items"]
    assert SPEC["parts"]["items"]["required"] == ["serialNo"]


def test_a_described_reference_keeps_its_description() -> None:
    described = Reference(name="N", description="Why.")
    assert rendered(described, V3) == {"allOf": [{"$ref": "#/components/schemas/N"}], "description": "Why."}
    assert rendered(described, V2) == {"$ref": "#/definitions/N", "description": "Why."}
    assert rendered(Array(items=Reference(name="N")), V3)["items"] == {"$ref": "#/components/schemas/N"}


def test_any_value_has_no_type() -> None:
    assert rendered(Schema(description="Anything."), V3) == {"description": "Anything."}


def test_an_object_without_fields_has_no_properties() -> None:
    assert rendered(Object(fields={}), V3) == {"type": "object"}


def test_rendering_does_not_share_what_it_returns() -> None:
    schema = String(enum=("a",))
    rendered(schema, V3)["enum"].append("b")
    assert rendered(schema, V3)["enum"] == ["a"]
