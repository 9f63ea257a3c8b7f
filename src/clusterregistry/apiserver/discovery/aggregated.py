"""Aggregated discovery: all groups, versions and resources in one ``APIGroupDiscoveryList``.

kubectl 1.26 to 1.29 asks for v2beta1 and later ones for v2; they differ in the apiVersion alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from clusterregistry.apiserver.discovery import documents
from clusterregistry.apiserver.discovery.documents import Document
from clusterregistry.apiserver.discovery.groups import (
    CORE_KIND,
    CORE_RESOURCE,
    CORE_VERSION,
    WireObject,
    group_versions,
    main_verbs,
    served_in,
)
from clusterregistry.apiserver.registry.resource import STATUS_VERBS, Definition

VERSIONS = ("v2", "v2beta1")


def core_groups(version: str) -> WireObject:
    """Aggregated ``/api``: the core group, which has only the kind ``List``."""
    kind = {"group": "", "version": CORE_VERSION, "kind": CORE_KIND}
    entry = {"resource": CORE_RESOURCE, "responseKind": kind, "scope": "Cluster", "singularResource": "", "verbs": []}
    core = {"metadata": {}, "versions": [{"version": CORE_VERSION, "resources": [entry], "freshness": "Current"}]}
    return _list([core], version)


def named_groups(resources: Sequence[Definition], version: str, *, enable_watch: bool = True) -> WireObject:
    """Aggregated ``/apis``."""
    groups = group_versions(resources)
    items = [_group(resources, group, enable_watch=enable_watch) for group in groups]
    return _list(items, version)


def document(group_list: WireObject, version: str) -> Document:
    """The list encoded, with the content type that tells clients it is the aggregated form."""
    content_type = f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
    return documents.tagged(orjson.dumps(group_list, option=orjson.OPT_APPEND_NEWLINE), content_type=content_type)


def _list(items: Sequence[WireObject], version: str) -> WireObject:
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": f"apidiscovery.k8s.io/{version}",
        "metadata": {},
        "items": list(items),
    }


def _group(resources: Sequence[Definition], group: str, *, enable_watch: bool) -> WireObject:
    versions = [
        {
            "version": version,
            "resources": [
                _resource(resource, version, enable_watch=enable_watch)
                for resource, _ in served_in(resources, group=group, version=version)
            ],
            "freshness": "Current",
        }
        for version in group_versions(resources)[group]
    ]
    return {"metadata": {"name": group}, "versions": versions}


def _resource(resource: Definition, version: str, *, enable_watch: bool) -> WireObject:
    kind = {"group": resource.group, "version": version, "kind": resource.kind}
    entry: WireObject = {
        "resource": resource.plural,
        "responseKind": kind,
        "scope": "Cluster",
        "singularResource": resource.singular,
        "verbs": main_verbs(resource, enable_watch=enable_watch),
    }
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    if resource.has_status:
        entry["subresources"] = [{"subresource": "status", "responseKind": kind, "verbs": list(STATUS_VERBS)}]
    return entry
