"""The kubeconfig of a registered cluster: where it is and how to sign in, without any secret.

Pure functions over Clusters of any version; the server and clients make the same kubeconfig of the same object.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

from clusterregistry.api.clusterregistry import GROUP
from clusterregistry.api.clusterregistry.exec_plugins import PLUGINS, PluginError, exec_entry
from clusterregistry.api.clusterregistry.server_endpoints import (
    Addresses,
    ServerEndpoints,
    choose_url,
    part,
    server_endpoints,
)
from clusterregistry.apimachinery.meta.base64_text import content_of

Object = dict[str, Any]

VERSION, KIND = "v1", "Config"

ORIGIN = f"{GROUP}/origin"
"""The extension of each entry that says which object it is made of: tells it from entries of a user's own."""

SIGN_IN = f"{GROUP}/sign-in"
"""The extension of a user without an exec entry: why there is none."""

MAX_PROVIDERS = 100
"""Providers of a cluster that are looked at."""


class NoKubeconfigError(Exception):
    """No kubeconfig can be made of the cluster; the message says why and what to do."""


def kubeconfig_of(cluster: Mapping[str, Any], addresses: Addresses) -> Object:
    """The kubeconfig of a cluster for a client with these addresses. Raises NoKubeconfigError.

    Its cluster, user and context have the name of the cluster. The user has an exec entry where a provider in
    ``authInfo`` makes one (``exec_plugins``); else it is empty, with the reason in an extension.
    """
    metadata = part(cluster, "metadata")
    name = str(metadata.get("name", ""))
    origin = {"name": ORIGIN, "extension": {"name": name, "uid": str(metadata.get("uid", ""))}}
    context = {"cluster": name, "user": name, "extensions": [origin]}
    return {
        "kind": KIND,
        "apiVersion": VERSION,
        "clusters": [{"name": name, "cluster": _cluster_entry(cluster, addresses) | {"extensions": [origin]}}],
        "users": [{"name": name, "user": _user_entry(cluster, origin)}],
        "contexts": [{"name": name, "context": context}],
        "current-context": name,
    }


def merged(kubeconfigs: Sequence[Mapping[str, Any]]) -> Object:
    """Several kubeconfigs of clusters as one. The current context is that of the only one, else there is none."""
    whole: Object = {"kind": KIND, "apiVersion": VERSION, "clusters": [], "users": [], "contexts": []}
    for each in kubeconfigs:
        for entries in ("clusters", "users", "contexts"):
            whole[entries] += each[entries]
    return whole | {"current-context": kubeconfigs[0]["current-context"] if len(kubeconfigs) == 1 else ""}


def _cluster_entry(cluster: Mapping[str, Any], addresses: Addresses) -> Object:
    found = server_endpoints(cluster)
    url = choose_url(found.usable, addresses)
    if url is None:
        raise NoKubeconfigError(_why_none(found))
    entry: Object = {"server": url}
    bundle = part(part(cluster, "spec"), "kubernetesApiEndpoints").get("caBundle")
    if bundle:
        authorities = content_of(bundle) if isinstance(bundle, str) else None
        if not authorities:
            raise NoKubeconfigError("spec.kubernetesApiEndpoints.caBundle is not base64")
        entry["certificate-authority-data"] = base64.b64encode(authorities).decode()
    return entry


def _why_none(found: ServerEndpoints) -> str:
    where = "spec.kubernetesApiEndpoints.serverEndpoints"
    if found.usable:
        return f"no entry of {where} has a clientCIDR with your address: it takes one for your network, or for all"
    if found.refused:
        return f"no serverAddress in {where} is a host, a host:port or an https URL"
    return f"{where} has no entry with a serverAddress"


def _user_entry(cluster: Mapping[str, Any], origin: Object) -> Object:
    providers = part(part(cluster, "spec"), "authInfo").get("providers")
    reason = f"no provider in spec.authInfo has a config with exec: one of {', '.join(PLUGINS)}"
    for index, provider in enumerate(providers[:MAX_PROVIDERS] if isinstance(providers, list) else []):
        try:
            entry = exec_entry(part(provider if isinstance(provider, dict) else {}, "config"))
        except PluginError as error:
            reason = f"spec.authInfo.providers[{index}].config: {error}"
            continue
        if entry is not None:
            return {"exec": entry, "extensions": [origin]}
    return {"extensions": [origin, {"name": SIGN_IN, "extension": {"reason": reason}}]}
