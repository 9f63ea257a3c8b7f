"""The defaults of bindings: the API group of roles, users and groups."""

from __future__ import annotations

from typing import Any

from clusterregistry.api.rbac import GROUP

_WITH_GROUP = ("User", "Group")


def set_binding_defaults(binding: dict[str, Any]) -> None:
    """Sets the defaults of a decoded binding, in place."""
    role_ref = binding["roleRef"]
    role_ref["apiGroup"] = role_ref["apiGroup"] or GROUP
    for subject in binding.get("subjects", ()):
        if subject["kind"] in _WITH_GROUP:
            subject["apiGroup"] = subject.get("apiGroup") or GROUP
