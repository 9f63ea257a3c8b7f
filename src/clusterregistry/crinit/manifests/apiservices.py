"""The APIServices of an aggregated registry: one a version, by which kube-apiserver forwards requests to it."""

from __future__ import annotations

import base64
from collections.abc import Sequence

from clusterregistry.api.clusterregistry import GROUP, v1alpha1, v1beta1
from clusterregistry.cli.options.value_types import ASSIGNMENTS, BOOLEAN
from clusterregistry.crinit.credentials.material import Material
from clusterregistry.crinit.manifests import server
from clusterregistry.crinit.manifests.objects import Manifest, labels
from clusterregistry.crinit.settings import Mode, Settings

API_VERSION = "apiregistration.k8s.io/v1"
KIND = "APIService"

_GROUP_PRIORITY = 1000
_PRIORITIES = {v1beta1.VERSION: 20, v1alpha1.VERSION: 15}
"""By version. kube-aggregator puts the version with the highest first, and clients prefer the first."""

_LEVELS = {v1beta1.VERSION: "api/beta", v1alpha1.VERSION: "api/alpha"}
_PLURALS = ("clusters", "clustersets")
"""The resources of each version, which is served as long as one of them is."""

_RUNTIME_CONFIG = "--runtime-config"

VERSIONS = tuple(_PRIORITIES)
"""All versions that a server of this release can serve, the preferred one first."""


def name_of(version: str) -> str:
    return f"{version}.{GROUP}"


def apiservices(settings: Settings, material: Material) -> list[Manifest]:
    """Returns an APIService for each served version; none for a registry that is not aggregated."""
    if settings.mode is not Mode.AGGREGATED:
        return []
    return [_apiservice(settings, material, version) for version in served(settings.argument_overrides)]


def _apiservice(settings: Settings, material: Material, version: str) -> Manifest:
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": name_of(version), "labels": labels(settings)},
        "spec": {
            "group": GROUP,
            "version": version,
            "groupPriorityMinimum": _GROUP_PRIORITY,
            "versionPriority": _PRIORITIES[version],
            "service": {"name": settings.name, "namespace": settings.namespace, "port": server.SERVICE_PORT},
            "caBundle": base64.b64encode(material.authority.certificate).decode(),
        },
    }


def served(arguments: Sequence[str]) -> tuple[str, ...]:
    """Returns the versions that a server with these arguments serves, the preferred one first.

    An APIService of a version that is not served would never be available, and kube-controller-manager of the host
    cluster could not finish the deletion of namespaces.
    """
    texts = [text for name, _, text in (each.partition("=") for each in arguments) if name == _RUNTIME_CONFIG]
    if not texts:
        return VERSIONS
    try:
        given = {name: BOOLEAN.parse(value) for name, value in ASSIGNMENTS.parse(texts[-1])}
    except ValueError:
        return VERSIONS  # the server refuses it, and says why
    return tuple(version for version in VERSIONS if _is_served(version, given))


def _is_served(version: str, given: dict[str, bool]) -> bool:
    key = f"{GROUP}/{version}"
    return any(_last_of(given, "api/all", _LEVELS[version], key, f"{key}/{plural}") for plural in _PLURALS)


def _last_of(given: dict[str, bool], *keys: str) -> bool:
    """The value of the last of these keys that is given; by default everything is served."""
    return [True, *(given[key] for key in keys if key in given)][-1]
