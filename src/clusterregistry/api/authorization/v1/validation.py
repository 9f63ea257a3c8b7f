"""Validates access reviews, with kube-apiserver's messages."""

from __future__ import annotations

from typing import Any

from clusterregistry.apimachinery.meta import field_errors, names
from clusterregistry.apimachinery.meta.field_errors import ENOUGH, FieldError

Object = dict[str, Any]

_RESOURCE = "spec.resourceAttributes"
_PATH = "spec.nonResourceAttributes"


def validate_self_access(spec: Object) -> list[FieldError]:
    """Requires exactly one of the two kinds of attributes."""
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    found: list[FieldError] = []
    if resource is not None and path is not None:
        detail = "cannot be specified in combination with resourceAttributes"
        found.append(field_errors.invalid(_PATH, _shown_path(path), detail))
    if resource is None and path is None:
        detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        found.append(field_errors.invalid(_RESOURCE, None, detail))
    return found + _validate_selectors(resource or {})


def validate_access(spec: Object) -> list[FieldError]:
    """Like ``validate_self_access``, and requires a user or a group."""
    found = validate_self_access(spec)
    if not spec.get("user") and not spec.get("groups"):
        found.append(field_errors.invalid("spec.user", "", "at least one of user or group must be specified"))
    return found


def validate_local_access(spec: Object, metadata: Object) -> list[FieldError]:
    """Like ``validate_access``, for resources in the namespace of the review, which is all of its metadata."""
    found = validate_access(spec)
    if not metadata.keys() <= {"managedFields", "namespace"}:
        found.append(field_errors.invalid("metadata", metadata, "must be empty except for namespace"))
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if resource is not None and resource.get("namespace", "") != metadata["namespace"]:
        detail = "must match metadata.namespace"
        found.append(field_errors.invalid(f"{_RESOURCE}.namespace", resource.get("namespace", ""), detail))
    if path is not None:
        found.append(field_errors.invalid(_PATH, _shown_path(path), "disallowed on this kind of request"))
    return found


def validate_metadata(metadata: Object) -> list[FieldError]:
    """A review has no metadata, except for the managed fields of the server."""
    if metadata.keys() <= {"managedFields"}:
        return []
    return [field_errors.invalid("metadata", metadata, "must be empty")]


def _shown_path(attributes: Object) -> Object:
    """The attributes as Go prints the struct."""
    return {"Path": attributes.get("path", ""), "Verb": attributes.get("verb", "")}


def _validate_selectors(attributes: Object) -> list[FieldError]:
    found: list[FieldError] = []
    for name in ("fieldSelector", "labelSelector"):
        selector = attributes.get(name)
        if selector is not None:
            found += _validate_selector(selector, f"{_RESOURCE}.{name}", labels=name == "labelSelector")
    return found


def _validate_selector(selector: Object, field: str, *, labels: bool) -> list[FieldError]:
    raw, requirements = selector.get("rawSelector"), selector.get("requirements")
    found: list[FieldError] = []
    if raw and requirements:
        detail = "may not specified at the same time as requirements"
        found.append(field_errors.invalid(f"{field}.rawSelector", raw, detail))
    if not raw and not requirements:
        detail = f"when {field} is specified, requirements or rawSelector is required"
        found.append(field_errors.required(f"{field}.requirements", detail))
    validate = _validate_label_requirement if labels else _validate_field_requirement
    for index, requirement in enumerate(requirements or ()):
        found += validate(requirement, f"{field}.requirements[{index}]")
        if len(found) >= ENOUGH:
            break
    return found


def _validate_field_requirement(requirement: Object, field: str) -> list[FieldError]:
    found = [] if requirement["key"] else [field_errors.required(f"{field}.key", "must be specified")]
    return found + _validate_number_of_values(requirement, field)


def _validate_label_requirement(requirement: Object, field: str) -> list[FieldError]:
    key, values = requirement["key"], requirement.get("values", ())
    wrong_keys = [field_errors.invalid(f"{field}.key", key, message) for message in names.label_key_errors(key)]
    wrong_values = [
        field_errors.invalid(f"{field}.values[{index}]", value, message)
        for index, value in enumerate(values)
        for message in names.label_value_errors(value)
    ]
    return _validate_number_of_values(requirement, field) + wrong_keys + wrong_values


def _validate_number_of_values(requirement: Object, field: str) -> list[FieldError]:
    """Unknown operators pass: later versions may have them."""
    operator, values = requirement["operator"], requirement.get("values")
    if operator in ("In", "NotIn") and not values:
        return [field_errors.required(f"{field}.values", "must be specified when `operator` is 'In' or 'NotIn'")]
    if operator in ("Exists", "DoesNotExist") and values:
        detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
        return [field_errors.forbidden(f"{field}.values", detail)]
    return []
