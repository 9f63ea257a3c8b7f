"""Which resources this server serves: the one list. A new kind is a folder under ``registry`` and a line here."""

from __future__ import annotations

from collections.abc import Sequence

from clusterregistry.options import CompletedOptions
from clusterregistry.registry.cluster import cluster_resource
from clusterregistry.registry.definitions import Resource


def resources(options: CompletedOptions) -> Sequence[Resource]:
    return (cluster_resource(options.features.secret_lint),)
