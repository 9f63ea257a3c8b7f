"""The objects of a registry in its host cluster: pure functions from settings to manifests, one module a concept.

``everything`` returns all of them in the order in which they are applied. Nothing here reads files, clocks or networks,
and equal settings with equal material give equal manifests. deploy/chart has the same objects; a test compares them.
"""

from __future__ import annotations

from clusterregistry.crinit.credentials.material import Material
from clusterregistry.crinit.manifests import access, apiservices, controller, etcd, pods, secrets, server
from clusterregistry.crinit.manifests.objects import Manifest, namespace
from clusterregistry.crinit.settings import Settings

__all__ = ["Manifest", "everything"]


def everything(settings: Settings, material: Material) -> list[Manifest]:
    """Returns all objects, each behind those it depends on."""
    return [
        namespace(settings),
        server.service(settings),
        *secrets.secrets(settings, material),
        *server.claims(settings),
        *access.accounts(settings),
        *access.network_policies(settings),
        *etcd.members(settings),
        server.deployment(settings),
        *pods.budgets(settings),
        *controller.objects(settings),
        *apiservices.apiservices(settings, material),
    ]
