"""What ``kubectl get clusterrolebindings`` prints."""

from __future__ import annotations

from typing import Any

from clusterregistry.apiserver.registry.resource import Cell, Column


def _subjects(kind: str) -> Cell:
    """A cell that lists the subjects of one kind."""

    def cell(binding: dict[str, Any]) -> str:
        return ", ".join(_shown(each) for each in binding.get("subjects", ()) if each["kind"] == kind)

    return cell


def _shown(subject: dict[str, Any]) -> str:
    name: str = subject["name"]
    return f"{subject.get('namespace', '')}/{name}" if subject["kind"] == "ServiceAccount" else name


def _role(binding: dict[str, Any]) -> str:
    role_ref = binding["roleRef"]
    return f"{role_ref['kind']}/{role_ref['name']}"


COLUMNS = (
    Column(
        name="Name",
        type="string",
        format="name",
        cell=lambda binding: binding["metadata"]["name"],
        description="The name of the binding. It cannot be changed.",
    ),
    Column(name="Role", type="string", cell=_role, description="The role that is given. It cannot be changed."),
    Column(
        name="Age",
        type="string",
        is_age=True,
        cell=lambda binding: binding["metadata"]["creationTimestamp"],
        description="When the binding was created.",
    ),
    Column(name="Users", type="string", priority=1, cell=_subjects("User"), description="Users who have the role."),
    Column(name="Groups", type="string", priority=1, cell=_subjects("Group"), description="Groups that have the role."),
    Column(
        name="ServiceAccounts",
        type="string",
        priority=1,
        cell=_subjects("ServiceAccount"),
        description="Service accounts that have the role.",
    ),
)
