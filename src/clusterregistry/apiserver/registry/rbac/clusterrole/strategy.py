"""How ClusterRoles are created and updated."""

from __future__ import annotations

from collections.abc import Sequence

from clusterregistry.api.rbac.v1.types import CLUSTER_ROLE, CLUSTER_ROLE_KIND
from clusterregistry.api.rbac.v1.validation import validate_cluster_role
from clusterregistry.apimachinery.meta.field_errors import FieldError
from clusterregistry.apimachinery.schema import native
from clusterregistry.apiserver.registry.strategy import Object

decode = native.decoder(CLUSTER_ROLE, kind=CLUSTER_ROLE_KIND)


class ClusterRoleStrategy:
    """All of a role is the client's."""

    allow_create_on_update = True
    allow_unconditional_update = True
    reset_fields: frozenset[str] = frozenset()

    def prepare_for_create(self, obj: Object) -> None:
        decode(obj)  # what was applied has not been decoded yet
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
