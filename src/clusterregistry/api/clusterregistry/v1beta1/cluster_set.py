"""The ClusterSet kind: its schema, which all versions share, and the validation that a schema cannot express.

A set names clusters by a label selector and by their names; a cluster is a member if either names it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from clusterregistry.api.clusterregistry import GROUP
from clusterregistry.api.clusterregistry.v1beta1.types import CONDITION
from clusterregistry.apimachinery.meta import field_errors, label_selector_objects
from clusterregistry.apimachinery.meta.field_errors import FieldError
from clusterregistry.apimachinery.meta.names import name_errors
from clusterregistry.apimachinery.schema.schemas import Array, Integer, Object, Schema, String

KIND = "ClusterSet"

MOST_NAMES = 1000
"""Names in ``spec.clusters``."""

MOST_CONDITIONS, MOST_VALUES = 100, 1000
"""Conditions of a selector, and values in all of them: each is looked at when the labels of a cluster change."""


def _inline(schema: Schema) -> Schema:
    """The schema without the names of Go types, which only native kinds have."""
    schema = replace(schema, type_name="")
    if isinstance(schema, Object):
        return replace(schema, fields={name: _inline(field) for name, field in schema.fields.items()})
    return replace(schema, items=_inline(schema.items)) if isinstance(schema, Array) else schema


SPEC = Object(
    description="Spec says which clusters are members: those that the selector selects, and those that are named.",
    fields={
        "selector": replace(
            _inline(label_selector_objects.LABEL_SELECTOR),
            description="Selector selects clusters by their labels: all conditions must hold. An empty one selects "
            "every cluster; without one, only the named clusters are members. "
            f"At most {MOST_CONDITIONS} conditions with {MOST_VALUES} values.",
        ),
        "clusters": Array(
            description=f"Clusters are the names of clusters that are members, at most {MOST_NAMES}. A name counts "
            "as soon as there is a cluster with it.",
            items=String(),
            list_type="set",
        ),
    },
)

STATUS = Object(
    description="Status is what the registry last found out about the set.",
    fields={
        "clusters": Integer(format="int32", minimum=0, description="Clusters is the number of members."),
        "observedGeneration": Integer(
            format="int64", minimum=0, description="The metadata.generation of the spec that was looked at."
        ),
        "conditions": Array(
            description="Conditions are the aspects of the state of the set, one of each type.",
            items=replace(CONDITION, description="Condition is one aspect of the state of the set, as in meta/v1."),
            list_type="map",
            map_keys=("type",),
        ),
    },
)

CLUSTER_SET = Object(
    description="ClusterSet is a group of clusters, by their labels and by their names. Rights can be given on its "
    "members.",
    fields={"spec": SPEC, "status": STATUS},
)


def in_version(cluster_set: dict[str, Any], *, version: str) -> dict[str, Any]:
    """The set in a version of the group: they differ in name alone."""
    return {**cluster_set, "apiVersion": f"{GROUP}/{version}"}


def validate_spec(cluster_set: dict[str, Any]) -> list[FieldError]:
    """The errors in the spec that the schema does not find. Values of a wrong type are skipped: it reports them."""
    spec = cluster_set.get("spec")
    given = spec if isinstance(spec, dict) else {}
    return [*_selector_errors(given.get("selector")), *_name_errors(given.get("clusters"))]


def _selector_errors(selector: Any, path: str = "spec.selector") -> list[FieldError]:
    if not _is_label_selector(selector):
        return []
    expressions = selector.get("matchExpressions", ())
    conditions = len(selector.get("matchLabels", {})) + len(expressions)
    if conditions > MOST_CONDITIONS:
        return [field_errors.too_many(path, conditions, MOST_CONDITIONS)]
    values = sum(len(each.get("values", ())) for each in expressions)
    if values > MOST_VALUES:
        return [field_errors.too_many(f"{path}.matchExpressions", values, MOST_VALUES)]
    return label_selector_objects.validate(selector, path)


def _is_label_selector(value: Any) -> bool:
    """Whether a value has the types of a label selector."""
    if not isinstance(value, dict):
        return False
    labels, expressions = value.get("matchLabels", {}), value.get("matchExpressions", [])
    if not isinstance(labels, dict) or not isinstance(expressions, list):
        return False
    return _are_texts(labels.values()) and all(map(_is_requirement, expressions))


def _is_requirement(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    values = value.get("values", [])
    return _are_texts((value.get("key"), value.get("operator"))) and isinstance(values, list) and _are_texts(values)


def _are_texts(values: Any) -> bool:
    return all(isinstance(each, str) for each in values)


def _name_errors(names: Any, path: str = "spec.clusters") -> Iterator[FieldError]:
    if not isinstance(names, list):
        return
    if len(names) > MOST_NAMES:
        yield field_errors.too_many(path, len(names), MOST_NAMES)
        return
    for index, name in enumerate(names):
        if isinstance(name, str) and (wrong := name_errors(name)):
            yield field_errors.invalid(f"{path}[{index}]", name, "; ".join(wrong))
