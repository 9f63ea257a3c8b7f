"""The native kinds that the library serves for every product, as kube-apiserver serves them."""

from __future__ import annotations

from collections.abc import Sequence

from clusterregistry.apiserver.registry.certificates.resource import certificate_signing_request_resource
from clusterregistry.apiserver.registry.coordination.lease import lease_resource
from clusterregistry.apiserver.registry.core.event import event_resource
from clusterregistry.apiserver.registry.core.namespace import namespace_resource
from clusterregistry.apiserver.registry.rbac.resources import (
    cluster_role_binding_resource,
    cluster_role_resource,
    role_binding_resource,
    role_resource,
)
from clusterregistry.apiserver.registry.resource import Resource


def native_resources(*, event_retention: float | None) -> Sequence[Resource]:
    """All of them. ``event_retention`` is the number of seconds after which an event is removed; None: never."""
    return (
        namespace_resource(),
        event_resource(retention=event_retention),
        lease_resource(),
        certificate_signing_request_resource(),
        cluster_role_binding_resource(),
        cluster_role_resource(),
        role_binding_resource(),
        role_resource(),
    )
