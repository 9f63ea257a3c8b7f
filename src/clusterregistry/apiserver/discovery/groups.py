"""Plain discovery: ``/api``, ``/apis``, ``/apis/GROUP`` and ``/apis/GROUP/VERSION``.

Keys stand in the order in which kube-apiserver writes them, for people who read them raw.
The core group has nothing but the kind ``List``, without any verb. kubectl needs to find it to take files with
lists, and keeps no discovery of a version that has no resource at all: it would ask again at every command.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

from clusterregistry.apiserver.registry.resource import STATUS_VERBS, Definition, Resource, Version

WireObject = dict[str, Any]

CORE_VERSION = "v1"
CORE_KIND = "List"
CORE_RESOURCE = "lists"
_HASHED_BYTES = 8


def api_versions(*, server_address: str) -> WireObject:
    """``/api``. ``server_address`` is the host and port that clients reach this server at."""
    addresses = [{"clientCIDR": "0.0.0.0/0", "serverAddress": server_address}]
    return {"kind": "APIVersions", "versions": [CORE_VERSION], "serverAddressByClientCIDRs": addresses}


def core_resource_list() -> WireObject:
    """``/api/v1``."""
    entry = {"name": CORE_RESOURCE, "singularName": "", "namespaced": False, "kind": CORE_KIND, "verbs": []}
    return {"kind": "APIResourceList", "groupVersion": CORE_VERSION, "resources": [entry]}


def api_group_list(resources: Sequence[Definition]) -> WireObject:
    """``/apis``."""
    groups = [_group(group, versions) for group, versions in group_versions(resources).items()]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def api_group(resources: Sequence[Definition], group: str) -> WireObject | None:
    """``/apis/GROUP``, or None when nothing of that group is served."""
    versions = group_versions(resources).get(group)
    if versions is None:
        return None
    return {"kind": "APIGroup", "apiVersion": "v1"} | _group(group, versions)


def api_resource_list(
    resources: Sequence[Definition], *, group: str, version: str, enable_watch: bool = True
) -> WireObject | None:
    """``/apis/GROUP/VERSION``, or None when it is not served."""
    entries: list[WireObject] = []
    for resource, _ in served_in(resources, group=group, version=version):
        entries.append(_main_entry(resource, enable_watch=enable_watch))
        if resource.has_status:
            entries.append(_status_entry(resource))
    if not entries:
        return None
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": f"{group}/{version}", "resources": entries}


def group_versions(resources: Sequence[Definition]) -> dict[str, list[str]]:
    """The versions of each group; both in the order in which the resources name them, so the preferred first."""
    found: dict[str, list[str]] = {}
    for resource in resources:
        versions = found.setdefault(resource.group, [])
        versions.extend(version.name for version in resource.versions if version.name not in versions)
    return found


def served_in(resources: Sequence[Definition], *, group: str, version: str) -> Iterator[tuple[Definition, Version]]:
    """The resources of one group version, with their definition in it."""
    for resource in resources:
        found = resource.version(version) if resource.group == group else None
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
        "namespaced": False,
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


def _status_entry(resource: Definition) -> WireObject:
    return {
        "name": f"{resource.plural}/status",
        "singularName": "",
        "namespaced": False,
        "kind": resource.kind,
        "verbs": list(STATUS_VERBS),
    }
