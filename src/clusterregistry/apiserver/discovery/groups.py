"""Discovery of groups, versions and resources: ``/api``, ``/apis``, ``/apis/GROUP`` and ``/apis/GROUP/VERSION``.

``/api`` and ``/apis`` also have an aggregated form, with everything in one APIGroupDiscoveryList.

Keys are in kube-apiserver's order, for people who read the documents. The core group, whose name is empty, is below
``/api``. Where none of its kinds is served it has the kind ``List``, without verbs: kubectl needs a kind there to read
files with lists, and does not cache the discovery of a version without resources.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

import orjson

from clusterregistry.apiserver.discovery import documents
from clusterregistry.apiserver.discovery.documents import Document
from clusterregistry.apiserver.registry.resource import Definition, Resource, Version, View

WireObject = dict[str, Any]

CORE_VERSION = "v1"
CORE_KIND = "List"
CORE_RESOURCE = "lists"
_LIST_ENTRY = {"name": CORE_RESOURCE, "singularName": "", "namespaced": False, "kind": CORE_KIND, "verbs": []}
_HASHED_BYTES = 8


def api_versions(*, server_address: str) -> WireObject:
    """``/api``. ``server_address`` is the host and port of this server for clients."""
    addresses = [{"clientCIDR": "0.0.0.0/0", "serverAddress": server_address}]
    return {"kind": "APIVersions", "versions": [CORE_VERSION], "serverAddressByClientCIDRs": addresses}


def api_group_list(resources: Sequence[Definition]) -> WireObject:
    """``/apis``."""
    groups = [_group(group, versions) for group, versions in named_group_versions(resources).items()]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def api_group(resources: Sequence[Definition], group: str) -> WireObject | None:
    """``/apis/GROUP``, or None when nothing of that group is served."""
    versions = named_group_versions(resources).get(group)
    if versions is None:
        return None
    return {"kind": "APIGroup", "apiVersion": "v1"} | _group(group, versions)


def api_resource_list(
    resources: Sequence[Definition], *, group: str, version: str, enable_watch: bool = True
) -> WireObject | None:
    """``/apis/GROUP/VERSION``, for the core group ``/api/VERSION``; None when it is not served."""
    entries: list[WireObject] = []
    for resource, _ in served_in(resources, group=group, version=version):
        entries.append(_main_entry(resource, enable_watch=enable_watch))
        entries += [_subresource_entry(resource, name) for name in resource.subresources]
        entries += [_view_entry(resource, name, view) for name, view in resource.views.items()]
    if not group:
        entries = entries or [_LIST_ENTRY]
        return {"kind": "APIResourceList", "groupVersion": version, "resources": entries}
    if not entries:
        return None
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": f"{group}/{version}", "resources": entries}


def group_versions(resources: Sequence[Definition]) -> dict[str, list[str]]:
    """The versions of each group; both in the order in which the resources name them, so the preferred first."""
    found: dict[str, list[str]] = {}
    for resource in resources:
        for version in resource.versions:
            versions = found.setdefault(resource.group_of(version), [])
            if version.name not in versions:
                versions.append(version.name)
    return found


def named_group_versions(resources: Sequence[Definition]) -> dict[str, list[str]]:
    """The same without the core group."""
    return {group: versions for group, versions in group_versions(resources).items() if group}


def served_in(resources: Sequence[Definition], *, group: str, version: str) -> Iterator[tuple[Definition, Version]]:
    """The resources of one group version, with their definition in it."""
    for resource in resources:
        found = resource.version(version, group=group)
        if found is not None:
            yield resource, found


def main_verbs(resource: Definition, *, enable_watch: bool) -> list[str]:
    """In kube-apiserver's order, which for native kinds is the alphabet's."""
    verbs = [verb for verb in resource.verbs if enable_watch or verb != "watch"]
    return sorted(verbs) if resource.native else verbs


def storage_version_hash(resource: Resource) -> str:
    """Changes when the stored version does: clients that migrate objects compare it. As kube-apiserver computes it."""
    stored = f"{resource.group}/{resource.storage_version}/{resource.kind}"
    return base64.b64encode(hashlib.sha256(stored.encode()).digest()[:_HASHED_BYTES]).decode()


def _group(group: str, versions: Sequence[str]) -> WireObject:
    listed = [{"groupVersion": f"{group}/{version}", "version": version} for version in versions]
    return {"name": group, "versions": listed, "preferredVersion": listed[0]}


def _main_entry(resource: Definition, *, enable_watch: bool) -> WireObject:
    entry: WireObject = {
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": main_verbs(resource, enable_watch=enable_watch),
    }
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    if isinstance(resource, Resource):
        entry["storageVersionHash"] = storage_version_hash(resource)
    return entry


def _subresource_entry(resource: Definition, name: str) -> WireObject:
    return {
        "name": f"{resource.plural}/{name}",
        "singularName": "",
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": list(resource.subresources[name].verbs),
    }


def _view_entry(resource: Definition, name: str, view: View) -> WireObject:
    """An entry whose kind is of another group and version than the resource: those that are set are listed with it."""
    listed = {"name": f"{resource.plural}/{name}", "singularName": "", "namespaced": resource.namespaced}
    of_kind = {"group": view.group, "version": view.version} if view.group else {"version": view.version}
    return {**listed, **of_kind, "kind": view.kind, "verbs": list(view.verbs)}


AGGREGATED_VERSIONS = ("v2", "v2beta1")
"""Of APIGroupDiscoveryList. kubectl 1.26 to 1.29 requests v2beta1, later ones v2; only the apiVersion differs."""


def aggregated_core(resources: Sequence[Definition], version: str, *, enable_watch: bool = True) -> WireObject:
    """Aggregated ``/api``: the core group."""
    core = {"metadata": {}, "versions": [_aggregated_core_version(resources, enable_watch=enable_watch)]}
    return _discovery_list([core], version)


def _aggregated_core_version(resources: Sequence[Definition], *, enable_watch: bool) -> WireObject:
    if "" in group_versions(resources):
        return _aggregated_version(resources, group="", version=CORE_VERSION, enable_watch=enable_watch)
    kind = {"group": "", "version": CORE_VERSION, "kind": CORE_KIND}
    entry = {"resource": CORE_RESOURCE, "responseKind": kind, "scope": "Cluster", "singularResource": "", "verbs": []}
    return {"version": CORE_VERSION, "resources": [entry], "freshness": "Current"}


def aggregated_groups(resources: Sequence[Definition], version: str, *, enable_watch: bool = True) -> WireObject:
    """Aggregated ``/apis``."""
    groups = named_group_versions(resources)
    items = [_aggregated_group(resources, group, enable_watch=enable_watch) for group in groups]
    return _discovery_list(items, version)


def aggregated_document(group_list: WireObject, version: str) -> Document:
    """The encoded list, with the content type of the aggregated form."""
    content_type = f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
    return documents.tagged(orjson.dumps(group_list, option=orjson.OPT_APPEND_NEWLINE), content_type=content_type)


def _discovery_list(items: Sequence[WireObject], version: str) -> WireObject:
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": f"apidiscovery.k8s.io/{version}",
        "metadata": {},
        "items": list(items),
    }


def _aggregated_group(resources: Sequence[Definition], group: str, *, enable_watch: bool) -> WireObject:
    versions = [
        _aggregated_version(resources, group=group, version=version, enable_watch=enable_watch)
        for version in group_versions(resources)[group]
    ]
    return {"metadata": {"name": group}, "versions": versions}


def _aggregated_version(resources: Sequence[Definition], *, group: str, version: str, enable_watch: bool) -> WireObject:
    found = served_in(resources, group=group, version=version)
    return {
        "version": version,
        "resources": [
            _aggregated_resource(resource, group=group, version=version, enable_watch=enable_watch)
            for resource, _ in found
        ],
        "freshness": "Current",
    }


def _aggregated_resource(resource: Definition, *, group: str, version: str, enable_watch: bool) -> WireObject:
    kind = {"group": group, "version": version, "kind": resource.kind}
    entry: WireObject = {
        "resource": resource.plural,
        "responseKind": kind,
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": main_verbs(resource, enable_watch=enable_watch),
    }
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    parts = [(name, kind, each.verbs) for name, each in resource.subresources.items()]
    for name, view in resource.views.items():
        parts.append((name, {"group": view.group, "version": view.version, "kind": view.kind}, view.verbs))
    if parts:
        entry["subresources"] = [
            {"subresource": name, "responseKind": answered, "verbs": list(verbs)} for name, answered, verbs in parts
        ]
    return entry
