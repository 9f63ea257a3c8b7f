"""The Cluster kind as a resource: its versions, strategies, columns and selectable fields, and the secret lint.

Only what makes clusters different from other kinds is here; the library has what all kinds share.
"""

from __future__ import annotations

from clusterregistry.api.clusterregistry import GROUP, v1alpha1, v1beta1
from clusterregistry.api.clusterregistry.v1alpha1.types import CLUSTER, KIND
from clusterregistry.api.clusterregistry.v1beta1 import conversion
from clusterregistry.api.clusterregistry.v1beta1.types import CLUSTER as V1BETA1_CLUSTER
from clusterregistry.apiserver.registry.resource import Resource, Subresource, Version
from clusterregistry.apiserver.registry.structural_strategy import StatusStrategy
from clusterregistry.registry.cluster.columns import COLUMNS, V1BETA1_COLUMNS
from clusterregistry.registry.cluster.kubeconfig import KUBECONFIG
from clusterregistry.registry.cluster.protection import check_delete
from clusterregistry.registry.cluster.selectable_fields import CLUSTER_ID, SELECTABLE_FIELDS
from clusterregistry.registry.cluster.strategy import (
    ClusterStrategy,
    SecretLint,
    V1Beta1StatusStrategy,
    V1Beta1Strategy,
)
from clusterregistry.registry.clusterset.membership import CLUSTER_SETS

STORAGE_VERSION = v1alpha1.VERSION
"""The release before knows no other: it can read what this one stores."""


def cluster_resource(secret_lint: SecretLint, *, has_v1beta1: bool = True) -> Resource:
    """The resource ``clusters``; ``secret_lint`` says what happens to values that look like credentials.

    Without v1beta1 among the served versions, v1alpha1 is the API of the release before, which had no selectable
    fields but the name and no kubeconfigs, and let clusters share a cluster ID.
    """
    return Resource(
        group=GROUP,
        kind=KIND,
        plural="clusters",
        singular="cluster",
        versions=(_v1beta1(secret_lint), _v1alpha1(has_fields=has_v1beta1)),
        storage_version=STORAGE_VERSION,
        strategy=ClusterStrategy(secret_lint),
        subresources={"status": Subresource(strategy=StatusStrategy(CLUSTER))},
        views={"kubeconfig": KUBECONFIG} if has_v1beta1 else {},
        check_delete=check_delete,
        selectable_fields=SELECTABLE_FIELDS,
        grouped_by=CLUSTER_SETS,
        unique_fields={CLUSTER_ID: SELECTABLE_FIELDS[CLUSTER_ID]} if has_v1beta1 else {},
    )


def _v1alpha1(*, has_fields: bool) -> Version:
    return Version(
        name=v1alpha1.VERSION,
        schema=CLUSTER,
        columns=COLUMNS,
        inherit=conversion.inherit_annotations,
        field_labels=None if has_fields else {},
    )


def _v1beta1(secret_lint: SecretLint) -> Version:
    return Version(
        name=v1beta1.VERSION,
        schema=V1BETA1_CLUSTER,
        columns=V1BETA1_COLUMNS,
        to_storage=conversion.to_v1alpha1,
        from_storage=conversion.from_v1alpha1,
        from_storage_whole=conversion.from_v1alpha1_whole,
        strategy=V1Beta1Strategy(secret_lint),
        subresource_strategies={"status": V1Beta1StatusStrategy()},
    )
