"""Plays node and network for a host cluster that has none: kubelet, controllers and kube-proxy in one thread.

It reads the Deployments that it finds in kube-apiserver, creates their pods there (so that admission has its say),
mounts their Secrets and volumes as directories, starts the container's own command as a local process, asks its
readiness probe, writes what it sees into status, and forwards node ports to the pods that a Service selects.

What a pod's own file system and network would give is put in place by rewriting paths and the address to listen on:
each pod has an address of its own on loopback. Nothing else of the command is changed.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import ipaddress
import random
import select
import socket
import ssl
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import clusterregistry
from clusterregistry.crinit.errors import HostError
from tests.e2e.host_clusters import HostCluster
from tests.e2e.processes import Process

_SOURCES = Path(clusterregistry.__file__).parent.parent
_PAUSE = 0.1


class NotYet(Exception):  # noqa: N818 - a kubelet waits then, and tries again
    """Something that a pod mounts is not there."""


class Kubelet:
    """Runs the Deployments of one namespace from ``with`` to its end."""

    def __init__(self, host: HostCluster, directory: Path, namespace: str) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._host, self._directory, self._namespace = host, directory, namespace
        self.pods: dict[str, Pod] = {}
        self._proxies: dict[int, NodePort] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.mistakes: list[str] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join(60)
        for pod in self.pods.values():
            pod.stop()
        for proxy in self._proxies.values():
            proxy.close()
        assert self.mistakes == []

    def _run(self) -> None:
        while not self._ended.wait(_PAUSE):
            try:
                self._look()
            except NotYet:
                continue
            except HostError as error:
                # What was deleted or changed meanwhile is seen next time.
                if error.status not in (0, 404, 409) and "being terminated" not in str(error):
                    self.mistakes.append(str(error))

    def _look(self) -> None:
        found = {each["metadata"]["name"]: each for each in self._items("apps/v1", "deployments")}
        for name in set(self.pods) - set(found):
            self.pods.pop(name).stop()
        for name, deployment in found.items():
            self._see_to(name, deployment)
        self._bind_volumes()
        self._aggregate()
        for service in self._items("v1", "services"):
            self._forward(service)

    def _items(self, version: str, plural: str) -> list[dict[str, Any]]:
        return self._host.admin.items(self._path(version, plural))

    def _path(self, version: str, plural: str, name: str = "") -> str:
        root = f"/apis/{version}" if "/" in version else f"/api/{version}"
        return f"{root}/namespaces/{self._namespace}/{plural}" + (f"/{name}" if name else "")

    def _see_to(self, name: str, deployment: dict[str, Any]) -> None:
        template = deployment["spec"]["template"]
        pod = self.pods.get(name)
        if pod is None or pod.template != template:
            assert pod is None or deployment["spec"]["strategy"]["type"] == "Recreate"
            if pod is not None:
                pod.stop()
                self._host.admin.delete(self._path("v1", "pods", pod.name))
            self.pods[name] = pod = self._started(name, template)
        ready = 1 if pod.is_ready() else 0
        status = {
            "observedGeneration": deployment["metadata"]["generation"],
            "replicas": 1,
            "updatedReplicas": 1,
            "readyReplicas": ready,
            "availableReplicas": ready,
        }
        if deployment.get("status") != status:
            self._host.merge(self._path("apps/v1", "deployments", name) + "/status", {"status": status})

    def _started(self, name: str, template: dict[str, Any]) -> Pod:
        number = random.randrange(1 << 16, (1 << 24) - 1)
        pod_name = f"{name}-{number:06x}"
        directory = self._directory / pod_name
        for volume in template["spec"]["volumes"]:  # first, so that nothing is made that cannot start yet
            self._mount(volume, directory / volume["name"])
        described = {**template["metadata"], "name": pod_name}
        self._host.create(
            self._path("v1", "pods"),
            {"apiVersion": "v1", "kind": "Pod", "metadata": described, "spec": template["spec"]},
        )
        pod = Pod(pod_name, template, address=str(ipaddress.ip_address("127.0.0.0") + number))
        pod.start(directory, self._mount, self._credentials(template["spec"], directory))
        return pod

    def _mount(self, volume: dict[str, Any], place: Path) -> Path:
        """The directory of a volume; a claim's is the same for every pod."""
        if "persistentVolumeClaim" in volume:
            claim = volume["persistentVolumeClaim"]["claimName"]
            if self._host.admin.get(self._path("v1", "persistentvolumeclaims", claim)) is None:
                raise NotYet(claim)
            place = self._directory / "claims" / claim
        place.mkdir(parents=True, exist_ok=True)
        if "secret" in volume:
            secret = self._host.admin.get(self._path("v1", "secrets", volume["secret"]["secretName"]))
            if secret is None:
                raise NotYet(volume["name"])
            only = {each["key"]: each["path"] for each in volume["secret"].get("items", [])}
            for key, data in secret["data"].items():
                if not only or key in only:
                    (place / only.get(key, key)).write_bytes(base64.b64decode(data))
        return place

    def _bind_volumes(self) -> None:
        for claim in self._items("v1", "persistentvolumeclaims"):
            if claim["status"].get("phase") != "Bound":
                path = self._path("v1", "persistentvolumeclaims", claim["metadata"]["name"]) + "/status"
                self._host.merge(path, {"status": {"phase": "Bound"}})

    def _aggregate(self) -> None:
        """Leads kube-apiserver, which reaches no address of a service here, to the pod behind an APIService."""
        path = "/apis/apiregistration.k8s.io/v1/apiservices/v1alpha1.clusterregistry.k8s.io"
        service = ((self._host.admin.get(path) or {}).get("spec") or {}).get("service") or {}
        pod = self.pods.get(service.get("name", ""))
        if service.get("namespace") != self._namespace or pod is None or service["port"] != 443:
            return
        # Endpoints must not be on loopback; a name may be an address there. It then names the port too.
        named = {"type": "ExternalName", "externalName": pod.address}
        found = self._host.admin.get(self._path("v1", "services", service["name"]))
        if found is None:
            return
        target = pod.ports()[found["spec"]["ports"][0]["targetPort"]]
        self._host.merge(self._path("v1", "services", service["name"]), {"spec": named})
        self._host.merge(path, {"spec": {"service": {"port": target}}})

    def _credentials(self, spec: dict[str, Any], directory: Path) -> dict[str, str]:
        """The token of the service account, as a kubeconfig: where a pod finds it there is only one place."""
        if not spec["automountServiceAccountToken"]:
            return {}
        account = self._path("v1", "serviceaccounts", spec["serviceAccountName"])
        asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        token = self._host.create(f"{account}/token", asked)["status"]["token"]
        directory.mkdir(parents=True, exist_ok=True)
        return {"CLUSTERREGISTRY_KUBECONFIG": str(self._host.kubeconfig(directory / "service-account", token))}

    def _forward(self, service: dict[str, Any]) -> None:
        """To the pod that the selector finds, at the container port that the target port names."""
        for port in service["spec"].get("ports", []):
            number = port.get("nodePort")
            if number and number not in self._proxies:
                selector = service["spec"]["selector"]
                self._proxies[number] = NodePort(number, lambda: self._target(selector, port["targetPort"]))  # noqa: B023

    def _target(self, selector: dict[str, str], target: str) -> tuple[str, int] | None:
        for pod in list(self.pods.values()):
            if selector.items() <= pod.template["metadata"]["labels"].items():
                return pod.address, pod.ports()[target]
        return None


