"""How a ClusterSet groups clusters, for the library."""

from __future__ import annotations

from clusterregistry.api.clusterregistry import GROUP
from clusterregistry.apimachinery.meta.label_selector_objects import label_selector
from clusterregistry.apiserver.registry.object_groups import Grouping, Members, Object


def members_of(cluster_set: Object) -> Members:
    """The definition of a stored set."""
    spec = cluster_set.get("spec", {})
    selector = spec.get("selector")
    return Members(None if selector is None else label_selector(selector), frozenset(spec.get("clusters", ())))


CLUSTER_SETS = Grouping(group=GROUP, plural="clustersets", subresource="clusters", members_of=members_of)
