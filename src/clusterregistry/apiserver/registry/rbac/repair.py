"""What a default object must have besides what somebody made of it: as kube-apiserver reconciles its own.

Nothing that was added is taken away, and an object whose ``AUTO_UPDATE`` annotation is "false" stays as it is.
"""

from __future__ import annotations

from typing import Any

from clusterregistry.apiserver.authz.rbac.coverage import compacted, not_covered
from clusterregistry.apiserver.authz.rbac.rules import Rule, rules_from_wire
from clusterregistry.apiserver.registry.rbac.default_objects import AUTO_UPDATE

Object = dict[str, Any]


def repaired_role(present: Object, wanted: Object) -> Object:
    """``present`` with the rules, or else the selectors, that it lacks."""
    if left_alone(present):
        return present
    repaired = _with_metadata(present, wanted)
    if "aggregationRule" in wanted:
        return {
            **repaired,
            "aggregationRule": _with_selectors(present.get("aggregationRule"), wanted["aggregationRule"]),
        }
    missing = not_covered(rules_from_wire(wanted["rules"]), held=rules_from_wire(present["rules"]))
    return {**repaired, "rules": [*(present["rules"] or ()), *map(_wire, compacted(missing))] or None}


def repaired_binding(present: Object, wanted: Object) -> Object:
    """``present``, which is of the wanted role, with the subjects that it lacks."""
    if left_alone(present):
        return present
    subjects = present.get("subjects", [])
    missing = [each for each in wanted["subjects"] if each not in subjects]
    return {**_with_metadata(present, wanted), "subjects": [*subjects, *missing]}


def left_alone(present: Object) -> bool:
    """Whether somebody asked that this default object be theirs."""
    annotations = present["metadata"].get("annotations", {})
    return bool(annotations.get(AUTO_UPDATE) == "false")


def _with_metadata(present: Object, wanted: Object) -> Object:
    metadata = {**present["metadata"]}
    for part in ("labels", "annotations"):
        metadata[part] = wanted["metadata"][part] | metadata.get(part, {})
    return {**present, "metadata": metadata}


def _with_selectors(present: Object | None, wanted: Object) -> Object:
    selectors = (present or {}).get("clusterRoleSelectors", [])
    missing = [each for each in wanted["clusterRoleSelectors"] if each not in selectors]
    return {"clusterRoleSelectors": [*selectors, *missing]}


def _wire(rule: Rule) -> Object:
    parts = {
        "verbs": rule.verbs,
        "apiGroups": rule.api_groups,
        "resources": rule.resources,
        "resourceNames": rule.resource_names,
        "nonResourceURLs": rule.non_resource_urls,
    }
    return {name: list(values) for name, values in parts.items() if values}
