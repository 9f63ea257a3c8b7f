"""Validates Leases, with kube-apiserver's messages."""

from __future__ import annotations

from typing import Any

from clusterregistry.apimachinery.meta import field_errors
from clusterregistry.apimachinery.meta.field_errors import FieldError

Object = dict[str, Any]


def validate_lease(lease: Object) -> list[FieldError]:
    """Everything that is wrong with the spec of a decoded lease, the same for a new and for a changed one."""
    spec, errors = lease["spec"], list[FieldError]()
    if spec.get("leaseDurationSeconds", 1) <= 0:
        value = spec["leaseDurationSeconds"]
        errors.append(field_errors.invalid("spec.leaseDurationSeconds", value, "must be greater than 0"))
    if spec.get("leaseTransitions", 0) < 0:
        value = spec["leaseTransitions"]
        errors.append(field_errors.invalid("spec.leaseTransitions", value, "must be greater than or equal to 0"))
    return errors
