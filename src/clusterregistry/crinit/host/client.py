"""A small synchronous client of a Kubernetes-style API: get, list, apply, patch, delete, logs."""

from __future__ import annotations

import base64
import http.client
import json
import socket
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from clusterregistry.apimachinery.operator_error import OperatorError
from clusterregistry.apiserver.webhooks import tls
from clusterregistry.crinit.errors import ForeignAnswer, HostError
from clusterregistry.crinit.host import answers, exec_plugins
from clusterregistry.crinit.host.answers import NOT_FOUND, Answer
from clusterregistry.crinit.host.kubeconfigs import Access

FIELD_MANAGER = "crinit"
PATIENCE = 30.0
APPLY = "application/apply-patch+yaml"

CONFLICT = 409
_REDIRECTS, _ERRORS = 300, 400
_MOST_BYTES = 64 << 20
"""Of an answer: far more than any that crinit asks for, and little enough to be held in memory."""

PLURALS = {
    "Namespace": "namespaces", "Service": "services", "Secret": "secrets", "ConfigMap": "configmaps",
    "PersistentVolumeClaim": "persistentvolumeclaims", "ServiceAccount": "serviceaccounts", "Event": "events",
    "Pod": "pods", "Node": "nodes", "ClusterRoleBinding": "clusterrolebindings", "RoleBinding": "rolebindings",
    "Deployment": "deployments", "StatefulSet": "statefulsets", "PodDisruptionBudget": "poddisruptionbudgets",
    "NetworkPolicy": "networkpolicies", "APIService": "apiservices", "ReplicaSet": "replicasets",
}  # fmt: skip
"""Of all kinds that crinit touches, so that it need not ask for discovery."""


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
    """Calls one server as one user. Every failure is a HostError that says what to do."""

    def __init__(self, access: Access, *, patience: float = PATIENCE) -> None:
        self._patience = patience
        self.context = access.context
        self.url = str(access.cluster.get("server") or "")
        parts = urlsplit(self.url)
        if parts.scheme != "https" or not parts.hostname:
            raise OperatorError(
                f'the cluster of the context "{access.context}" has no https URL, but "{self.url}"',
                remedy="give it one: kubectl config set-cluster NAME --server=https://HOST:PORT",
            )
        self._host, self._port, self._root = parts.hostname, parts.port or 443, parts.path.rstrip("/")
        self._server_name = str(access.cluster.get("tls-server-name") or "") or self._host
        self._proxy = _proxy(access)
        user = _with_plugin(access.user)
        self._tls = _tls(access, user)
        self._authorization = _authorization(user)

    def get(self, path: str, **query: str) -> dict[str, Any] | None:
        """An object or a list; None when there is none."""
        try:
            return self.call("GET", path, query=query)
        except HostError as error:
            if error.status == NOT_FOUND and not isinstance(error, ForeignAnswer):
                return None
            raise

    def items(self, path: str, **query: str) -> list[dict[str, Any]]:
        listed = self.get(path, **query) or {}
        return [item for item in listed.get("items") or [] if isinstance(item, dict)]

    def apply(self, manifest: Mapping[str, Any]) -> dict[str, Any]:
        """Server-side apply: what others have set and we do not name stays theirs."""
        query = {"fieldManager": FIELD_MANAGER, "force": "true"}
        return self.call("PATCH", path_to(manifest), query=query, body=manifest, media_type=APPLY)

    def create(self, manifest: Mapping[str, Any]) -> dict[str, Any]:
        """Fails with CONFLICT when there is one already, which apply would change."""
        collection = path_to(manifest).rpartition("/")[0]
        return self.call("POST", collection, query={"fieldManager": FIELD_MANAGER}, body=manifest)

    def delete(self, path: str) -> bool:
        """Answers whether there was anything to delete."""
        try:
            self.call("DELETE", path, body={"propagationPolicy": "Background"})
        except HostError as error:
            if error.status == NOT_FOUND:
                return False
            raise
        return True

    def text(self, path: str, **query: str) -> str:
        return self._exchange("GET", path, query=query).body.decode("utf-8", "replace")

    def call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        media_type: str = "application/json",
    ) -> dict[str, Any]:
        answer = self._exchange(method, path, query=query or {}, body=body, media_type=media_type)
        document = answer.document()
        if document is None or answer.status >= _REDIRECTS:
            raise answers.foreign(answer, url=self.url, context=self.context)
        return document

    def _exchange(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str],
        body: Mapping[str, Any] | None = None,
        media_type: str = "application/json",
    ) -> Answer:
        target = self._root + path + (f"?{urlencode(query)}" if query else "")
        headers = {"accept": "application/json", "user-agent": "crinit", **self._authorization}
        content = None
        if body is not None:
            content, headers["content-type"] = json.dumps(body).encode(), media_type
        try:
            connection = self._connection()
            try:
                connection.request(method, target, body=content, headers=headers)
                answer = self._read(connection.getresponse(), f"{method} {path}")
            finally:
                connection.close()
        except (OSError, http.client.HTTPException) as error:
            raise answers.unreachable(error, url=self.url, context=self.context) from None
        if answer.status >= _ERRORS:
            raise answers.refused(answer, url=self.url, context=self.context)
        return answer

    def _read(self, response: http.client.HTTPResponse, request: str) -> Answer:
        body = response.read(_MOST_BYTES + 1)
        if len(body) > _MOST_BYTES:
            raise HostError(
                f"{self.url} answers {request} with more than {_MOST_BYTES >> 20} MiB",
                remedy=f'is that the right server for the context "{self.context}"?',
                status=response.status,
            )
        return Answer(
            request=request,
            status=response.status,
            media_type=response.getheader("content-type") or "",
            location=response.getheader("location") or "",
            body=body,
        )

    def _connection(self) -> _Connection:
        host, port = self._proxy or (self._host, self._port)
        connection = _Connection(host, port, timeout=self._patience, context=self._tls)
        connection.server_name = self._server_name
        if self._proxy:
            connection.set_tunnel(self._host, self._port)
        return connection


