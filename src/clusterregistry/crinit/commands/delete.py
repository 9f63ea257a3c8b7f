"""``delete``: removes the objects that ``init`` made, found by their labels. Idempotent."""

from __future__ import annotations

from collections.abc import Iterator

from clusterregistry.crinit.commands import apply, registration
from clusterregistry.crinit.commands.session import Session
from clusterregistry.crinit.host import answers, kubeconfig_files
from clusterregistry.crinit.host.client import path_of
from clusterregistry.crinit.manifests.access import KUBE_SYSTEM, RBAC
from clusterregistry.crinit.manifests.objects import CONTROLLER, CRINIT, INSTANCE, MANAGED_BY, PART
from clusterregistry.crinit.settings import Mode

_SERVING = (
    ("apps/v1", "Deployment"),
    ("apps/v1", "StatefulSet"),
    ("policy/v1", "PodDisruptionBudget"),
    ("networking.k8s.io/v1", "NetworkPolicy"),
    ("v1", "Service"),
    ("v1", "ServiceAccount"),
)
_RIGHTS = ((f"{RBAC}/v1", "RoleBinding"), (f"{RBAC}/v1", "Role"))
"""Of the controller of an aggregated registry."""
_DATA = (("v1", "PersistentVolumeClaim"), ("v1", "Secret"))
_RECORD = (("v1", "ConfigMap"),)
"""Deleted last: an interrupted run finds the other objects by it."""

_OCCUPANTS = (("apps/v1", "Deployment"), ("apps/v1", "StatefulSet"), ("v1", "Pod"), ("v1", "PersistentVolumeClaim"),
              ("v1", "Service"), ("v1", "ConfigMap"), ("v1", "Secret"))  # fmt: skip
_IN_EVERY_NAMESPACE = "kube-root-ca.crt"


def run(session: Session, *, keep_data: bool, dry_run: bool) -> None:
    """Raises HostError; a missing object is no error."""
    answers.require_cluster(session.client)
    serving = (*_SERVING, *_RIGHTS) if session.mode is Mode.AGGREGATED else _SERVING
    kinds = serving if keep_data else (*serving, *_DATA, *_RECORD)
    found = [*_cluster_wide(session), *_in_namespace(session, kinds)]
    if not found:
        session.progress.say(f'there is nothing of a registry "{session.name}" in the namespace {session.namespace}')
    for path, shown in found:
        if dry_run:
            session.progress.say(f"would delete {shown}")
        else:
            _delete(session, path, shown)
    if not dry_run:
        if not keep_data:
            _namespace(session)
        _remove_context(session)


def _delete(session: Session, path: str, shown: str) -> None:
    with session.progress.step(shown) as outcome:
        outcome.text = "deleted" if session.client.delete(path) else "was gone already"


def _cluster_wide(session: Session) -> Iterator[tuple[str, str]]:
    """Finds objects by exact names, since no label has the namespace; the APIServices first, to end the requests."""
    for version in registration.registered(session):
        yield registration.path_to(version), registration.shown_as(version)
    prefix = f"{PART}-{session.namespace}-{session.name}"
    rights = (
        ("ClusterRoleBinding", "", f"{prefix}-auth-delegator"),
        ("RoleBinding", KUBE_SYSTEM, f"{prefix}-auth-reader"),
        ("ClusterRoleBinding", "", f"{prefix}-{CONTROLLER}"),
        ("ClusterRole", "", f"{prefix}-{CONTROLLER}"),
    )
    for kind, namespace, name in rights:
        path = path_of(f"{RBAC}/v1", kind, namespace=namespace, name=name)
        found = session.client.get(path)
        if found is not None and apply.is_ours(found):
            yield path, f"{kind} {name}"


def _in_namespace(session: Session, kinds: tuple[tuple[str, str], ...]) -> Iterator[tuple[str, str]]:
    selector = f"{INSTANCE}={session.name},{MANAGED_BY}={CRINIT}"
    for version, kind in kinds:
        path = path_of(version, kind, namespace=session.namespace)
        for item in session.client.items(path, labelSelector=selector):
            name = item["metadata"]["name"]
            yield f"{path}/{name}", f"{kind} {session.namespace}/{name}"


def _namespace(session: Session) -> None:
    """Deletes the namespace if crinit made it and nothing else is in it."""
    path = path_of("v1", "Namespace", name=session.namespace)
    found = session.client.get(path)
    if found is None or not apply.is_ours(found):
        return
    if others := _others(session):
        session.progress.say(f"Namespace {session.namespace}: kept, there is {others[0]} in it")
        return
    _delete(session, path, f"Namespace {session.namespace}")


def _others(session: Session) -> list[str]:
    found = []
    for version, kind in _OCCUPANTS:
        for item in session.client.items(path_of(version, kind, namespace=session.namespace)):
            described = item["metadata"]
            stays = not described.get("deletionTimestamp") and described["name"] != _IN_EVERY_NAMESPACE
            is_own = (described.get("labels") or {}).get(INSTANCE) == session.name
            if stays and not is_own:
                found.append(f"{kind} {described['name']}")
    return found


def _remove_context(session: Session) -> None:
    with session.progress.step(f"Context {session.name} in {session.kubeconfig}") as outcome:
        outcome.text = "removed" if kubeconfig_files.remove(session.kubeconfig, session.name) else "was not there"