class Pod:
    """One pod as a local process."""

    def __init__(self, name: str, template: dict[str, Any], *, address: str) -> None:
        self.name, self.template, self.address = name, template, address
        self._container = template["spec"]["containers"][0]
        self._process: Process | None = None

    def ports(self) -> dict[str, int]:
        return {each["name"]: each["containerPort"] for each in self._container["ports"]}

    def start(self, directory: Path, mount: Callable[[dict[str, Any], Path], Path], given: dict[str, str]) -> None:
        volumes = {each["name"]: each for each in self.template["spec"]["volumes"]}
        places = {
            each["mountPath"]: str(mount(volumes[each["name"]], directory / each["name"]))
            for each in self._container["volumeMounts"]
        }
        program, *words = self._container["command"]
        assert program == "clusterregistry"
        arguments = [self._rewritten(argument, places) for argument in self._container["args"]]
        command = [sys.executable, "-m", program, *words, *arguments]
        self._process = Process(command, log=directory / "log", environ={**given, "PYTHONPATH": str(_SOURCES)})
        self._process.start()

    def _rewritten(self, argument: str, places: dict[str, str]) -> str:
        name, equals, value = argument.partition("=")
        if argument == "--bind-address=0.0.0.0":
            return f"{name}={self.address}"
        for path, place in places.items():
            if value == path or value.startswith(path + "/"):
                return f"{name}={place}{value.removeprefix(path)}"
        return name + equals + value

    def is_ready(self) -> bool:
        """What the readiness probe says. Like the kubelet, it does not check certificates."""
        probe = self._container["readinessProbe"]["httpGet"]
        assert probe["scheme"] == "HTTPS"
        connection = http.client.HTTPSConnection(
            self.address, self.ports()[probe["port"]], timeout=5, context=ssl._create_unverified_context()
        )
        with contextlib.closing(connection):
            try:
                connection.request("GET", probe["path"])
                return connection.getresponse().status == 200
            except (OSError, http.client.HTTPException):
                return False

    def stop(self) -> None:
        if self._process is not None:
            self._process.end()


class NodePort:
    """Forwards connections, each in a thread of its own."""

    def __init__(self, port: int, target: Callable[[], tuple[str, int] | None]) -> None:
        self._target = target
        self._listening = socket.create_server(("127.0.0.1", port))
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listening.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        target = self._target()
        with connection, contextlib.suppress(OSError):
            if target is None:
                return
            with socket.create_connection(target, timeout=30) as pod:
                pod.settimeout(None)
                copy(connection, pod)


def copy(one: socket.socket, other: socket.socket) -> None:
    ways = {one: other, other: one}
    while True:
        readable, _, _ = select.select(list(ways), [], [])
        for each in readable:
            data = each.recv(65536)
            if not data:
                return
            ways[each].sendall(data)