class _Connection(http.client.HTTPSConnection):
    """One that can expect another name in the certificate than the one it calls (``tls-server-name``)."""

    server_name = ""

    def connect(self) -> None:
        http.client.HTTPConnection.connect(self)
        plain: socket.socket = self.sock
        context: ssl.SSLContext = self._context  # type: ignore[attr-defined]
        self.sock = context.wrap_socket(plain, server_hostname=self.server_name)


def _proxy(access: Access) -> tuple[str, int] | None:
    """The HTTP proxy that the kubeconfig names. Those of the environment are not used."""
    url = str(access.cluster.get("proxy-url") or "")
    if not url:
        return None
    parts = urlsplit(url)
    if parts.scheme != "http" or not parts.hostname:
        raise OperatorError(
            f'the context "{access.context}" goes through the proxy {url}, of a kind that crinit does not speak',
            remedy="use a proxy of http://HOST:PORT, or run crinit where the host cluster is reached without one",
        )
    return parts.hostname, parts.port or 80


def _with_plugin(user: Mapping[str, Any]) -> Mapping[str, Any]:
    plugin = user.get("exec")
    if not isinstance(plugin, dict):
        return user
    given = exec_plugins.credentials(plugin)
    certificate, key = str(given.get("clientCertificateData") or ""), str(given.get("clientKeyData") or "")
    return {
        "token": given.get("token") or "",
        "client-certificate-data": base64.b64encode(certificate.encode()).decode(),
        "client-key-data": base64.b64encode(key.encode()).decode(),
    }


def _tls(access: Access, user: Mapping[str, Any]) -> ssl.SSLContext:
    context = tls.context()
    try:
        if access.cluster.get("insecure-skip-tls-verify") is True:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        else:
            tls.trust(context, _content(access.cluster, "certificate-authority"))
        tls.identify(context, certificate=_content(user, "client-certificate"), key=_content(user, "client-key"))
    except ValueError as error:
        raise OperatorError(
            f'certificates of the context "{access.context}": {error}', remedy="correct them in the kubeconfig"
        ) from None
    return context


def _content(entry: Mapping[str, Any], name: str) -> bytes:
    data, file = str(entry.get(f"{name}-data") or ""), str(entry.get(name) or "")
    if data:
        return tls.decoded(data)
    return tls.content(Path(file)) if file else b""


def _authorization(user: Mapping[str, Any]) -> dict[str, str]:
    token, file = str(user.get("token") or ""), str(user.get("tokenFile") or "")
    if file:
        try:
            token = tls.content(Path(file)).decode("ascii").strip()
        except ValueError as error:
            raise OperatorError(f"the token of the kubeconfig: {error}", remedy="correct the kubeconfig") from None
    if token:
        return {"authorization": f"Bearer {token}"}
    if user.get("username"):
        basic = base64.b64encode(f"{user['username']}:{user.get('password', '')}".encode()).decode()
        return {"authorization": f"Basic {basic}"}
    return {}
