"""Validates ClusterRoles and ClusterRoleBindings, with kube-apiserver's messages.

All functions take objects that ``schema.native`` has decoded.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from clusterregistry.api.rbac import GROUP
from clusterregistry.api.rbac.v1.types import CLUSTER_ROLE_KIND
from clusterregistry.apimachinery.meta import field_errors, label_selector_objects
from clusterregistry.apimachinery.meta.field_errors import FieldError
from clusterregistry.apimachinery.meta.names import name_errors, path_segment_errors

Object = dict[str, Any]

_SUBJECT_KINDS = ("ServiceAccount", "User", "Group")


def validate_cluster_role(role: Object) -> list[FieldError]:
    errors = [
        error for index, rule in enumerate(role["rules"] or ()) for error in _rule_errors(rule, f"rules[{index}]")
    ]
    aggregation = role.get("aggregationRule")
    return errors if aggregation is None else errors + list(aggregation_errors(aggregation))


def validate_cluster_role_binding(binding: Object) -> list[FieldError]:
    errors = list(_role_ref_errors(binding["roleRef"]))
    for index, subject in enumerate(binding.get("subjects", ())):
        errors += _subject_errors(subject, f"subjects[{index}]")
    return errors


def validate_cluster_role_binding_update(binding: Object, old: Object) -> list[FieldError]:
    """The role of a binding is immutable: a user who may change subjects must not be able to grant another role."""
    role_ref, errors = binding["roleRef"], validate_cluster_role_binding(binding)
    if role_ref != old["roleRef"]:
        shown = {"APIGroup": role_ref["apiGroup"], "Kind": role_ref["kind"], "Name": role_ref["name"]}
        errors.append(field_errors.invalid("roleRef", shown, "cannot change roleRef"))
    return errors


def _rule_errors(rule: Object, field: str) -> Iterator[FieldError]:
    if not rule["verbs"]:
        yield field_errors.required(f"{field}.verbs", "verbs must contain at least one value")
    if urls := rule.get("nonResourceURLs"):
        if any(rule.get(name) for name in ("apiGroups", "resources", "resourceNames")):
            detail = "rules cannot apply to both regular resources and non-resource URLs"
            yield field_errors.invalid(f"{field}.nonResourceURLs", urls, detail)
        return
    if not rule.get("apiGroups"):
        yield field_errors.required(f"{field}.apiGroups", "resource rules must supply at least one api group")
    if not rule.get("resources"):
        yield field_errors.required(f"{field}.resources", "resource rules must supply at least one resource")


def aggregation_errors(aggregation: Object) -> Iterator[FieldError]:
    """The errors of an ``aggregationRule``."""
    field = "aggregationRule.clusterRoleSelectors"
    selectors = aggregation.get("clusterRoleSelectors", ())
    if not selectors:
        detail = "at least one clusterRoleSelector required if aggregationRule is non-nil"
        yield field_errors.required(field, detail)
    for index, selector in enumerate(selectors):
        wrong = label_selector_objects.validate(selector, f"{field}[{index}]")
        yield from wrong
        if wrong:
            yield field_errors.invalid(f"{field}[{index}]", None, "invalid label selector.")


def _role_ref_errors(role_ref: Object) -> Iterator[FieldError]:
    if role_ref["apiGroup"] != GROUP:
        yield field_errors.not_supported("roleRef.apiGroup", role_ref["apiGroup"], [GROUP])
    if role_ref["kind"] != CLUSTER_ROLE_KIND:
        yield field_errors.not_supported("roleRef.kind", role_ref["kind"], [CLUSTER_ROLE_KIND])
    name = role_ref["name"]
    if not name:
        yield field_errors.required("roleRef.name")
    for text in path_segment_errors(name):
        yield field_errors.invalid("roleRef.name", name, text)


def _subject_errors(subject: Object, field: str) -> Iterator[FieldError]:
    kind, name = subject["kind"], subject["name"]
    if not name:
        yield field_errors.required(f"{field}.name")
    if kind == "ServiceAccount":
        yield from _service_account_errors(subject, field)
    elif kind in _SUBJECT_KINDS:
        if subject["apiGroup"] != GROUP:
            yield field_errors.not_supported(f"{field}.apiGroup", subject["apiGroup"], [GROUP])
    else:
        yield field_errors.not_supported(f"{field}.kind", kind, _SUBJECT_KINDS)


def _service_account_errors(subject: Object, field: str) -> Iterator[FieldError]:
    name, group = subject["name"], subject.get("apiGroup", "")
    if name:
        for text in name_errors(name):
            yield field_errors.invalid(f"{field}.name", name, text)
    if group:
        yield field_errors.not_supported(f"{field}.apiGroup", group, [""])
    if not subject.get("namespace"):
        yield field_errors.required(f"{field}.namespace")
