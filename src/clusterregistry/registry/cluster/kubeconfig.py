"""The subresource ``kubeconfig`` of clusters: where a cluster is and how to sign in, for the address of the caller."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from clusterregistry.api.clusterregistry.kubeconfigs import KIND, VERSION, NoKubeconfigError, kubeconfig_of
from clusterregistry.apimachinery.meta import errors
from clusterregistry.apimachinery.schema.schemas import Array, Boolean, Object, String
from clusterregistry.apiserver.registry.resource import View

_CLUSTER = Object(
    description="Where the cluster is.",
    fields={
        "server": String(description="The URL of the API server, for the address of the caller."),
        "certificate-authority-data": String(
            format="byte", description="The authorities to trust the server by, in PEM. None: those of the system."
        ),
    },
)
_EXEC = Object(
    description="The program that prints the credential. The registry names few, and only by their names.",
    fields={
        "apiVersion": String(description="The version in which the program prints."),
        "command": String(description="The name of the program."),
        "args": Array(items=String(), description="Its arguments."),
        "installHint": String(description="What to do where it is missing."),
        "interactiveMode": String(description="Whether it may ask its user."),
        "provideClusterInfo": Boolean(description="Whether it is told about the cluster."),
    },
)
_USER = Object(description="How to sign in; empty where the Cluster does not say.", fields={"exec": _EXEC})
_CONTEXT = Object(
    description="The cluster with the user.",
    fields={
        "cluster": String(description="The name of the entry in clusters."),
        "user": String(description="The name of the entry in users."),
    },
)


def _entries(singular: str, content: Object) -> Array:
    name = String(description="Name of the entry, which is that of the Cluster.")
    item = Object(description="An entry and its name.", fields={"name": name, singular: content})
    return Array(description=content.description, items=item)


SCHEMA = Object(
    description="Config is a kubeconfig without secrets, as kubectl and other clients read it.",
    fields={
        "apiVersion": String(description="The version of kubeconfigs."),
        "kind": String(description="Config."),
        "clusters": _entries("cluster", _CLUSTER),
        "users": _entries("user", _USER),
        "contexts": _entries("context", _CONTEXT),
        "current-context": String(description="The name of the context."),
    },
)


def _render(cluster: dict[str, Any], addresses: Sequence[str]) -> dict[str, Any]:
    try:
        return kubeconfig_of(cluster, lambda _url: addresses)
    except NoKubeconfigError as error:
        raise errors.bad_request(f"there is no kubeconfig of this cluster for you: {error}") from None


KUBECONFIG = View(version=VERSION, kind=KIND, schema=SCHEMA, render=_render)
