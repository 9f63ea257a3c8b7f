"""The resources ClusterRole and ClusterRoleBinding: strategies and printed columns."""

from __future__ import annotations

from collections.abc import Sequence

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
from clusterregistry.apiserver.registry.columns import field_cell, name_column
from clusterregistry.apiserver.registry.resource import Column, Resource, Version
from clusterregistry.apiserver.registry.strategy import Object


def cluster_role_resource() -> Resource:
    columns = (
        name_column("The name of the role. It cannot be changed."),
        Column(name="Created At", type="date", cell=_CREATED, description="When the role was created."),
    )
    return Resource(
        group=GROUP,
        kind=CLUSTER_ROLE_KIND,
        plural="clusterroles",
        singular="clusterrole",
        versions=(Version(name=VERSION, schema=CLUSTER_ROLE, columns=columns, decode=_decode_role),),
        storage_version=VERSION,
        strategy=ClusterRoleStrategy(),
        names=PATH_SEGMENTS,
        native=True,
        default_roles=(),
        read_your_writes=True,
    )


def cluster_role_binding_resource() -> Resource:
    columns = (
        name_column("The name of the binding. It cannot be changed."),
        Column(name="Role", type="string", cell=_role, description="The role that is given. It cannot be changed."),
        Column(name="Age", type="string", is_age=True, cell=_CREATED, description="When the binding was created."),
        _subject_column("Users", kind="User", description="Users who have the role."),
        _subject_column("Groups", kind="Group", description="Groups that have the role."),
        _subject_column("ServiceAccounts", kind="ServiceAccount", description="Service accounts that have the role."),
    )
    return Resource(
        group=GROUP,
        kind=CLUSTER_ROLE_BINDING_KIND,
        plural="clusterrolebindings",
        singular="clusterrolebinding",
        versions=(Version(name=VERSION, schema=CLUSTER_ROLE_BINDING, columns=columns, decode=_decode_binding),),
        storage_version=VERSION,
        strategy=ClusterRoleBindingStrategy(),
        names=PATH_SEGMENTS,
        native=True,
        default_roles=(),
        read_your_writes=True,
    )


_CREATED = field_cell("metadata", "creationTimestamp")
_decode_role = native.decoder(CLUSTER_ROLE, kind=CLUSTER_ROLE_KIND)
_decode_binding = native.decoder(CLUSTER_ROLE_BINDING, kind=CLUSTER_ROLE_BINDING_KIND)


class ClusterRoleStrategy:
    """The client owns all of a role."""

    allow_create_on_update = True
    allow_unconditional_update = True
    reset_fields: frozenset[str] = frozenset()

    def prepare_for_create(self, obj: Object) -> None:
        _decode_role(obj)  # an applied object has not been decoded yet
        # As kube-apiserver answers after the object was stored: no rules are null.
        obj["rules"] = obj["rules"] or None

    def prepare_for_update(self, obj: Object, _old: Object) -> None:
        self.prepare_for_create(obj)

    def validate(self, obj: Object) -> list[FieldError]:
        return validate_cluster_role(obj)

    def validate_update(self, obj: Object, _old: Object) -> list[FieldError]:
        return validate_cluster_role(obj)

    def warnings(self, _obj: Object, _old: Object | None) -> Sequence[str]:
        return ()


class ClusterRoleBindingStrategy(ClusterRoleStrategy):
    """Subjects may change, the role may not."""

    def prepare_for_create(self, obj: Object) -> None:
        _decode_binding(obj)  # an applied object has not been decoded yet
        set_binding_defaults(obj)

    def validate(self, obj: Object) -> list[FieldError]:
        return validate_cluster_role_binding(obj)

    def validate_update(self, obj: Object, old: Object) -> list[FieldError]:
        return validate_cluster_role_binding_update(obj, old)


def _role(binding: Object) -> str:
    role_ref = binding["roleRef"]
    return f"{role_ref['kind']}/{role_ref['name']}"


def _subject_column(name: str, *, kind: str, description: str) -> Column:
    """A wide column with the subjects of one kind."""

    def cell(binding: Object) -> str:
        return ", ".join(_shown(each) for each in binding.get("subjects", ()) if each["kind"] == kind)

    return Column(name=name, type="string", priority=1, cell=cell, description=description)


def _shown(subject: Object) -> str:
    name: str = subject["name"]
    return f"{subject.get('namespace', '')}/{name}" if subject["kind"] == "ServiceAccount" else name
