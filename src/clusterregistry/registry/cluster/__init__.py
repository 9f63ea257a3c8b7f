"""The Cluster resource: its strategy, its columns, and the look-out for credentials.

Everything that makes clusters different from other resources on their way into storage is here; what all
resources share must not be.
"""

from __future__ import annotations

from clusterregistry.api.clusterregistry import GROUP
from clusterregistry.api.clusterregistry.v1alpha1 import VERSION
from clusterregistry.api.clusterregistry.v1alpha1.types import CLUSTER, KIND
from clusterregistry.apiserver.registry.resource import Resource, Version
from clusterregistry.apiserver.registry.structural_strategy import StatusStrategy
from clusterregistry.registry.cluster.columns import COLUMNS
from clusterregistry.registry.cluster.strategy import ClusterStrategy, SecretLint


def cluster_resource(secret_lint: SecretLint) -> Resource:
    """The resource ``clusters``; ``secret_lint`` says what happens to what looks like a credential."""
    return Resource(
        group=GROUP,
        kind=KIND,
        plural="clusters",
        singular="cluster",
        versions=(Version(name=VERSION, schema=CLUSTER, columns=COLUMNS),),
        storage_version=VERSION,
        strategy=ClusterStrategy(secret_lint),
        status_strategy=StatusStrategy(CLUSTER),
    )
