"""The status of a cluster in v1beta1, from an observation, the cluster as it is stored, and the time.

``next_status`` is a pure function. The state is that of the worst problem; each condition has a reason of its own:

| state       | what makes it                                                  | condition that is not well        |
| ----------- | -------------------------------------------------------------- | --------------------------------- |
| Unreachable | no verified connection, or no answer in time                   | Reachable                         |
| Denied      | no credential, 401, or 403 for what a probe needs              | CredentialsValid                  |
| Degraded    | /readyz fails, nonsense, 5xx, a node is not ready              | ControlPlaneHealthy or NodesReady |
| Degraded    | another identity                                               | IdentityVerified                  |
| Stale       | no observation for three intervals, which the server finds out | OK is Unknown                     |
| Ready       | all is well and fresh                                          |                                   |
| Never       | not observed yet                                               | all are Unknown                   |

What an observation does not know, since an observer has just started or a part failed, stays as it was. Nothing that
changes by itself, such as a duration, is in a text: the same findings give the same status.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

from clusterregistry.api.clusterregistry import GROUP
from clusterregistry.apimachinery.meta import times
from clusterregistry.client.errors import printable
from clusterregistry.controllers import identity
from clusterregistry.controllers.observer.observation import Failure, Observation, Reason, Section

UNREACHABLE, DENIED, DEGRADED, STALE, READY, NEVER = "Unreachable", "Denied", "Degraded", "Stale", "Ready", "Never"
STATES = (UNREACHABLE, DENIED, DEGRADED, STALE, READY, NEVER)
"""Worst first."""

OK, REACHABLE, CONTROL_PLANE_HEALTHY, NODES_READY = "OK", "Reachable", "ControlPlaneHealthy", "NodesReady"
IDENTITY_VERIFIED, CREDENTIALS_VALID = "IdentityVerified", "CredentialsValid"
CERTIFICATE_EXPIRING = "CertificateExpiring"
CONDITIONS = (
    OK, REACHABLE, CONTROL_PLANE_HEALTHY, NODES_READY, IDENTITY_VERIFIED, CREDENTIALS_VALID, CERTIFICATE_EXPIRING,
)  # fmt: skip

SERVING_EXPIRY = f"{GROUP}/serving-certificate-expiry"
CREDENTIAL_EXPIRY = f"{GROUP}/credential-expiry"
PROPERTIES = (identity.KUBE_SYSTEM_UID, identity.SERVING_AUTHORITY, SERVING_EXPIRY, CREDENTIAL_EXPIRY)

MAX_MESSAGE = 1024
STALE_REASON = "StatusStale"
_TRUE, _FALSE, _UNKNOWN = "True", "False", "Unknown"
_DAY = 86400.0
_ASKED_LESS = " (it is asked less often, since it failed several times)"

_STATE_OF = {
    Reason.NAME_NOT_RESOLVED: UNREACHABLE,
    Reason.CONNECTION_REFUSED: UNREACHABLE,
    Reason.TIMED_OUT: UNREACHABLE,
    Reason.TLS_UNTRUSTED: UNREACHABLE,
    Reason.NO_ENDPOINT: UNREACHABLE,
    Reason.CREDENTIAL_MISSING: DENIED,
    Reason.CREDENTIAL_EXPIRED: DENIED,
    Reason.UNAUTHORIZED: DENIED,
    Reason.FORBIDDEN: DENIED,
}
"""Of a failure of a whole round; any other makes it DEGRADED. A part that comes too late does not make it worse."""

_NOT_ASKED = frozenset({Reason.CREDENTIAL_MISSING, Reason.CREDENTIAL_EXPIRED})

Object = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusSettings:
    """What counts as fresh, and as expiring. In seconds."""

    interval: float = 30.0
    """Between two rounds of an observer."""
    node_interval: float = 60.0
    """Between two lists of nodes."""
    stale_intervals: int = 3
    """After which something that was not observed again is no longer fresh."""
    expiry_warning: float = 14 * _DAY
    """Before the end of a certificate, or of a credential that does not renew itself."""


class Finding(NamedTuple):
    """A condition without its times."""

    status: str
    reason: str
    message: str


class Problem(NamedTuple):
    """Why a cluster is not Ready."""

    state: str
    reason: str
    message: str


class _Facts(NamedTuple):
    """What a status is made of."""

    cluster: Mapping[str, Any]
    observation: Observation
    now: float
    settings: StatusSettings
    properties: Mapping[str, str]
    """Those of the stored status."""
    conditions: Mapping[str, Mapping[str, Any]]
    """Those of the stored status, by type."""
    differences: tuple[str, ...]
    """In the identity."""


def next_status(
    observation: Observation, cluster: Mapping[str, Any], *, now: float, settings: StatusSettings | None = None
) -> Object:
    """The status of a cluster (a wire object of v1beta1, with its status before) after an observation.

    It has the conditions and properties named above, and no others. The same arguments give the same status, and so
    does a cluster that has the result as its status.
    """
    chosen = settings or StatusSettings()
    before = _dict(cluster.get("status"))
    if not observation.asked_at:
        return _own_parts(before) if before.get("observedAt") else never_observed(cluster, now=now)
    facts = _gather(observation, cluster, now=now, settings=chosen)
    problems = sorted(_problems(facts), key=lambda problem: STATES.index(problem.state))
    status: Object = {
        "state": problems[0].state if problems else READY,
        "observedAt": _rendered(observation.at),
        "conditions": _conditions(_findings(facts, problems), cluster, now),
        **_versions(observation, before),
        **_nodes(observation, before),
    }
    if properties := _properties(facts):
        status["properties"] = [{"name": name, "value": value} for name, value in sorted(properties.items())]
    return status


def never_observed(cluster: Mapping[str, Any], *, now: float) -> Object:
    """The status of a cluster that nothing is known of."""
    finding = Finding(_UNKNOWN, Reason.NEVER_OBSERVED, "the cluster was not observed yet")
    return {"state": NEVER, "conditions": _conditions(dict.fromkeys(CONDITIONS, finding), cluster, now)}


def is_change(status: Mapping[str, Any], before: Mapping[str, Any]) -> bool:
    """Whether a status says more than that the cluster was observed again. Parts of others do not count."""
    own = _own_parts(before)
    return {**status, "observedAt": None} != {**own, "observedAt": None}


def _own_parts(status: Mapping[str, Any]) -> Object:
    """The parts of a stored status that ``next_status`` makes, in its order."""
    own = {name: status[name] for name in _PARTS if name in status}
    by_type = {each.get("type"): each for each in _dicts(status.get("conditions"))}
    own["conditions"] = [by_type[name] for name in CONDITIONS if name in by_type]
    properties = [each for each in _dicts(status.get("properties")) if each.get("name") in PROPERTIES]
    if properties:
        own["properties"] = sorted(properties, key=lambda each: str(each["name"]))
    return own


_PARTS = ("state", "observedAt", "version", "nodes", "capacity", "allocatable")


def _gather(observation: Observation, cluster: Mapping[str, Any], *, now: float, settings: StatusSettings) -> _Facts:
    before = _dict(cluster.get("status"))
    properties = {
        each["name"]: each["value"]
        for each in _dicts(before.get("properties"))
        if each.get("name") in PROPERTIES and isinstance(each.get("value"), str)
    }
    found = identity.differences(cluster, identity.recorded(properties), identity.observed(observation))
    return _Facts(
        cluster=cluster,
        observation=observation,
        now=now,
        settings=settings,
        properties=properties,
        conditions={str(each.get("type")): each for each in _dicts(before.get("conditions"))},
        differences=tuple(found),
    )


# What is wrong


def _problems(facts: _Facts) -> Iterator[Problem]:
    observation = facts.observation
    if facts.differences:
        yield Problem(DEGRADED, Reason.IDENTITY_CHANGED, "; ".join(facts.differences))
    if facts.now - observation.at > facts.settings.stale_intervals * facts.settings.interval:
        yield Problem(STALE, STALE_REASON, "the cluster was not observed for three intervals")
    if observation.failure is not None:
        failure = observation.failure
        yield Problem(_STATE_OF.get(failure.reason, DEGRADED), failure.reason, _message(failure, observation))
        return
    for part in _PATIENCE:
        if (problem := _unfit(facts, part)) is not None:
            yield problem
    if (health := observation.health).value and not health.value.ready and health.failure is None:
        yield Problem(DEGRADED, Reason.NOT_READY, _failed_checks(observation))
    if (nodes := observation.nodes.value) and nodes.ready < nodes.total:
        yield Problem(DEGRADED, Reason.NOT_READY, _nodes_not_ready(observation))


_PATIENCE = {"health": "interval", "version": "interval", "nodes": "node_interval", "kube_system_uid": ""}
"""The parts that a cluster is judged by, and the interval at which each is read; the identity is read when it may have
changed."""

_TITLES = {"health": "/readyz", "version": "/version", "nodes": "the nodes", "kube_system_uid": "the kube-system UID"}


def _unfit(facts: _Facts, part: str) -> Problem | None:
    """Why a part cannot be judged: it failed, or was not read, or not for long."""
    section: Section[Any] = getattr(facts.observation, part)
    if (failure := section.failure) is not None:
        is_denied = _STATE_OF.get(failure.reason) == DENIED
        return Problem(DENIED if is_denied else DEGRADED, failure.reason, failure.message)
    if section.value is None:
        return Problem(DEGRADED, Reason.NEVER_OBSERVED, f"{_TITLES[part]} could not be read yet")
    if section.at < facts.now - _patience(facts, part):
        return Problem(DEGRADED, STALE_REASON, f"{_TITLES[part]} could not be read again for three intervals")
    return None


def _patience(facts: _Facts, part: str) -> float:
    """Seconds for which a part is fresh. A cluster that is left alone, by its breaker, keeps what it had."""
    left_alone = max(facts.observation.at - facts.observation.asked_at, 0.0)
    interval = _PATIENCE[part]
    if not interval:
        return math.inf
    return left_alone + facts.settings.stale_intervals * float(getattr(facts.settings, interval))


def _message(failure: Failure, observation: Observation) -> str:
    return failure.message + (_ASKED_LESS if observation.breaker_open_until else "")


def _failed_checks(observation: Observation) -> str:
    checks = observation.health.value.failed_checks if observation.health.value else ()
    return f"/readyz fails: {', '.join(checks)}" if checks else "/readyz fails"


def _nodes_not_ready(observation: Observation) -> str:
    nodes = observation.nodes.value
    if nodes is None or nodes.ready == nodes.total:
        return ""
    missing = nodes.total - nodes.ready
    more = ", ..." if missing > len(nodes.not_ready) else ""
    return f"{missing} of {nodes.total} nodes are not ready: {', '.join(nodes.not_ready)}{more}"


# The conditions


def _findings(facts: _Facts, problems: list[Problem]) -> dict[str, Finding]:
    return {
        OK: _ok(problems),
        REACHABLE: _reachable(facts.observation),
        CONTROL_PLANE_HEALTHY: _control_plane(facts),
        NODES_READY: _nodes_ready(facts),
        IDENTITY_VERIFIED: _identity_verified(facts),
        CREDENTIALS_VALID: _credentials_valid(facts.observation),
        CERTIFICATE_EXPIRING: _expiring(facts),
    }


def _ok(problems: list[Problem]) -> Finding:
    if not problems:
        return Finding(_TRUE, "Ready", "the cluster is ready")
    worst = problems[0]
    messages = dict.fromkeys(problem.message for problem in problems if problem.message)
    return Finding(_UNKNOWN if worst.state == STALE else _FALSE, worst.reason, "; ".join(messages))


def _reachable(observation: Observation) -> Finding:
    failure = observation.failure
    if failure is None:
        return Finding(_TRUE, "Answered", "the cluster answers")
    if failure.reason in _NOT_ASKED:
        return Finding(_UNKNOWN, failure.reason, "the cluster is not asked without a credential")
    if _STATE_OF.get(failure.reason) == UNREACHABLE:
        return Finding(_FALSE, failure.reason, _message(failure, observation))
    return Finding(_TRUE, "Answered", "the cluster answers, but not with what was asked for")


def _control_plane(facts: _Facts) -> Finding:
    observation = facts.observation
    if (unknown := _not_learned(observation)) is not None:
        return unknown
    for part in ("health", "version"):
        if (problem := _unfit(facts, part)) is not None:
            is_known = problem.state == DEGRADED and problem.reason not in _NOT_KNOWN
            return Finding(_FALSE if is_known else _UNKNOWN, problem.reason, problem.message)
    if observation.health.value and not observation.health.value.ready:
        return Finding(_FALSE, Reason.NOT_READY, _failed_checks(observation))
    return Finding(_TRUE, "Healthy", "/readyz succeeds")


_NOT_KNOWN = frozenset({Reason.NEVER_OBSERVED, STALE_REASON})


def _nodes_ready(facts: _Facts) -> Finding:
    observation = facts.observation
    if (unknown := _not_learned(observation)) is not None:
        return unknown
    if (problem := _unfit(facts, "nodes")) is not None:
        return Finding(_UNKNOWN, problem.reason, problem.message)
    nodes = observation.nodes.value
    if nodes and nodes.ready < nodes.total:
        return Finding(_FALSE, Reason.NOT_READY, _nodes_not_ready(observation))
    if nodes and nodes.total:
        return Finding(_TRUE, "AllNodesReady", "all nodes are ready")
    return Finding(_TRUE, "NoNodes", "the cluster has no nodes")


def _identity_verified(facts: _Facts) -> Finding:
    """A cluster that was found to be another one stays so until it is asked again."""
    if facts.differences:
        return Finding(_FALSE, Reason.IDENTITY_CHANGED, "; ".join(facts.differences))
    uid = facts.observation.kube_system_uid
    before = facts.conditions.get(IDENTITY_VERIFIED, {})
    if uid.value is None and before.get("reason") == Reason.IDENTITY_CHANGED and before.get("status") == _FALSE:
        return Finding(_FALSE, Reason.IDENTITY_CHANGED, str(before.get("message") or ""))
    if (unknown := _not_learned(facts.observation)) is not None:
        return unknown
    if (problem := _unfit(facts, "kube_system_uid")) is not None:
        return Finding(_UNKNOWN, problem.reason, problem.message)
    return Finding(_TRUE, "Verified", "the cluster is the one on record")


def _credentials_valid(observation: Observation) -> Finding:
    source = f"{observation.credential.source}: " if observation.credential else ""
    failures = [observation.failure, *(getattr(observation, part).failure for part in _PATIENCE)]
    for failure in failures:
        if failure is not None and _STATE_OF.get(failure.reason) == DENIED:
            return Finding(_FALSE, failure.reason, f"{source}{failure.message}")
    if (unknown := _not_learned(observation)) is not None:
        return unknown
    return Finding(_TRUE, "Accepted", f"{source}the cluster accepts the credential")


def _expiring(facts: _Facts) -> Finding:
    expiries = _expiries(facts)
    credential = facts.observation.credential
    if credential is not None and credential.renews:
        expiries.pop(CREDENTIAL_EXPIRY, None)
    for name, subject, reason in (
        (SERVING_EXPIRY, "certificate of the server", "CertificateExpiring"),
        (CREDENTIAL_EXPIRY, "credential for the cluster", "CredentialExpiring"),
    ):
        if name in expiries and expiries[name] - facts.now < facts.settings.expiry_warning:
            return Finding(_TRUE, reason, f"the {subject} ends at {_rendered(expiries[name])}: renew it")
    if SERVING_EXPIRY not in expiries:
        return Finding(_UNKNOWN, Reason.NEVER_OBSERVED, "the certificate of the server was not seen yet")
    return Finding(_FALSE, "NotExpiring", "neither the certificate of the server nor the credential ends soon")


def _not_learned(observation: Observation) -> Finding | None:
    """What a condition is while nothing is learned of the cluster."""
    failure = observation.failure
    if failure is None:
        return None
    reason = Reason.BREAKER_OPEN if observation.breaker_open_until else failure.reason
    return Finding(_UNKNOWN, reason, _message(failure, observation))


def _conditions(findings: Mapping[str, Finding], cluster: Mapping[str, Any], now: float) -> list[Object]:
    stored = {each.get("type"): each for each in _dicts(_dict(cluster.get("status")).get("conditions"))}
    generation = _dict(cluster.get("metadata")).get("generation")
    return [_condition(name, findings[name], stored.get(name, {}), generation, now) for name in CONDITIONS]


def _condition(name: str, finding: Finding, before: Mapping[str, Any], generation: Any, now: float) -> Object:
    transition = before.get("lastTransitionTime") if before.get("status") == finding.status else None
    condition = {
        "type": name,
        "status": finding.status,
        "reason": str(finding.reason),
        "message": printable(finding.message, MAX_MESSAGE),
        "lastTransitionTime": transition if isinstance(transition, str) else _rendered(now),
    }
    return {**condition, "observedGeneration": generation} if isinstance(generation, int) else condition


# Facts that are kept


def _versions(observation: Observation, before: Mapping[str, Any]) -> Object:
    version = observation.version.value
    if version is not None:
        return {"version": {"kubernetes": version}}
    return {"version": before["version"]} if before.get("version") else {}


def _nodes(observation: Observation, before: Mapping[str, Any]) -> Object:
    nodes = observation.nodes.value
    if nodes is None:
        return {name: before[name] for name in ("nodes", "capacity", "allocatable") if before.get(name)}
    sums = {"capacity": dict(nodes.capacity), "allocatable": dict(nodes.allocatable)}
    return {
        "nodes": {"total": nodes.total, "ready": nodes.ready},
        **{name: dict(sorted(total.items())) for name, total in sums.items() if total},
    }


def _properties(facts: _Facts) -> dict[str, str]:
    record, found = identity.recorded(facts.properties), identity.observed(facts.observation)
    kept = identity.to_record(record, found, is_changed=bool(facts.differences))
    return kept | {name: _rendered(time) for name, time in _expiries(facts).items()}


def _expiries(facts: _Facts) -> dict[str, float]:
    """The ends of the certificate and of the credential, by the names of the properties."""
    observation = facts.observation
    known = {name: _parsed(facts.properties.get(name, "")) for name in (SERVING_EXPIRY, CREDENTIAL_EXPIRY)}
    if observation.serving is not None:
        known[SERVING_EXPIRY] = observation.serving.not_after
    if observation.credential is not None:
        known[CREDENTIAL_EXPIRY] = observation.credential.expires_at
    return {name: time for name, time in known.items() if time is not None and _is_rendered(time)}


def _is_rendered(time: float) -> bool:
    return 0 < time < _END_OF_TIME


_END_OF_TIME = 253402300799.0
"""The last second of the year 9999."""


def _rendered(time: float) -> str:
    return times.render(datetime.fromtimestamp(time, UTC))


def _parsed(text: str) -> float | None:
    try:
        return times.parse(text).timestamp()
    except ValueError:
        return None


def _dict(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _dicts(value: Any) -> list[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
