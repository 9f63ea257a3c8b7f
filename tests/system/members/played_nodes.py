"""Nodes without machines: one loop in one thread plays the kubelets of any number of clusters.

It registers nodes with their capacity, renews their Leases, and writes the status of the pods that the scheduler binds
to them, as a kubelet does. No container runs. How a pod fares is told by the annotation ``BEHAVIOR`` of the pod.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import itertools
import logging
from collections.abc import Coroutine, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Self

from clusterregistry.client.errors import AlreadyExistsError, ClientError, ConflictError, NotFoundError
from clusterregistry.client.informer import Handler, Informer, InformerOptions
from clusterregistry.client.rest import Client, DeleteOptions, GroupVersionResource, ListOptions, Object, PatchType
from clusterregistry.client.rest_config import RestConfig
from clusterregistry.client.sync import LoopThread

BEHAVIOR = "played-nodes.test/behavior"
"""The annotation of a pod; without it, containers run, and those of pods that are not restarted complete."""

NODES = GroupVersionResource("", "v1", "nodes")
PODS = GroupVersionResource("", "v1", "pods")
LEASES = GroupVersionResource("coordination.k8s.io", "v1", "leases")
LEASE_NAMESPACE = "kube-node-lease"
RENEWED_EVERY = 4.0
"""Seconds between two renewals of a Lease."""

CAPACITY = {"cpu": "4", "memory": "16Gi", "pods": "110", "ephemeral-storage": "100Gi"}
ALLOCATABLE = {"cpu": "3800m", "memory": "15Gi", "pods": "110", "ephemeral-storage": "90Gi"}

_log = logging.getLogger(__name__)
_addresses = itertools.count(1)


class Behavior(StrEnum):
    """How a pod fares."""

    CRASH_LOOP = "crash-loop"
    SLOW = "slow"
    """It becomes ready ``SLOW_SECONDS`` after its start."""
    NOT_READY = "not-ready"


SLOW_SECONDS = 3.0


class Health(StrEnum):
    """How a node fares."""

    READY = "Ready"
    NOT_READY = "NotReady"
    SILENT = "Silent"
    """Neither Lease nor status is renewed: the node controller notices it."""


@dataclass
class Node:
    """A node as its cluster is told about it."""

    name: str
    health: Health = Health.READY
    changed: asyncio.Event = field(default_factory=asyncio.Event)


class PlayedNodes:
    """The nodes of all clusters that are added, from ``with`` to its end."""

    def __init__(self) -> None:
        self._loop = LoopThread()
        self._clusters: dict[str, _Cluster] = {}
        self.mistakes: list[str] = []
        """What went wrong that is not explained by a cluster that is away."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.run(self._end)
        self._loop.close()
        assert self.mistakes == []

    async def _end(self) -> None:
        for cluster in self._clusters.values():
            await cluster.end()

    def add(self, cluster: str, config: RestConfig, *, nodes: Iterable[str]) -> None:
        """Begins to play these nodes of a cluster, as the user of the configuration, and waits until all are there."""
        self._loop.run(lambda: self._add(cluster, config, list(nodes)))

    async def _add(self, name: str, config: RestConfig, nodes: list[str]) -> None:
        self._clusters[name] = cluster = _Cluster(config, nodes, self.mistakes)
        await cluster.start()

    def set_health(self, cluster: str, node: str, health: Health) -> None:
        """Takes effect at once; what the cluster makes of it takes a moment."""
        self._loop.run(lambda: self._clusters[cluster].set_health(node, health))


