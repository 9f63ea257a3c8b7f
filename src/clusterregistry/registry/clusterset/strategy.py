"""The strategies of cluster sets: what the schema cannot say of a spec, and of conditions."""

from __future__ import annotations

from clusterregistry.api.clusterregistry.v1beta1.cluster_set import validate_spec
from clusterregistry.api.clusterregistry.v1beta1.validation import validate_conditions
from clusterregistry.apimachinery.meta.field_errors import FieldError
from clusterregistry.apiserver.registry.columns import field_cell
from clusterregistry.apiserver.registry.strategy import Object
from clusterregistry.apiserver.registry.structural_strategy import SpecStrategy, StatusStrategy

_conditions = field_cell("status", "conditions")


class ClusterSetStrategy(SpecStrategy):
    """The strategy of sets; an unchanged spec is not held against the client."""

    def validate_object(self, obj: Object, old: Object | None) -> list[FieldError]:
        return [] if old is not None and obj.get("spec") == old.get("spec") else validate_spec(obj)


class ClusterSetStatusStrategy(StatusStrategy):
    """The strategy of the status of sets."""

    def validate_update(self, obj: Object, old: Object) -> list[FieldError]:
        return super().validate_update(obj, old) + validate_conditions(_conditions(obj), _conditions(old))
