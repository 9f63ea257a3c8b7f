"""The resources Role, RoleBinding, ClusterRole and ClusterRoleBinding: strategies and printed columns."""

from __future__ import annotations

from collections.abc import Sequence

from clusterregistry.api.rbac import GROUP
from clusterregistry.api.rbac.v1 import VERSION, types
from clusterregistry.api.rbac.v1.defaults import set_binding_defaults
from clusterregistry.api.rbac.v1.validation import (
    role_ref_change_errors,
    validate_cluster_role,
    validate_cluster_role_binding,
    validate_role,
    validate_role_binding,
)
from clusterregistry.apimachinery.meta.field_errors import FieldError
from clusterregistry.apimachinery.meta.names import PATH_SEGMENTS
from clusterregistry.apimachinery.schema import native, schemas
from clusterregistry.apiserver.registry.columns import field_cell, name_column
from clusterregistry.apiserver.registry.resource import Column, Resource, Version
from clusterregistry.apiserver.registry.strategy import Object, Strategy


def cluster_role_resource() -> Resource:
    return _resource(
        types.CLUSTER_ROLE_KIND, types.CLUSTER_ROLE, columns=_role_columns(), strategy=ClusterRoleStrategy()
    )


def cluster_role_binding_resource() -> Resource:
    return _resource(
        types.CLUSTER_ROLE_BINDING_KIND,
        types.CLUSTER_ROLE_BINDING,
        columns=_binding_columns(),
        strategy=ClusterRoleBindingStrategy(),
    )


def role_resource() -> Resource:
    return _resource(types.ROLE_KIND, types.ROLE, columns=_role_columns(), strategy=RoleStrategy(), namespaced=True)


def role_binding_resource() -> Resource:
    return _resource(
        types.ROLE_BINDING_KIND,
        types.ROLE_BINDING,
        columns=_binding_columns(),
        strategy=RoleBindingStrategy(),
        namespaced=True,
    )


def _resource(
    kind: str, schema: schemas.Object, *, columns: Sequence[Column], strategy: Strategy, namespaced: bool = False
) -> Resource:
    version = Version(name=VERSION, schema=schema, columns=columns, decode=native.decoder(schema, kind=kind))
    return Resource(
        group=GROUP,
        kind=kind,
        plural=f"{kind.lower()}s",
        singular=kind.lower(),
        versions=(version,),
        storage_version=VERSION,
        strategy=strategy,
        names=PATH_SEGMENTS,
        namespaced=namespaced,
        native=True,
        default_roles=(),
        read_your_writes=True,
    )


_CREATED = field_cell("metadata", "creationTimestamp")


def _role_columns() -> Sequence[Column]:
    return (
        name_column("The name of the role. It cannot be changed."),
        Column(name="Created At", type="date", cell=_CREATED, description="When the role was created."),
    )


def _binding_columns() -> Sequence[Column]:
    return (
        name_column("The name of the binding. It cannot be changed."),
        Column(name="Role", type="string", cell=_role, description="The role that is given. It cannot be changed."),
        Column(name="Age", type="string", is_age=True, cell=_CREATED, description="When the binding was created."),
        _subject_column("Users", kind="User", description="Users who have the role."),
        _subject_column("Groups", kind="Group", description="Groups that have the role."),
        _subject_column("ServiceAccounts", kind="ServiceAccount", description="Service accounts that have the role."),
    )


_decode_role = native.decoder(types.ROLE, kind=types.ROLE_KIND)
_decode_cluster_role = native.decoder(types.CLUSTER_ROLE, kind=types.CLUSTER_ROLE_KIND)
_decode_binding = native.decoder(types.ROLE_BINDING, kind=types.ROLE_BINDING_KIND)
_decode_cluster_role_binding = native.decoder(types.CLUSTER_ROLE_BINDING, kind=types.CLUSTER_ROLE_BINDING_KIND)


class ClusterRoleStrategy:
    """The client owns all of a role."""

    allow_create_on_update = True
    allow_unconditional_update = True
    reset_fields: frozenset[str] = frozenset()

    _decode = staticmethod(_decode_cluster_role)

    def prepare_for_create(self, obj: Object) -> None:
        self._decode(obj)  # an applied object has not been decoded yet
        # As kube-apiserver answers after the object was stored: no rules are null.
        obj["rules"] = obj["rules"] or None

    def prepare_for_update(self, obj: Object, _old: Object) -> None:
        self.prepare_for_create(obj)

    def validate(self, obj: Object) -> list[FieldError]:
        return validate_cluster_role(obj)

    def validate_update(self, obj: Object, _old: Object) -> list[FieldError]:
        return self.validate(obj)

    def warnings(self, _obj: Object, _old: Object | None) -> Sequence[str]:
        return ()


class RoleStrategy(ClusterRoleStrategy):
    """The rules of a Role hold in its namespace, so that they cannot be on paths."""

    _decode = staticmethod(_decode_role)

    def validate(self, obj: Object) -> list[FieldError]:
        return validate_role(obj)


class ClusterRoleBindingStrategy(ClusterRoleStrategy):
    """Subjects may change, the role may not."""

    _decode = staticmethod(_decode_cluster_role_binding)

    def prepare_for_create(self, obj: Object) -> None:
        self._decode(obj)  # an applied object has not been decoded yet
        set_binding_defaults(obj)

    def validate(self, obj: Object) -> list[FieldError]:
        return validate_cluster_role_binding(obj)

    def validate_update(self, obj: Object, old: Object) -> list[FieldError]:
        return self.validate(obj) + role_ref_change_errors(obj, old)


class RoleBindingStrategy(ClusterRoleBindingStrategy):
    """The same for a binding within a namespace, which may name a Role of it."""

    _decode = staticmethod(_decode_binding)

    def validate(self, obj: Object) -> list[FieldError]:
        return validate_role_binding(obj)


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
