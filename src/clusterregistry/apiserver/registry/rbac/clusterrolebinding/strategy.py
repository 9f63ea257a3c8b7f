"""How ClusterRoleBindings are created and updated."""

from __future__ import annotations

from collections.abc import Sequence

from clusterregistry.api.rbac.v1.defaults import set_binding_defaults
from clusterregistry.api.rbac.v1.types import CLUSTER_ROLE_BINDING, CLUSTER_ROLE_BINDING_KIND
from clusterregistry.api.rbac.v1.validation import validate_cluster_role_binding, validate_cluster_role_binding_update
from clusterregistry.apimachinery.meta.field_errors import FieldError
from clusterregistry.apimachinery.schema import native
from clusterregistry.apiserver.registry.strategy import Object

decode = native.decoder(CLUSTER_ROLE_BINDING, kind=CLUSTER_ROLE_BINDING_KIND)


class ClusterRoleBindingStrategy:
    """Subjects may change, the role may not."""

    allow_create_on_update = True
    allow_unconditional_update = True
    reset_fields: frozenset[str] = frozenset()

    def prepare_for_create(self, obj: Object) -> None:
        decode(obj)  # what was applied has not been decoded yet
        set_binding_defaults(obj)

    def prepare_for_update(self, obj: Object, _old: Object) -> None:
        self.prepare_for_create(obj)

    def validate(self, obj: Object) -> list[FieldError]:
        return validate_cluster_role_binding(obj)

    def validate_update(self, obj: Object, old: Object) -> list[FieldError]:
        return validate_cluster_role_binding_update(obj, old)

    def warnings(self, _obj: Object, _old: Object | None) -> Sequence[str]:
        return ()
