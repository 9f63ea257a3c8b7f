"""The server that the clients use: ours, or a real kube-apiserver to compare with."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import yaml

from clusterregistry.client.rest_config import RestConfig
from clusterregistry.client.transport import Response
from tests.apiserver.api.clients import ADMIN_TOKEN
from tests.apiserver.server.programs import Program
from tests.conformance import __file__ as _conformance
from tests.system.e2e.host_clusters import ADMIN, JANE, HostCluster
from tools import exchanges
from tools.processes import wait_for

WANTED = "CLIENTS"
"""The variable that enables these tests, which take a minute."""

AGAINST = os.environ.get("CLIENTS_AGAINST", "")
CLUSTERS = "/apis/clusterregistry.k8s.io/v1alpha1/clusters"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
_RBAC_GROUP = "rbac.authorization.k8s.io"
_CRD = Path(_conformance).with_name("cluster-crd.yaml")
_AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived", "ResponseStarted"],
    "rules": [{"level": "RequestResponse"}],
}
_HARMLESS = frozenset(
    {
        # The client left before the answer, which kube-apiserver records as 500.
        "context canceled",
        "client disconnected",
        "the server rejected our request due to an error in our request",  # the test of a JSON patch that came too late
    }
)
_NO_CLIENTS = ("kube-apiserver/", "cluster-registry-tools")
"""kube-apiserver, which calls itself, and the tests."""
_NOT_UNDERSTOOD = frozenset({400, 405, 406, 413, 415, 422, 500})


class Server(ABC):
    """A server with an administrator and one user without any rights, whose answers are recorded."""

    user: str
    """The name of the user without rights."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory, self._audit_log = directory, directory / "audit.log"
        (directory / "audit-policy.json").write_text(json.dumps(_AUDIT_POLICY))

    def audit_flags(self) -> tuple[str, ...]:
        policy = self.directory / "audit-policy.json"
        return f"--audit-policy-file={policy}", f"--audit-log-path={self._audit_log}"

    @property
    @abstractmethod
    def admin_kubeconfig(self) -> Path: ...

    @property
    @abstractmethod
    def user_kubeconfig(self) -> Path: ...

    @property
    @abstractmethod
    def admin(self) -> RestConfig: ...

    @abstractmethod
    def restart(self) -> None: ...

    @abstractmethod
    def __enter__(self) -> Self: ...

    @abstractmethod
    def __exit__(self, *_: object) -> None: ...

    def get(self, path: str) -> Any:
        return self._must("GET", path)

    def create(self, path: str, document: Any) -> Any:
        return self._must("POST", path, document)

    def merge(self, path: str, document: Any) -> Any:
        return self._must("PATCH", path, document, content_type="application/merge-patch+json")

    def replace(self, path: str, document: Any) -> Any:
        return self._must("PUT", path, document)

    def delete(self, path: str) -> Any:
        return self._must("DELETE", path)

    def has(self, path: str) -> bool:
        return self._call("GET", path).status == 200

    def _call(self, method: str, path: str, body: Any = None, **headers: str) -> Response:
        return exchanges.send(self.admin, method, path, body, **headers)

    def _must(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        answer = self._call(method, path, body, **headers)
        assert answer.status in (200, 201, 202), (method, path, answer)
        return exchanges.decoded(answer)

    def allow(self, rules: list[dict[str, Any]], *, namespace: str = "") -> None:
        """Gives the user without rights some, in one namespace or in all."""
        kind, scope = (
            ("Role", f"{RBAC}/namespaces/{namespace}/roles") if namespace else ("ClusterRole", f"{RBAC}/clusterroles")
        )
        role = self.create(scope, {"metadata": {"generateName": "clients-"}, "rules": rules})["metadata"]["name"]
        self.create(
            scope.removesuffix("s") + "bindings",
            {
                "metadata": {"name": role},
                "roleRef": {"apiGroup": _RBAC_GROUP, "kind": kind, "name": role},
                "subjects": [{"apiGroup": _RBAC_GROUP, "kind": "User", "name": self.user}],
            },
        )

    def namespace_for(self, *words: str) -> str:
        """A new namespace whose name is made of these words."""
        name = "-".join(words).replace(".", "-")[-63:].strip("-")
        self.create("/api/v1/namespaces", {"metadata": {"name": name}})
        return name

    def audited(self) -> Iterator[dict[str, Any]]:
        """What public clients asked, as the audit log has it."""
        for line in self._audit_log.read_text().splitlines() if self._audit_log.exists() else ():
            found = json.loads(line)
            if not found.get("userAgent", "").startswith(_NO_CLIENTS):
                yield found

    def failed_requests(self) -> list[str]:
        """Requests that the server did not understand, or failed to answer: there should be none."""
        return [
            f"{each['verb']} {each['requestURI']} by {each['userAgent']}: {each['responseStatus']}"
            for each in self.audited()
            if each.get("responseStatus", {}).get("code") in _NOT_UNDERSTOOD
            and each["responseStatus"].get("message") not in _HARMLESS
        ]


class Ours(Server):
    user = "viewer"

    def __init__(self, directory: Path, *flags: str) -> None:
        super().__init__(directory)
        self.program = Program(directory, *self.audit_flags(), *flags)

    def __enter__(self) -> Self:
        self.program.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.program.end()

    @property
    def admin_kubeconfig(self) -> Path:
        return self.program.data / "admin.kubeconfig"

    @property
    def user_kubeconfig(self) -> Path:
        path = self.directory / "user.kubeconfig"
        document = yaml.safe_load(self.admin_kubeconfig.read_text())
        document["users"][0]["user"] = {"token": "viewertoken"}
        path.write_text(json.dumps(document))
        return path

    @property
    def admin(self) -> RestConfig:
        url, authority = f"https://127.0.0.1:{self.program.port}", self.program.data / "ca.crt"
        return exchanges.access(url, ca_file=authority, token=ADMIN_TOKEN)

    def restart(self) -> None:
        assert self.program.stop() == 0
        self.program.start()

    def back_up(self, file: Path) -> None:
        self._storage("backup", str(file))

    def restore(self, file: Path) -> None:
        """Turns everything back to a backup, under clients that know more."""
        assert self.program.stop() == 0
        self._storage("restore", str(file))
        self.program.start()

    def _storage(self, *arguments: str) -> None:
        command = [sys.executable, "-m", "clusterregistry", "storage", *arguments, "--data-dir", str(self.program.data)]
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL, capture_output=True)


class Reference(Server):
    user = "jane"

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self._host = HostCluster(directory, *self.audit_flags())

    def __enter__(self) -> Self:
        self._host.__enter__()
        kinds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        self.create(kinds, yaml.safe_load(_CRD.read_text()))
        wait_for(lambda: self.has(CLUSTERS))
        return self

    def __exit__(self, *_: object) -> None:
        self._host.__exit__()

    @property
    def admin_kubeconfig(self) -> Path:
        return self._host.kubeconfig(self.directory / "admin.kubeconfig", ADMIN)

    @property
    def user_kubeconfig(self) -> Path:
        return self._host.kubeconfig(self.directory / "user.kubeconfig", JANE)

    @property
    def admin(self) -> RestConfig:
        return exchanges.access(self._host.url, ca_file=self._host.serving.file, token=ADMIN)

    def restart(self) -> None:
        self._host.restart()


def server(directory: Path) -> Server:
    return Reference(directory) if AGAINST == "kube-apiserver" else Ours(directory)
