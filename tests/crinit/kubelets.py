"""Plays node, controllers and network for a host cluster that has none, in one thread.

It reads the Deployments that it finds in kube-apiserver, creates their pods there (so that admission has its say),
mounts their Secrets and volumes as directories, starts the container's own command as a local process, asks its
readiness probe, writes what it sees into status and events, serves logs to kube-apiserver, and leads connections to
the pods that a Service selects.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import itertools
import random
import threading
from pathlib import Path
from typing import Any, Self

from clusterregistry.crinit.errors import HostError
from tests.crinit import kubelet_endpoint
from tests.crinit.containers import Pod, mounting
from tests.crinit.namespaces import Namespace
from tests.crinit.routes import Routes
from tests.crinit.volumes import ROOT_AUTHORITY, NotYet, Volumes, swap
from tests.system.e2e.host_clusters import HostCluster

_PAUSE = 0.2
_ROUNDS_BETWEEN = 5
_NODE = "node"
_NODES = "/api/v1/nodes"
_LEFT_BY_CONTROLLERS = (
    ("v1", "configmaps"), ("v1", "events"), ("v1", "endpoints"), ("discovery.k8s.io/v1", "endpointslices"),
)  # fmt: skip
_events = itertools.count(1)


class Kubelet:
    """Runs the Deployments of one namespace from ``with`` to its end.

    ``pods`` are by the name of their Deployment; those of further replicas have a number behind it: ``fleet/1``.
    """

    def __init__(self, host: HostCluster, directory: Path, namespace: str) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._host, self._directory, self._namespace = host, directory, Namespace(host, namespace)
        self.volumes = Volumes(self._namespace, directory)
        self.pods: dict[str, Pod] = {}
        self._ended, self._open = threading.Event(), contextlib.ExitStack()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._rounds = itertools.count(1)
        self.mistakes: list[str] = []

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            stack.callback(self._stop)
            self._routes = stack.enter_context(contextlib.closing(Routes(self._namespace, self.pods)))
            self._register(stack.enter_context(kubelet_endpoint.listening(self._host.directory, self._log)))
            stack.callback(self._host.admin.delete, f"{_NODES}/{_NODE}")
            self._thread.start()
            self._open = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join(60)
        self._open.close()
        assert self.mistakes == []

    def _stop(self) -> None:
        for pod in self.pods.values():
            pod.stop()

    def _register(self, port: int) -> None:
        addresses = [{"type": "InternalIP", "address": kubelet_endpoint.ADDRESS}]
        status = {"addresses": addresses, "daemonEndpoints": {"kubeletEndpoint": {"Port": port}}}
        self._host.create(_NODES, {"metadata": {"name": _NODE}})
        self._host.merge(f"{_NODES}/{_NODE}/status", {"status": status})

    def _log(self, name: str, previous: bool) -> Path | None:  # noqa: FBT001 - as it is asked
        return next((pod.log(previous=previous) for pod in self.pods.values() if pod.name == name), None)

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
        found = self._host.admin.get(f"/api/v1/namespaces/{self._namespace.name}")
        if found is None:
            return
        self._control(found)
        deployments = {each["metadata"]["name"]: each for each in self._namespace.items("apps/v1", "deployments")}
        wanted = {key for name, each in deployments.items() for key in _keys(name, each)}
        for key in set(self.pods) - wanted:
            self._remove(key)
        for name, deployment in deployments.items():
            self._see_to(name, deployment)
        self._routes.look()

    def _control(self, found: dict[str, Any]) -> None:
        """What the controllers for namespaces, their authority and volumes do."""
        if found["metadata"].get("deletionTimestamp"):
            self._empty()
            return
        if self._namespace.get("configmaps", ROOT_AUTHORITY) is None:
            data = {"ca.crt": self._host.serving.pem.decode()}
            self._namespace.create("v1", "configmaps", {"metadata": {"name": ROOT_AUTHORITY}, "data": data})
        for claim in self._namespace.items("v1", "persistentvolumeclaims"):
            name = claim["metadata"]["name"]
            if claim["metadata"].get("deletionTimestamp"):
                path = self._namespace.path("v1", "persistentvolumeclaims", name)
                self._host.merge(path, {"metadata": {"finalizers": None}})
            elif claim["status"].get("phase") != "Bound":
                self._namespace.set_status("v1", "persistentvolumeclaims", name, {"phase": "Bound"})

    def _empty(self) -> None:
        """A namespace that is deleted goes when nothing is in it any more."""
        for name in list(self.pods):
            self._remove(name)
        for version, plural in _LEFT_BY_CONTROLLERS:
            self._host.admin.delete(self._namespace.path(version, plural))
        finalized = {"metadata": {"name": self._namespace.name}, "spec": {"finalizers": []}}
        self._host.admin.call("PUT", f"/api/v1/namespaces/{self._namespace.name}/finalize", body=finalized)

    def _see_to(self, name: str, deployment: dict[str, Any]) -> None:
        keys = _keys(name, deployment)
        pods = [self._current(key, deployment["spec"]["template"]) for key in keys]
        for pod in pods:
            self._refresh(pod)
        ready = sum(self._tell(pod) for pod in pods)
        status = {
            "observedGeneration": deployment["metadata"]["generation"],
            "replicas": len(pods),
            "updatedReplicas": len(pods),
            "readyReplicas": ready,
            "availableReplicas": ready,
        }
        if deployment.get("status") != status:
            self._namespace.set_status("apps/v1", "deployments", name, status)

    def _current(self, key: str, template: dict[str, Any]) -> Pod:
        """The pod of the current template. The old one ends first, whatever the strategy is."""
        pod = self.pods.get(key)
        if pod is None or pod.template != template:
            if pod is not None:
                self._remove(key)
            self.pods[key] = pod = self._started(key.partition("/")[0], template)
        return pod

    def _remove(self, name: str) -> None:
        pod = self.pods.pop(name)
        pod.stop()
        path = self._namespace.path("v1", "pods", pod.name)
        with contextlib.suppress(HostError):  # it went with its namespace
            self._host.admin.call("DELETE", path, body={"gracePeriodSeconds": 0})

    def _started(self, name: str, template: dict[str, Any]) -> Pod:
        number = random.randrange(1 << 16, (1 << 24) - 1)
        pod_name = f"{name}-{number:06x}"
        address = f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}"
        directory = self._directory / pod_name
        mounts = [(each, directory / each["name"]) for each in template["spec"]["volumes"]]
        places = {volume["name"]: self.volumes.mount(volume, place) for volume, place in mounts}
        # Last, so that nothing is made that cannot start yet.
        made = self._created(pod_name, template)
        for volume in made["spec"]["volumes"]:
            if "projected" in volume:
                places[volume["name"]] = self.volumes.project(made, volume, directory / volume["name"])
        pod = Pod(made, template, address=address, directory=directory)
        mounted = made["spec"]["containers"][0]["volumeMounts"]
        at = {each["mountPath"]: str(places[each["name"]]) for each in mounted}
        pod.start(at, self._environ(made, places), hosts=self._routes.hosts())
        self._event(pod, "Started")
        return pod

    def _created(self, name: str, template: dict[str, Any]) -> dict[str, Any]:
        described = {**template["metadata"], "name": name}
        spec = {**template["spec"], "nodeName": _NODE}
        try:
            return self._namespace.create("v1", "pods", {"metadata": described, "spec": spec})
        except HostError as error:
            if "error looking up service account" in str(error):
                raise NotYet(name) from None
            raise

    def _environ(self, made: dict[str, Any], places: dict[str, Path]) -> dict[str, str]:
        """What every pod has. Where nothing can be mounted, the service account is in a kubeconfig instead."""
        environ = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(self._host.port)}
        for volume in made["spec"]["volumes"]:
            if "projected" in volume and not mounting():
                place = places[volume["name"]]
                token = (place / "token").read_text()
                environ["CLUSTERREGISTRY_KUBECONFIG"] = str(self._host.kubeconfig(place / "kubeconfig", token))
        return environ

    def _refresh(self, pod: Pod) -> None:
        """Secrets that have changed, now and then."""
        if next(self._rounds) % _ROUNDS_BETWEEN == 0:
            for volume in pod.template["spec"]["volumes"]:
                if "secret" in volume or "configMap" in volume:
                    self.volumes.mount(volume, pod.directory / volume["name"])

    def _tell(self, pod: Pod) -> bool:
        """Brings the pod's status up to date, and answers whether it is ready."""
        if happened := pod.look():
            self._event(pod, happened)
        status = pod.status()
        if status != pod.reported:
            self._namespace.set_status("v1", "pods", pod.name, status)
            pod.reported = status
        return pod.is_reported_ready()

    def _event(self, pod: Pod, reason: str) -> None:
        failed = reason == "BackOff"
        container, now = pod.spec["containers"][0]["name"], dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        event = {
            "metadata": {"name": f"{pod.name}.{next(_events)}"},
            "involvedObject": {"kind": "Pod", "namespace": self._namespace.name, "name": pod.name, "uid": pod.uid},
            "type": "Warning" if failed else "Normal",
            "reason": reason,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "message": f"Back-off restarting failed container {container}" if failed else f"Started {container}",
        }
        self._namespace.create("v1", "events", event)

    def rotate(self, name: str, token: str) -> None:
        """Gives a pod another token, in its file."""
        pod = self.pods[name]
        for volume in pod.spec["volumes"]:
            if "projected" in volume:
                place = pod.directory / volume["name"]
                kept = {each: (place / each).read_text() for each in ("ca.crt", "namespace")}
                swap(place, {**kept, "token": token})


def _keys(name: str, deployment: dict[str, Any]) -> list[str]:
    return [f"{name}/{number}" if number else name for number in range(deployment["spec"]["replicas"])]
