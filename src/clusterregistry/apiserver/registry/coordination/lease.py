"""The resource Lease: strategy and printed columns.

A fleet renews its leases every few seconds: a renewal is decoded and validated in a few microseconds.
"""

from __future__ import annotations

from collections.abc import Sequence

from clusterregistry.api.coordination import GROUP
from clusterregistry.api.coordination.v1 import VERSION
from clusterregistry.api.coordination.v1.types import LEASE, LEASE_KIND
from clusterregistry.api.coordination.v1.validation import validate_lease
from clusterregistry.apimachinery.meta import object_meta_validation
from clusterregistry.apimachinery.meta.field_errors import FieldError
from clusterregistry.apimachinery.meta.names import SUBDOMAINS
from clusterregistry.apimachinery.schema import native
from clusterregistry.apiserver.registry.columns import field_cell, name_column
from clusterregistry.apiserver.registry.resource import Column, Resource, Version
from clusterregistry.apiserver.registry.strategy import Object

_decode = native.decoder(LEASE, kind=LEASE_KIND)
_COORDINATION = ("strategy", "preferredHolder")


def lease_resource() -> Resource:
    holder, created = field_cell("spec", "holderIdentity"), field_cell("metadata", "creationTimestamp")
    columns = (
        name_column("The name of the lease. It cannot be changed."),
        Column(name="Holder", type="string", cell=lambda obj: holder(obj) or "", description="Who holds the lease."),
        Column(name="Age", type="string", is_age=True, cell=created, description="When the lease was created."),
    )
    return Resource(
        group=GROUP,
        kind=LEASE_KIND,
        plural="leases",
        singular="lease",
        versions=(Version(name=VERSION, schema=LEASE, columns=columns, decode=_decode),),
        storage_version=VERSION,
        strategy=LeaseStrategy(),
        names=SUBDOMAINS,
        namespaced=True,
        native=True,
        validates_metadata=True,
        default_roles=(),
    )


class LeaseStrategy:
    """The client owns all of a lease. Each renewal names the version that it is based on, so that one holder wins."""

    allow_create_on_update = True
    allow_unconditional_update = False
    reset_fields: frozenset[str] = frozenset()

    def prepare_for_create(self, obj: Object) -> None:
        _decode(obj)  # an applied object has not been decoded yet
        if not obj["spec"].keys().isdisjoint(_COORDINATION):
            # As in kube-apiserver without coordinated leader election: dropped without a word.
            obj["spec"] = {name: value for name, value in obj["spec"].items() if name not in _COORDINATION}

    def prepare_for_update(self, obj: Object, _old: Object) -> None:
        self.prepare_for_create(obj)

    def validate(self, obj: Object) -> list[FieldError]:
        return object_meta_validation.validate_create(obj["metadata"], SUBDOMAINS, namespaced=True) + validate_lease(
            obj
        )

    def validate_update(self, obj: Object, old: Object) -> list[FieldError]:
        changed = object_meta_validation.validate_update(obj["metadata"], old["metadata"], namespaced=True).change
        return changed + validate_lease(obj)

    def warnings(self, _obj: Object, _old: Object | None) -> Sequence[str]:
        return ()
