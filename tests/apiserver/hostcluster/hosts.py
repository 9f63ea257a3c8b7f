"""The part of a host cluster that a registry calls: an HTTPS server with a configmap and reviews."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

from tests.remote_servers import PATIENCE, Authority, Received, RemoteServer, Reply, kubeconfig, reply

CONFIGMAP = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
CONFIGMAPS = "/api/v1/namespaces/kube-system/configmaps?"
TOKEN = "registrys-token"


def data(**changes: str) -> dict[str, str]:
    """The configmap's data as kube-apiserver writes it, without authorities."""
    written = {
        "requestheader-allowed-names": '["front-proxy-client"]',
        "requestheader-username-headers": '["X-Remote-User"]',
        "requestheader-uid-headers": '["X-Remote-Uid"]',
        "requestheader-group-headers": '["X-Remote-Group"]',
        "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
    }
    return written | {name.replace("_", "-"): value for name, value in changes.items()}


class Host(RemoteServer):
    """Answers every request with ``status`` unless that is 200."""

    def __init__(self, authority: Authority) -> None:
        super().__init__(authority)
        self.status = 200
        self.users = {"janes-token": "jane"}
        self.allowed = {("jane", "list")}
        self._data, self._version = data(), 1
        self._changed = threading.Condition()
        self.answer = self._answer

    def change(self, **changes: str) -> None:
        """Changes the configmap, and sends an event to its watches."""
        with self._changed:
            self._data, self._version = data(**changes), self._version + 1
            self._changed.notify_all()

    def kubeconfig(self, path: Path) -> Path:
        cluster = {"certificate-authority": "authority.crt"}
        return kubeconfig(path, self.url, cluster=cluster, user={"token": TOKEN})

    def configmap(self) -> dict[str, Any]:
        return {"kind": "ConfigMap", "metadata": {"resourceVersion": str(self._version)}, "data": self._data}

    def _answer(self, received: Received) -> Reply:
        if self.status != 200:
            return Reply(status=self.status)
        assert received.headers["authorization"] == f"Bearer {TOKEN}"
        if received.path == CONFIGMAP:
            return reply(self.configmap())
        if received.path.startswith(CONFIGMAPS):
            return self._watched(received.path)
        spec = received.document["spec"]
        return self._known(spec["token"]) if "token" in spec else self._decided(spec)

    def _watched(self, path: str) -> Reply:
        with self._changed:
            self._changed.wait_for(lambda: f"resourceVersion={self._version}&" not in path, PATIENCE)
            event = {"type": "MODIFIED", "object": self.configmap()}
        return Reply(body=json.dumps(event).encode() + b"\n")

    def _known(self, token: str) -> Reply:
        name = self.users.get(token)
        status = {"authenticated": True, "user": {"username": name}} if name else {"authenticated": False}
        return reply({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "status": status})

    def _decided(self, spec: dict[str, Any]) -> Reply:
        verb = (spec.get("resourceAttributes") or spec["nonResourceAttributes"])["verb"]
        status = {"allowed": (spec["user"], verb) in self.allowed, "reason": "a rule"}
        return reply({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "status": status})
