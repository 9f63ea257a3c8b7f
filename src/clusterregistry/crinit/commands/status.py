"""``status``: prints the objects of a registry, and whether they work."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from clusterregistry.apimachinery.operator_error import OperatorError
from clusterregistry.crinit import options
from clusterregistry.crinit.commands import records, registration
from clusterregistry.crinit.commands.readiness import is_ready
from clusterregistry.crinit.commands.records import Record
from clusterregistry.crinit.commands.session import Session
from clusterregistry.crinit.host import answers
from clusterregistry.crinit.host.client import path_of
from clusterregistry.crinit.manifests import apiservices
from clusterregistry.crinit.manifests.objects import COMPONENT, CONTROLLER, INSTANCE
from clusterregistry.crinit.settings import Mode, split_arguments


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the output, and whether its object is as it should be."""

    text: str
    good: bool = True


def run(session: Session) -> bool:
    """Prints the state, and returns whether everything works. Raises OperatorError without such a registry."""
    answers.require_cluster(session.client)
    record = records.load(session.client, namespace=session.namespace, name=session.name)
    if record is None:
        raise OperatorError(
            f'crinit has deployed no registry "{session.name}" in the namespace {session.namespace}',
            remedy=f"deploy it: {session.command('init')}",
        )
    records.require_same_mode(record, session.mode, session.name)
    session.progress.say(f"{session.name} ({record.mode}, {record.storage}) in the namespace {session.namespace}")
    lines = [
        *_workloads(session, record),
        *_service(session),
        *_volumes(session),
        *_certificate(session),
        *_apiservices(session, record),
    ]
    for line in lines:
        session.progress.say(f"  {'ok' if line.good else '!!'}  {line.text}")
    return all(line.good for line in lines)


def _workloads(session: Session, record: Record) -> Iterator[Line]:
    deployments = [each for kind in ("Deployment", "StatefulSet") for each in _labelled(session, "apps/v1", kind)]
    if not deployments:
        yield Line(f"there is no Deployment; repair it: {session.command('init')}", good=False)
    elif _lacks_controller(record, deployments):
        yield Line(f"the controller is missing; repair it: {session.command('init')}", good=False)
    for found in deployments:
        status, spec = found.get("status") or {}, found["spec"]
        image = spec["template"]["spec"]["containers"][0]["image"]
        shown = f"{status.get('readyReplicas', 0)} of {spec.get('replicas', 1)} pods ready, image {image}"
        yield Line(f"{found['metadata']['name']}: {shown}", good=is_ready(found))


def _lacks_controller(record: Record, deployments: list[dict[str, Any]]) -> bool:
    """Whether the record has a controller that is not there."""
    components = {(each["metadata"].get("labels") or {}).get(COMPONENT) for each in deployments}
    return options.resolve_given(record.flags).options.controller.with_controller and CONTROLLER not in components


def _service(session: Session) -> Iterator[Line]:
    found = session.client.get(path_of("v1", "Service", namespace=session.namespace, name=session.name))
    if found is None:
        yield Line("the service is missing", good=False)
        return
    kind = found["spec"].get("type")
    ingress = ((found.get("status") or {}).get("loadBalancer") or {}).get("ingress") or []
    waits = kind == "LoadBalancer" and not ingress
    yield Line(f"service of type {kind}{', without an address yet' if waits else ''}", good=not waits)


def _volumes(session: Session) -> Iterator[Line]:
    for found in _labelled(session, "v1", "PersistentVolumeClaim"):
        phase = (found.get("status") or {}).get("phase", "Pending")
        yield Line(f"volume {found['metadata']['name']}: {phase}", good=phase == "Bound")


def _certificate(session: Session) -> Iterator[Line]:
    """Yields when the serving certificate expires; ``init`` renews it in its last 30 days."""
    path = path_of("v1", "Secret", namespace=session.namespace, name=f"{session.name}-serving")
    held = ((session.client.get(path) or {}).get("data") or {}).get("tls.crt", "")
    lasts = _lasts(held)
    if lasts is None:
        yield Line(f"the serving certificate is missing or damaged; repair it: {session.command('init')}", good=False)
    else:
        yield Line(f"serving certificate good for {lasts} days; init renews it in its last 30", good=lasts > 0)


def _lasts(held: str) -> int | None:
    import datetime as dt  # noqa: PLC0415 - beside the library that needs it

    from cryptography import x509  # noqa: PLC0415 - a slow import

    try:
        certificate = x509.load_pem_x509_certificate(base64.b64decode(held))
    except ValueError:
        return None
    return (certificate.not_valid_after_utc - dt.datetime.now(dt.UTC)).days


def _apiservices(session: Session, record: Record) -> Iterator[Line]:
    if session.mode is not Mode.AGGREGATED:
        return
    for version in apiservices.served(split_arguments(record.flags.get("apiserver-arg-overrides", ""))):
        state = registration.availability(session, version)
        why = state.message or f"not there; repair it: {session.command('init')}"
        yield Line(f"{registration.shown_as(version)}: {'available' if state.available else why}", good=state.available)


def _labelled(session: Session, version: str, kind: str) -> list[dict[str, Any]]:
    path = path_of(version, kind, namespace=session.namespace)
    return session.client.items(path, labelSelector=f"{INSTANCE}={session.name}")
