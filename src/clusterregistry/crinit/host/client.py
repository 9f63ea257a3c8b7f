"""Calls of the host cluster: get, list, apply, create, delete, logs. Every failure is explained with a remedy."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import quote, urlsplit

from clusterregistry.apimachinery.operator_error import OperatorError
from clusterregistry.client import rest_config
from clusterregistry.client.errors import ClientError, ConfigError
from clusterregistry.client.kubeconfig import Context
from clusterregistry.client.rest_config import RestConfig
from clusterregistry.client.retry import ONCE
from clusterregistry.crinit.errors import ForeignAnswer, HostError
from clusterregistry.crinit.host import answers

FIELD_MANAGER = "crinit"
PATIENCE = 30.0
"""Seconds for one call."""

CONFLICT = 409
_MOST_BYTES = 64 << 20
"""Of a response: far more than crinit requests, and little enough to be held in memory."""

PLURALS = {
    "Namespace": "namespaces", "Service": "services", "Secret": "secrets", "ConfigMap": "configmaps",
    "PersistentVolumeClaim": "persistentvolumeclaims", "ServiceAccount": "serviceaccounts", "Event": "events",
    "Pod": "pods", "Node": "nodes", "ClusterRoleBinding": "clusterrolebindings", "RoleBinding": "rolebindings",
    "ClusterRole": "clusterroles", "Role": "roles",
    "Deployment": "deployments", "StatefulSet": "statefulsets", "PodDisruptionBudget": "poddisruptionbudgets",
    "NetworkPolicy": "networkpolicies", "APIService": "apiservices", "ReplicaSet": "replicasets",
}  # fmt: skip
"""Of all kinds that crinit uses, so that it needs no discovery."""


def path_of(api_version: str, kind: str, *, namespace: str = "", name: str = "") -> str:
    root = f"/api/{api_version}" if "/" not in api_version else f"/apis/{api_version}"
    place = f"/namespaces/{quote(namespace)}" if namespace else ""
    return f"{root}{place}/{PLURALS[kind]}" + (f"/{quote(name)}" if name else "")


def path_to(manifest: Mapping[str, Any]) -> str:
    described = manifest["metadata"]
    return path_of(
        manifest["apiVersion"], manifest["kind"], namespace=described.get("namespace", ""), name=described["name"]
    )


class Client:
    """Calls one server as one user. Raises HostError, or OperatorError for credentials that cannot be used.

    A call is sent once: ``Patience`` decides what is repeated. Connections end with the object.
    """

    def __init__(self, context: Context, *, patience: float = PATIENCE) -> None:
        # 110 ms for the HTTP library, which help and completion do not need.
        from clusterregistry.client.sync import SyncClient  # noqa: PLC0415

        config = _config(context)
        self.context, self.url = context.name, config.server
        self._client = SyncClient(
            replace(
                config, interactive=True, timeout=patience, connect_timeout=patience, max_response_bytes=_MOST_BYTES
            ),
            retry=ONCE,
        )
        weakref.finalize(self, self._client.close)

    def get(self, path: str, **query: str) -> dict[str, Any] | None:
        """An object or a list; None when there is none."""
        try:
            return self.call("GET", path, query=query)
        except HostError as error:
            if error.status == answers.NOT_FOUND and not isinstance(error, ForeignAnswer):
                return None
            raise

    def items(self, path: str, **query: str) -> list[dict[str, Any]]:
        listed = self.get(path, **query) or {}
        return [item for item in listed.get("items") or [] if isinstance(item, dict)]

    def apply(self, manifest: Mapping[str, Any]) -> dict[str, Any]:
        """Server-side apply: fields of other managers that the manifest does not name stay as they are."""
        from clusterregistry.client.rest import PatchType  # noqa: PLC0415 - see __init__

        query = {"fieldManager": FIELD_MANAGER, "force": "true"}
        return self.call("PATCH", path_to(manifest), query=query, body=manifest, media_type=PatchType.APPLY)

    def create(self, manifest: Mapping[str, Any]) -> dict[str, Any]:
        """Fails with CONFLICT when the object exists; apply would change it."""
        collection = path_to(manifest).rpartition("/")[0]
        return self.call("POST", collection, query={"fieldManager": FIELD_MANAGER}, body=manifest)

    def delete(self, path: str) -> bool:
        """Returns whether there was an object to delete."""
        try:
            self.call("DELETE", path, body={"propagationPolicy": "Background"})
        except HostError as error:
            if error.status == answers.NOT_FOUND:
                return False
            raise
        return True

    def text(self, path: str, **query: str) -> str:
        from clusterregistry.client.rest import Call  # noqa: PLC0415 - see __init__

        with self._explained(f"GET {path}"):
            return self._client.text(Call("GET", path, query=query))

    def call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        media_type: str = "application/json",
    ) -> dict[str, Any]:
        from clusterregistry.client.rest import Call  # noqa: PLC0415 - see __init__

        with self._explained(f"{method} {path}"):
            return self._client.call(Call(method, path, query=query or {}, body=body, content_type=media_type))

    @contextlib.contextmanager
    def _explained(self, request: str) -> Iterator[None]:
        try:
            yield
        except ClientError as error:
            raise answers.explain(error, request=request, url=self.url, context=self.context) from None


def _config(context: Context) -> RestConfig:
    """Raises OperatorError for a context that cannot be used."""
    url = str(context.cluster.get("server") or "")
    parts = urlsplit(url)
    if parts.scheme != "https" or not parts.hostname:
        raise OperatorError(
            f'the cluster of the context "{context.name}" has no https URL, but "{url}"',
            remedy="give it one: kubectl config set-cluster NAME --server=https://HOST:PORT",
        )
    try:
        return rest_config.from_context(context, user_agent="crinit", read_files=True)
    except ConfigError as error:
        raise answers.unusable(error, context=context.name) from None
