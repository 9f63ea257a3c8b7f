"""Label selectors as objects with ``matchLabels`` and ``matchExpressions``, as in many kinds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from clusterregistry.apimachinery.meta import field_errors
from clusterregistry.apimachinery.meta.field_errors import FieldError
from clusterregistry.apimachinery.meta.label_selectors import LabelSelector, Requirement
from clusterregistry.apimachinery.meta.names import label_key_errors, label_value_errors
from clusterregistry.apimachinery.meta.object_meta_validation import validate_labels
from clusterregistry.apimachinery.schema.schemas import Array, Map, Object, String

_OPERATORS = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!"}
_WITH_VALUES = ("In", "NotIn")

REQUIREMENT = Object(
    type_name="v1.LabelSelectorRequirement",
    description="One condition on one label.",
    fields={
        "key": String(description="The key of the label."),
        "operator": String(
            type_name="v1.LabelSelectorOperator",
            description="How the label relates to the values: In, NotIn, Exists or DoesNotExist.",
        ),
        "values": Array(
            items=String(), description="The values for In and NotIn; there must be none for the other operators."
        ),
    },
    required=("key", "operator"),
)

LABEL_SELECTOR = Object(
    type_name="v1.LabelSelector",
    description="Selects objects by their labels: all conditions must hold. An empty one selects everything.",
    atomic=True,
    fields={
        "matchLabels": Map(values=String(), description="Labels that an object must have, with these values."),
        "matchExpressions": Array(items=REQUIREMENT, description="Further conditions on labels."),
    },
)


def validate(selector: dict[str, Any], field: str) -> list[FieldError]:
    """Validates a decoded selector, with the messages of ``k8s.io/apimachinery/pkg/apis/meta/v1/validation``."""
    errors = validate_labels(selector.get("matchLabels", {}), f"{field}.matchLabels")
    for index, requirement in enumerate(selector.get("matchExpressions", ())):
        errors += _validate_requirement(requirement, f"{field}.matchExpressions[{index}]")
    return errors


def _validate_requirement(requirement: dict[str, Any], field: str) -> Iterator[FieldError]:
    key, operator, values = requirement["key"], requirement["operator"], requirement.get("values", ())
    if operator in _WITH_VALUES and not values:
        yield field_errors.required(f"{field}.values", "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in _OPERATORS and operator not in _WITH_VALUES and values:
        detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
        yield field_errors.forbidden(f"{field}.values", detail)
    elif operator not in _OPERATORS:
        yield field_errors.invalid(f"{field}.operator", operator, "not a valid selector operator")
    for text in label_key_errors(key):
        yield field_errors.invalid(f"{field}.key", key, text)
    for index, value in enumerate(values):
        for text in label_value_errors(value):
            yield field_errors.invalid(f"{field}.values[{index}]", value, text)


def label_selector(selector: dict[str, Any]) -> LabelSelector:
    """A valid selector, ready to match."""
    equal = [Requirement(key, "=", (value,)) for key, value in selector.get("matchLabels", {}).items()]
    further = [
        Requirement(each["key"], _OPERATORS[each["operator"]], tuple(sorted(each.get("values", ()))))
        for each in selector.get("matchExpressions", ())
    ]
    return LabelSelector((*equal, *further))
