"""The ClusterSet kind as a resource: its versions, strategy and columns, and how it groups clusters.

The library has what all groupings share: the index of members, and the rights on them.
"""

from __future__ import annotations

from functools import partial

from clusterregistry.api.clusterregistry import GROUP, v1alpha1, v1beta1
from clusterregistry.api.clusterregistry.v1beta1.cluster_set import CLUSTER_SET, KIND, in_version
from clusterregistry.apiserver.registry.resource import Resource, Subresource, Version
from clusterregistry.registry.clusterset.columns import COLUMNS
from clusterregistry.registry.clusterset.strategy import ClusterSetStatusStrategy, ClusterSetStrategy


def cluster_set_resource() -> Resource:
    """The resource ``clustersets``. All versions have the same schema."""
    return Resource(
        group=GROUP,
        kind=KIND,
        plural="clustersets",
        singular="clusterset",
        short_names=("cset",),
        versions=(
            Version(name=v1beta1.VERSION, schema=CLUSTER_SET, columns=COLUMNS),
            Version(
                name=v1alpha1.VERSION,
                schema=CLUSTER_SET,
                columns=COLUMNS,
                to_storage=partial(in_version, version=v1beta1.VERSION),
                from_storage=partial(in_version, version=v1alpha1.VERSION),
            ),
        ),
        storage_version=v1beta1.VERSION,
        strategy=ClusterSetStrategy(CLUSTER_SET),
        subresources={"status": Subresource(strategy=ClusterSetStatusStrategy(CLUSTER_SET))},
    )
