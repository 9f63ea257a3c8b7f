"""Validates roles and bindings, with kube-apiserver's messages.

All functions take objects that ``schema.native`` has decoded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from clusterregistry.api.rbac import GROUP
from clusterregistry.api.rbac.v1.types import CLUSTER_ROLE_KIND, ROLE_KIND
from clusterregistry.apimachinery.meta import field_errors, label_selector_objects
from clusterregistry.apimachinery.meta.field_errors import FieldError
from clusterregistry.apimachinery.meta.names import name_errors, path_segment_errors

Object = dict[str, Any]

_SUBJECT_KINDS = ("ServiceAccount", "User", "Group")


def validate_role(role: Object) -> list[FieldError]:
    return _rules_errors(role, namespaced=True)


def validate_cluster_role(role: Object) -> list[FieldError]:
    errors = _rules_errors(role, namespaced=False)
    aggregation = role.get("aggregationRule")
    return errors if aggregation is None else errors + list(aggregation_errors(aggregation))


def validate_role_binding(binding: Object) -> list[FieldError]:
    return _binding_errors(binding, role_kinds=(ROLE_KIND, CLUSTER_ROLE_KIND), namespaced=True)


def validate_cluster_role_binding(binding: Object) -> list[FieldError]:
    return _binding_errors(binding, role_kinds=(CLUSTER_ROLE_KIND,), namespaced=False)


def role_ref_change_errors(binding: Object, old: Object) -> list[FieldError]:
    """The role of a binding is immutable: a user who may change subjects must not be able to grant another role."""
    role_ref = binding["roleRef"]
    if role_ref == old["roleRef"]:
        return []
    shown = {"APIGroup": role_ref["apiGroup"], "Kind": role_ref["kind"], "Name": role_ref["name"]}
    return [field_errors.invalid("roleRef", shown, "cannot change roleRef")]


def _rules_errors(role: Object, *, namespaced: bool) -> list[FieldError]:
    return [
        error
        for index, rule in enumerate(role["rules"] or ())
        for error in _rule_errors(rule, f"rules[{index}]", namespaced=namespaced)
    ]


def _rule_errors(rule: Object, field: str, *, namespaced: bool) -> Iterator[FieldError]:
    if not rule["verbs"]:
        yield field_errors.required(f"{field}.verbs", "verbs must contain at least one value")
    if urls := rule.get("nonResourceURLs"):
        if namespaced:
            detail = "namespaced rules cannot apply to non-resource URLs"
            yield field_errors.invalid(f"{field}.nonResourceURLs", urls, detail)
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


def _binding_errors(binding: Object, *, role_kinds: Sequence[str], namespaced: bool) -> list[FieldError]:
    errors = list(_role_ref_errors(binding["roleRef"], role_kinds))
    for index, subject in enumerate(binding.get("subjects", ())):
        errors += _subject_errors(subject, f"subjects[{index}]", namespaced=namespaced)
    return errors


def _role_ref_errors(role_ref: Object, kinds: Sequence[str]) -> Iterator[FieldError]:
    if role_ref["apiGroup"] != GROUP:
        yield field_errors.not_supported("roleRef.apiGroup", role_ref["apiGroup"], [GROUP])
    if role_ref["kind"] not in kinds:
        yield field_errors.not_supported("roleRef.kind", role_ref["kind"], kinds)
    name = role_ref["name"]
    if not name:
        yield field_errors.required("roleRef.name")
    for text in path_segment_errors(name):
        yield field_errors.invalid("roleRef.name", name, text)


def _subject_errors(subject: Object, field: str, *, namespaced: bool) -> Iterator[FieldError]:
    kind, name = subject["kind"], subject["name"]
    if not name:
        yield field_errors.required(f"{field}.name")
    if kind == "ServiceAccount":
        yield from _service_account_errors(subject, field, namespaced=namespaced)
    elif kind in _SUBJECT_KINDS:
        if subject["apiGroup"] != GROUP:
            yield field_errors.not_supported(f"{field}.apiGroup", subject["apiGroup"], [GROUP])
    else:
        yield field_errors.not_supported(f"{field}.kind", kind, _SUBJECT_KINDS)


def _service_account_errors(subject: Object, field: str, *, namespaced: bool) -> Iterator[FieldError]:
    name, group = subject["name"], subject.get("apiGroup", "")
    if name:
        for text in name_errors(name):
            yield field_errors.invalid(f"{field}.name", name, text)
    if group:
        yield field_errors.not_supported(f"{field}.apiGroup", group, [""])
    # Within a namespace, a service account without one is of that namespace.
    if not namespaced and not subject.get("namespace"):
        yield field_errors.required(f"{field}.namespace")
