"""Why pods do not come up: what the host cluster says of them. Best effort: a question that fails is left out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from clusterregistry.crinit.commands.session import Session
from clusterregistry.crinit.errors import HostError
from clusterregistry.crinit.host.client import path_of
from clusterregistry.crinit.manifests.objects import COMPONENT, INSTANCE

_LAST = 10
_LOG_LINES = "20"
HOPELESS = frozenset({"ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "CreateContainerConfigError"})
"""Reasons of waiting containers that do not go away by themselves; a first ErrImagePull may."""


def pods(session: Session, component: str) -> list[dict[str, Any]]:
    selector = f"{INSTANCE}={session.name},{COMPONENT}={component}"
    return session.client.items(path_of("v1", "Pod", namespace=session.namespace), labelSelector=selector)


def hopeless(found: list[dict[str, Any]]) -> str:
    """Why waiting is of no use; empty while there is hope."""
    for pod in found:
        for status in _statuses(pod):
            waiting = (status.get("state") or {}).get("waiting") or {}
            if waiting.get("reason") in HOPELESS:
                return f"{waiting['reason']}: {waiting.get('message') or status.get('image') or 'no message'}"
    return ""


def evidence(session: Session, component: str, workload: str) -> list[str]:
    """Conditions and events of the workload, then states, events and the last log lines of its pods."""
    kind = "Deployment" if component == "server" else "StatefulSet"
    lines = _attempt(lambda: events(session, kind, workload))
    for pod in _attempt(lambda: pods(session, component)):
        lines += [_state(pod), *_attempt(lambda: events(session, "Pod", _name(pod)))]  # noqa: B023 - called at once
        lines += _attempt(lambda: _log(session, pod))  # noqa: B023
    return lines


def events(session: Session, kind: str, name: str) -> list[str]:
    """The last warnings and notes about an object."""
    path = path_of("v1", "Event", namespace=session.namespace)
    query = f"involvedObject.kind={kind},involvedObject.name={name}"
    found = _attempt(lambda: session.client.items(path, fieldSelector=query))
    return [f"{kind} {name}: {each.get('reason', '')}: {each.get('message', '')}" for each in found[-_LAST:]]


def _state(pod: dict[str, Any]) -> str:
    states = [_described(status) for status in _statuses(pod)]
    conditions = [
        f"{each.get('reason')}: {each['message']}"
        for each in (pod.get("status") or {}).get("conditions") or []
        if each.get("status") != "True" and each.get("message")
    ]
    told = "; ".join([*states, *conditions]) or "nothing is known yet"
    return f"Pod {_name(pod)} ({(pod.get('status') or {}).get('phase', 'Unknown')}): {told}"


def _described(status: dict[str, Any]) -> str:
    state = status.get("state") or {}
    for kind in ("waiting", "terminated"):
        if kind in state:
            details = state[kind] or {}
            return f"container {status.get('name')} {kind}: {details.get('reason', '')} {details.get('message', '')}"
    return f"container {status.get('name')} {'ready' if status.get('ready') else 'not ready'}"


def _statuses(pod: dict[str, Any]) -> list[dict[str, Any]]:
    return list((pod.get("status") or {}).get("containerStatuses") or [])


def _log(session: Session, pod: dict[str, Any]) -> list[str]:
    path = path_of("v1", "Pod", namespace=session.namespace, name=_name(pod)) + "/log"
    query = {"tailLines": _LOG_LINES}
    if any(status.get("restartCount") and "running" not in (status.get("state") or {}) for status in _statuses(pod)):
        query["previous"] = "true"  # the container that waits to be started again has not said anything yet
    return [f"log: {line}" for line in session.client.text(path, **query).splitlines()]


def _name(pod: dict[str, Any]) -> str:
    return str(pod["metadata"]["name"])


def _attempt(ask: Callable[[], list[Any]]) -> list[Any]:
    try:
        return ask()
    except HostError:
        return []
