"""What a client may leave out of a ClusterRoleBinding: the group of roles, users and groups."""

from __future__ import annotations

from typing import Any

from clusterregistry.api.rbac import GROUP

_WITH_GROUP = ("User", "Group")


def set_binding_defaults(binding: dict[str, Any]) -> None:
    """Fills in, in place, what a client left out of a decoded binding."""
    role_ref = binding["roleRef"]
    role_ref["apiGroup"] = role_ref["apiGroup"] or GROUP
    for subject in binding.get("subjects", ()):
        if subject["kind"] in _WITH_GROUP:
            subject["apiGroup"] = subject.get("apiGroup") or GROUP
