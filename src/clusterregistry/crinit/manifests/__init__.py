"""The objects of a registry in its host cluster: pure functions from settings to manifests, one file a concern.

``everything`` gives all of them in the order in which they are applied. Nothing here reads files, clocks or networks,
and equal settings with equal material give equal manifests. deploy/chart gives the same objects; a test compares them.
"""

from __future__ import annotations

from clusterregistry.crinit.credentials.material import Material
from clusterregistry.crinit.manifests import (
    accounts,
    apiservices,
    disruption,
    etcd,
    namespaces,
    network_policies,
    secrets,
    services,
    volumes,
    workloads,
)
from clusterregistry.crinit.manifests.objects import Manifest
from clusterregistry.crinit.settings import Settings

__all__ = ["Manifest", "everything"]


def everything(settings: Settings, material: Material) -> list[Manifest]:
    """All objects, those first on which others depend."""
    return [
        namespaces.namespace(settings),
        services.service(settings),
        *secrets.secrets(settings, material),
        *volumes.claims(settings),
        *accounts.accounts(settings),
        *network_policies.network_policies(settings),
        *etcd.members(settings),
        *workloads.workload(settings),
        *disruption.budgets(settings),
        *apiservices.apiservices(settings, material),
    ]
