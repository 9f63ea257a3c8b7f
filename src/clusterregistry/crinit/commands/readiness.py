"""Waits until the applied objects work, and reports why when they do not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from clusterregistry.api.clusterregistry import GROUP
from clusterregistry.crinit.commands import diagnosis
from clusterregistry.crinit.commands.session import Session
from clusterregistry.crinit.errors import HostError, NotReady
from clusterregistry.crinit.host.client import Client, path_of
from clusterregistry.crinit.manifests.objects import CONTROLLER, ETCD, SERVER
from clusterregistry.crinit.settings import Settings, Storage


def workloads(session: Session, settings: Settings) -> None:
    """Waits for the pods, in the order in which they depend on each other. Raises NotReady with the evidence."""
    if settings.storage is Storage.OWN_ETCD:
        _workload(session, kind="StatefulSet", name=settings.etcd_name, component=ETCD)
    _workload(session, kind="Deployment", name=settings.name, component=SERVER)
    if settings.controller:
        _workload(session, kind="Deployment", name=settings.controller_name, component=CONTROLLER)


def _workload(session: Session, *, kind: str, name: str, component: str) -> None:
    path = path_of("apps/v1", kind, namespace=session.namespace, name=name)
    reason = ""

    def is_done() -> bool:
        nonlocal reason
        found = session.client.get(path) or {}
        if is_ready(found):
            return True
        reason = _failure(found) or diagnosis.hopeless(diagnosis.current(diagnosis.pods(session, component), found))
        return bool(reason)

    with session.progress.step(f"Pods of {kind} {name}") as outcome:
        in_time = session.patience.until(is_done)
        if in_time and not reason:
            outcome.text = "ready"
            return
        why = reason or f"they are not ready after {session.patience.text()}"
        raise NotReady(
            f"the pods of {kind} {session.namespace}/{name} do not come up: {why}",
            remedy=_remedy(why, component),
            evidence=diagnosis.evidence(session, component, name),
        )


def is_ready(workload: Mapping[str, Any]) -> bool:
    """Whether all pods are of the latest version and ready."""
    spec, status = workload.get("spec") or {}, workload.get("status") or {}
    wanted = spec.get("replicas", 1)
    if status.get("observedGeneration", 0) < (workload.get("metadata") or {}).get("generation", 1):
        return False
    updated, ready = status.get("updatedReplicas", 0), status.get("readyReplicas", 0)
    return bool(updated >= wanted and ready >= wanted and status.get("replicas", 0) <= wanted)


def _failure(workload: Mapping[str, Any]) -> str:
    """Returns why pods are refused, such as by a quota, from the conditions of the workload."""
    for condition in (workload.get("status") or {}).get("conditions") or []:
        if condition.get("type") == "ReplicaFailure" and condition.get("status") == "True":
            return str(condition.get("message") or condition.get("reason"))
    return ""


def _remedy(why: str, component: str) -> str:
    if "quota" in why:
        return "raise the ResourceQuota of the namespace, then run the same command again"
    if "Image" in why:
        return "push the image to where the nodes find it, or name another: --image=IMAGE; then run it again"
    if "arguments" in why:
        flag = (
            "--controller-arg-overrides or --access-config" if component == CONTROLLER else "--apiserver-arg-overrides"
        )
        return f"correct them, as the log above says, with {flag}; then run it again"
    return "see the events and logs above; then run the same command again, with a longer --timeout if it is slow"


def clusters(session: Session, client: Client, *, version: str) -> None:
    """Waits until `kubectl get clusters` succeeds. Raises NotReady."""
    path = f"/apis/{GROUP}/{version}/clusters"
    reason = ""

    def are_listed() -> bool:
        nonlocal reason
        try:
            client.call("GET", path, query={"limit": "1"})
        except HostError as error:
            reason = str(error)
            return False
        return True

    with session.progress.step(f"kubectl get clusters --context {session.name}") as outcome:
        if not session.patience.until(are_listed):
            raise NotReady(
                f"the registry runs, but its clusters cannot be listed from here: {reason}",
                remedy="can this machine reach that address (firewalls, security groups)? Then run it again",
            )
        outcome.text = "works"
