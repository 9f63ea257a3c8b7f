"""Admission by the lifecycle of namespaces: objects are created only in a namespace that exists and is to stay.

The plugin ``NamespaceLifecycle`` of kube-apiserver. Updates and deletes are not its concern. A create pays one lookup
in the cache; only where that does not find an active namespace, the storage is read: another replica may have created
the namespace a moment ago.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from clusterregistry.apimachinery.meta import errors
from clusterregistry.apimachinery.meta.errors import APIError
from clusterregistry.apiserver.registry.resource import Resource
from clusterregistry.apiserver.registry.store import CheckNamespace, Store
from clusterregistry.apiserver.storage.object_bytes import is_being_deleted

_UNNAMED = "Unknown!"
"""kube-apiserver's name for an object without one."""


class NamespaceLifecycle:
    """Admits objects into the namespaces of a store."""

    def __init__(self, namespaces: Store) -> None:
        self._namespaces = namespaces
        self._prefix, self._storage = namespaces.prefix, namespaces.storage

    def check_for(self, resource: Resource) -> CheckNamespace:
        """The check of a namespaced resource, for its store."""
        return partial(self.check, resource=resource)

    async def check(self, obj: dict[str, Any], group: str, *, resource: Resource) -> None:
        """Checks an object that is to be created. ``group`` is that of the request.

        Raises 404 for a namespace that does not exist, 403 for one that is being deleted, and what a read raises.
        """
        namespace = obj["metadata"]["namespace"]
        if not self.is_active(namespace) and is_being_deleted(await self._namespaces.get(namespace)):
            raise _terminating(namespace, name=_name_of(obj["metadata"]), group=group, plural=resource.plural)

    def is_active(self, namespace: str) -> bool:
        """Whether the cache has the namespace, and it is not being deleted."""
        found = self._storage.get_stale(self._prefix + namespace)
        return found is not None and not is_being_deleted(found)


def _name_of(metadata: dict[str, Any]) -> str:
    """The name that a client gave: of a generated one that is the part before the random letters."""
    name: str = metadata.get("name", "")
    generated: str = metadata.get("generateName", "")
    return generated if generated and name.startswith(generated) else name or _UNNAMED


def _terminating(namespace: str, *, name: str, group: str, plural: str) -> APIError:
    detail = f"unable to create new content in namespace {namespace} because it is being terminated"
    error = errors.forbidden(group=group, resource=plural, name=name, detail=detail)
    cause = {
        "reason": "NamespaceTerminating",
        "message": f"namespace {namespace} is being terminated",
        "field": "metadata.namespace",
    }
    error.status["details"]["causes"] = [cause]
    return error
