"""The resources ClusterRole and ClusterRoleBinding: strategies and printed columns.

What rules allow is decided by ``authz``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from clusterregistry.api.rbac import GROUP
from clusterregistry.api.rbac.v1 import VERSION
from clusterregistry.api.rbac.v1.defaults import set_binding_defaults
from clusterregistry.api.rbac.v1.types import (
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    CLUSTER_ROLE_BINDING_KIND,
    CLUSTER_ROLE_KIND,
)
from clusterregistry.api.rbac.v1.validation import (
    validate_cluster_role,
    validate_cluster_role_binding,
    validate_cluster_role_binding_update,
)
from clusterregistry.apimachinery.meta.field_errors import FieldError
from clusterregistry.apimachinery.meta.names import PATH_SEGMENTS
from clusterregistry.apimachinery.schema import native
from clusterregistry.apiserver.registry.resource import Cell, Column, Resource, Version
from clusterregistry.apiserver.registry.strategy import Object

_CLUSTER_ROLE_COLUMNS = (
    Column(
        name="Name",
        type="string",
        format="name",
        cell=lambda role: role["metadata"]["name"],
        description="The name of the role. It cannot be changed.",
    ),
    Column(
        name="Created At",
        type="date",
        cell=lambda role: role["metadata"]["creationTimestamp"],
        description="When the role was created.",
    ),
)


_decode_cluster_role = native.decoder(CLUSTER_ROLE, kind=CLUSTER_ROLE_KIND)


class ClusterRoleStrategy:
    """All of a role is the client's."""

    allow_create_on_update = True
    allow_unconditional_update = True
    reset_fields: frozenset[str] = frozenset()

    def prepare_for_create(self, obj: Object) -> None:
        _decode_cluster_role(obj)  # what was applied has not been decoded yet
        # As kube-apiserver answers after the way through its storage: no rules are null.
        obj["rules"] = obj["rules"] or None

    def prepare_for_update(self, obj: Object, _old: Object) -> None:
        self.prepare_for_create(obj)

    def validate(self, obj: Object) -> list[FieldError]:
        return validate_cluster_role(obj)

    def validate_update(self, obj: Object, _old: Object) -> list[FieldError]:
        return validate_cluster_role(obj)

    def warnings(self, _obj: Object, _old: Object | None) -> Sequence[str]:
        return ()


def cluster_role_resource() -> Resource:
    return Resource(
        group=GROUP,
        kind=CLUSTER_ROLE_KIND,
        plural="clusterroles",
        singular="clusterrole",
        versions=(
            Version(name=VERSION, schema=CLUSTER_ROLE, columns=_CLUSTER_ROLE_COLUMNS, decode=_decode_cluster_role),
        ),
        storage_version=VERSION,
        strategy=ClusterRoleStrategy(),
        names=PATH_SEGMENTS,
        native=True,
        default_roles=(),
        read_your_writes=True,
    )


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


_BINDING_COLUMNS = (
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


_decode_binding = native.decoder(CLUSTER_ROLE_BINDING, kind=CLUSTER_ROLE_BINDING_KIND)


class ClusterRoleBindingStrategy:
    """Subjects may change, the role may not."""

    allow_create_on_update = True
    allow_unconditional_update = True
    reset_fields: frozenset[str] = frozenset()

    def prepare_for_create(self, obj: Object) -> None:
        _decode_binding(obj)  # what was applied has not been decoded yet
        set_binding_defaults(obj)

    def prepare_for_update(self, obj: Object, _old: Object) -> None:
        self.prepare_for_create(obj)

    def validate(self, obj: Object) -> list[FieldError]:
        return validate_cluster_role_binding(obj)

    def validate_update(self, obj: Object, old: Object) -> list[FieldError]:
        return validate_cluster_role_binding_update(obj, old)

    def warnings(self, _obj: Object, _old: Object | None) -> Sequence[str]:
        return ()


def cluster_role_binding_resource() -> Resource:
    return Resource(
        group=GROUP,
        kind=CLUSTER_ROLE_BINDING_KIND,
        plural="clusterrolebindings",
        singular="clusterrolebinding",
        versions=(
            Version(name=VERSION, schema=CLUSTER_ROLE_BINDING, columns=_BINDING_COLUMNS, decode=_decode_binding),
        ),
        storage_version=VERSION,
        strategy=ClusterRoleBindingStrategy(),
        names=PATH_SEGMENTS,
        native=True,
        default_roles=(),
        read_your_writes=True,
    )