class _Cluster:
    """The kubelets of one cluster."""

    def __init__(self, config: RestConfig, nodes: list[str], mistakes: list[str]) -> None:
        self._client, self._mistakes = Client(config), mistakes
        self._nodes = {name: Node(name) for name in nodes}
        bound = InformerOptions(selection=ListOptions(field_selector="spec.nodeName!="))
        self._pods = Informer(self._client.resource(PODS), bound)
        self._pods.add_handler(Handler(on_add=self._see, on_update=lambda _, pod: self._see(pod)))
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        await asyncio.gather(*(self._register(node) for node in self._nodes.values()))
        self._spawn(self._pods.run())
        for node in self._nodes.values():
            self._spawn(self._keep(node))

    async def end(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._client.close()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._mistakes.append(repr(error))

    async def set_health(self, name: str, health: Health) -> None:
        node = self._nodes[name]
        node.health = health
        node.changed.set()
        for pod in self._pods.store.objects():
            if pod["spec"]["nodeName"] == name:
                self._see(pod)

    # Nodes -----------------------------------------------------------------------------------------------------------

    async def _register(self, node: Node) -> None:
        labels = {"kubernetes.io/hostname": node.name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
        with contextlib.suppress(AlreadyExistsError):
            await self._client.resource(NODES).create({"metadata": {"name": node.name, "labels": labels}})
        await self._report(node)
        await self._renew(node)

    async def _keep(self, node: Node) -> None:
        """Renews the Lease, and the status as soon as it changes. A cluster that is away is called again."""
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(node.changed.wait(), RENEWED_EVERY)
            if node.health is Health.SILENT:
                node.changed.clear()
                continue
            try:
                if node.changed.is_set():
                    node.changed.clear()
                    await self._report(node)
                await self._renew(node)
            except ClientError as error:
                node.changed.set()  # as a kubelet that has lost its API server, it reports again
                _log.info("node %s: %s", node.name, error)
                await asyncio.sleep(1.0)

    async def _report(self, node: Node) -> None:
        status = node_status(node)
        await self._client.resource(NODES).patch(
            node.name, {"status": status}, patch_type=PatchType.STRATEGIC_MERGE, subresource="status"
        )

    async def _renew(self, node: Node) -> None:
        leases = self._client.resource(LEASES, namespace=LEASE_NAMESPACE)
        spec = {"holderIdentity": node.name, "leaseDurationSeconds": 40, "renewTime": _micro_time()}
        try:
            await leases.patch(node.name, {"spec": spec})
        except NotFoundError:
            await leases.create({"metadata": {"name": node.name}, "spec": spec})

    # Pods ------------------------------------------------------------------------------------------------------------

    def _see(self, pod: Object) -> None:
        node = self._nodes.get(pod["spec"]["nodeName"])
        if node is not None and node.health is not Health.SILENT:
            self._spawn(self._play(pod))

    async def _play(self, pod: Object) -> None:
        try:
            if pod["metadata"].get("deletionTimestamp"):
                await self._delete(pod)
            else:
                await self._run(pod)
        except (NotFoundError, ConflictError):
            return  # deleted or changed meanwhile: another event follows
        except ClientError as error:
            _log.info("pod %s: %s", pod["metadata"]["name"], error)
            await asyncio.sleep(1.0)
            if current := self._pods.store.get(f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"):
                self._see(current)

    async def _delete(self, pod: Object) -> None:
        options = DeleteOptions(grace_period_seconds=0, uid=pod["metadata"]["uid"])
        await self._resource(pod).delete(pod["metadata"]["name"], options)

    async def _run(self, pod: Object) -> None:
        """Takes a pod one step further; the event of that step brings the next."""
        wanted = pod_status(pod)
        if wanted is None:
            return
        if _is_slow_start(pod, wanted):
            await asyncio.sleep(SLOW_SECONDS)
        # The version of the pod is a precondition: a step is never repeated on top of a later one.
        version = {"uid": pod["metadata"]["uid"], "resourceVersion": pod["metadata"]["resourceVersion"]}
        await self._resource(pod).patch(
            pod["metadata"]["name"],
            {"metadata": version, "status": wanted},
            patch_type=PatchType.STRATEGIC_MERGE,
            subresource="status",
        )

    def _resource(self, pod: Object) -> Any:
        return self._client.resource(PODS, namespace=pod["metadata"]["namespace"])


def node_status(node: Node) -> Object:
    ready = node.health is Health.READY
    reason = ("KubeletReady", "played") if ready else ("KubeletNotReady", "container runtime is down")
    now = _time()
    condition = {"type": "Ready", "status": "True" if ready else "False", "reason": reason[0], "message": reason[1]}
    return {
        "capacity": CAPACITY,
        "allocatable": ALLOCATABLE,
        "conditions": [{**condition, "lastHeartbeatTime": now, "lastTransitionTime": now}],
        "addresses": [{"type": "Hostname", "address": node.name}],
        "nodeInfo": {
            "machineID": node.name, "systemUUID": node.name, "bootID": "", "kernelVersion": "6.1.0",
            "osImage": "played", "containerRuntimeVersion": "played://1", "kubeletVersion": "v1.36.4",
            "kubeProxyVersion": "", "operatingSystem": "linux", "architecture": "amd64",
        },
    }  # fmt: skip


def pod_status(pod: Object) -> Object | None:
    """The status that follows the one that the pod has; None if it is final."""
    behavior = (pod["metadata"].get("annotations") or {}).get(BEHAVIOR, "")
    phase, started = pod["status"].get("phase", "Pending"), pod["status"].get("startTime")
    if phase in ("Succeeded", "Failed"):
        return None
    if not started:
        address = f"10.{next(_addresses) >> 8 & 255}.{next(_addresses) & 255}.1"
        return {"phase": "Pending", "startTime": _time(), "podIP": address, "podIPs": [{"ip": address}]}
    if behavior == Behavior.CRASH_LOOP:
        return _next(pod, _described(pod, "Running", ready=False, state=_CRASHED, restarts=3))
    if behavior == Behavior.NOT_READY:
        return _next(pod, _described(pod, "Running", ready=False, state=_RUNNING))
    if pod["spec"].get("restartPolicy") != "Always" and phase == "Running":
        return _described(pod, "Succeeded", ready=False, state={"terminated": {"exitCode": 0, "reason": "Completed"}})
    return _next(pod, _described(pod, "Running", ready=True, state=_RUNNING))


_RUNNING: Object = {"running": {}}
_CRASHED: Object = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 40s restarting failed container"}}


def _next(pod: Object, wanted: Object) -> Object | None:
    """Nothing if the pod has this phase and readiness already."""
    return None if _summary(pod["status"]) == _summary(wanted) else wanted


def _summary(status: Object) -> tuple[Any, ...]:
    return (
        status.get("phase"),
        tuple(
            sorted((each["type"], each["status"]) for each in status.get("conditions") or [] if each["type"] in _OURS)
        ),
    )


_OURS = ("Ready", "ContainersReady", "Initialized")


def _described(pod: Object, phase: str, *, ready: bool, state: Object, restarts: int = 0) -> Object:
    now, truth = _time(), "True" if ready else "False"
    values = {"Initialized": "True", "ContainersReady": truth, "Ready": truth}
    containers = [
        {
            "name": each["name"],
            "image": each["image"],
            "imageID": "",
            "ready": ready,
            "started": ready,
            "restartCount": restarts,
            "state": state,
        }
        for each in pod["spec"]["containers"]
    ]
    conditions = [{"type": name, "status": value, "lastTransitionTime": now} for name, value in values.items()]
    return {"phase": phase, "conditions": conditions, "containerStatuses": containers}


def _is_slow_start(pod: Object, wanted: Object) -> bool:
    slow = (pod["metadata"].get("annotations") or {}).get(BEHAVIOR) == Behavior.SLOW
    return slow and wanted.get("phase") == "Running"


def _time() -> str:
    return dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _micro_time() -> str:
    return dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
