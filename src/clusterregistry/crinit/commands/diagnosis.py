"""Collects from the host cluster why pods do not start. Best effort: a request that fails is left out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from clusterregistry.cli import exit_status
from clusterregistry.crinit.commands.session import Session
from clusterregistry.crinit.errors import HostError
from clusterregistry.crinit.host.client import path_of
from clusterregistry.crinit.manifests import controller, server
from clusterregistry.crinit.manifests.objects import COMPONENT, ETCD, INSTANCE

_LAST = 10
_LOG_LINES = "20"
HOPELESS = frozenset({"ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "CreateContainerConfigError"})
"""Reasons of waiting containers that do not resolve themselves; a first ErrImagePull may."""

_PROGRAMS = {server.CONTAINER: "server", controller.CONTAINER: "controller"}
"""Our own programs, which end with a known status when they do not accept their arguments, by their container."""

_OFTEN_ENOUGH = 4
"""Restarts after which waiting ends: they take more than a minute, enough for late dependencies."""


def pods(session: Session, component: str) -> list[dict[str, Any]]:
    selector = f"{INSTANCE}={session.name},{COMPONENT}={component}"
    return session.client.items(path_of("v1", "Pod", namespace=session.namespace), labelSelector=selector)


def current(found: list[dict[str, Any]], workload: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns the pods with the current template of the workload; older ones are about to be deleted."""
    wanted = _runs(((workload.get("spec") or {}).get("template") or {}).get("spec") or {})
    return [
        pod for pod in found if _runs(pod.get("spec") or {}) == wanted and not pod["metadata"].get("deletionTimestamp")
    ]


def _runs(spec: Mapping[str, Any]) -> list[Any]:
    return [[each.get(part) for part in ("image", "command", "args")] for each in spec.get("containers") or []]


def hopeless(found: list[dict[str, Any]]) -> str:
    """Returns why further waiting is useless; empty while pods may still start."""
    statuses = [status for pod in found for status in _statuses(pod)]
    return next((reason for status in statuses if (reason := _stuck(status) or _crashing(status))), "")


def _stuck(status: Mapping[str, Any]) -> str:
    waiting = (status.get("state") or {}).get("waiting") or {}
    if waiting.get("reason") not in HOPELESS:
        return ""
    return f"{waiting['reason']}: {waiting.get('message') or status.get('image') or 'no message'}"


def _crashing(status: Mapping[str, Any]) -> str:
    ended, times = _ended(status), int(status.get("restartCount") or 0)
    program = _PROGRAMS.get(str(status.get("name")))
    if ended.get("exitCode") == exit_status.USAGE and program:
        container = status.get("name")
        return f"the {program} in the container {container} does not accept its arguments (status {exit_status.USAGE})"
    if ended.get("exitCode") and times >= _OFTEN_ENOUGH:
        return f"the container {status.get('name')} has ended {times} times, last with status {ended['exitCode']}"
    return ""


def _ended(status: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns how the container ended last; empty if it never ended."""
    states = [(status.get(state) or {}).get("terminated") for state in ("state", "lastState")]
    return next((ended for ended in states if ended), {})


def evidence(session: Session, component: str, workload: str) -> list[str]:
    """Returns events of the workload, then states, events and the last log lines of its pods."""
    kind = "StatefulSet" if component == ETCD else "Deployment"
    lines = _attempt(lambda: events(session, kind, workload))
    for pod in _attempt(lambda: pods(session, component)):
        lines += [_state(pod), *_attempt(lambda: events(session, "Pod", _name(pod)))]  # noqa: B023 - called at once
        lines += _attempt(lambda: _log(session, pod))  # noqa: B023
    return lines


def events(session: Session, kind: str, name: str) -> list[str]:
    """Returns the last events of an object."""
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
    shown = "; ".join([*states, *conditions]) or "nothing is known yet"
    return f"Pod {_name(pod)} ({(pod.get('status') or {}).get('phase', 'Unknown')}): {shown}"


def _described(status: Mapping[str, Any]) -> str:
    state, code = status.get("state") or {}, _ended(status).get("exitCode")
    shown = "ready" if status.get("ready") else "not ready"
    for kind in ("waiting", "terminated"):
        if kind in state:
            details = state[kind] or {}
            shown = f"{kind}: {details.get('reason', '')} {details.get('message', '')}".rstrip()
    return f"container {status.get('name')} {shown}" + (f"; it ended with status {code}" if code else "")


def _statuses(pod: dict[str, Any]) -> list[dict[str, Any]]:
    return list((pod.get("status") or {}).get("containerStatuses") or [])


def _log(session: Session, pod: dict[str, Any]) -> list[str]:
    path = path_of("v1", "Pod", namespace=session.namespace, name=_name(pod)) + "/log"

    def lines(**query: str) -> list[str]:
        return session.client.text(path, tailLines=_LOG_LINES, **query).splitlines()

    said: list[str] = []
    if any(status.get("restartCount") for status in _statuses(pod)):
        # The log of a container that is about to restart, or just did, does not have the reason yet.
        said = _attempt(lambda: lines(previous="true"))
    return [f"log: {line}" for line in said or lines()]


def _name(pod: dict[str, Any]) -> str:
    return str(pod["metadata"]["name"])


def _attempt(ask: Callable[[], list[Any]]) -> list[Any]:
    try:
        return ask()
    except HostError:
        return []
