"""What is told about a cluster when its status changes: transitions of its state, identity and certificates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from clusterregistry.controllers.event_recorder import NORMAL, WARNING, Happening
from clusterregistry.controllers.status import CERTIFICATE_EXPIRING, IDENTITY_VERIFIED, NEVER, OK, READY, STALE


class Told(NamedTuple):
    """The parts of a status whose transitions are told."""

    state: str
    is_changed: bool
    """The cluster is another one than the one on record."""
    is_expiring: bool


def told(status: Mapping[str, Any]) -> Told:
    """Of a status in v1beta1; an empty one is that of a cluster that was never observed."""
    return Told(
        state=str(status.get("state") or NEVER),
        is_changed=_condition(status, IDENTITY_VERIFIED).get("status") == "False",
        is_expiring=_condition(status, CERTIFICATE_EXPIRING).get("status") == "True",
    )


def transitions(before: Told, status: Mapping[str, Any]) -> Iterator[Happening]:
    """What to tell about a status after one of which ``before`` was told."""
    now = told(status)
    if now.state != before.state and now.state not in (NEVER, STALE):
        yield _state(before, status)
    if now.is_changed != before.is_changed:
        yield _identity(status, is_changed=now.is_changed)
    if now.is_expiring != before.is_expiring:
        yield _expiry(status, is_expiring=now.is_expiring)


def _state(before: Told, status: Mapping[str, Any]) -> Happening:
    state, ok = status["state"], _condition(status, OK)
    note = f"The cluster is {state}, it was {'not observed yet' if before.state == NEVER else before.state}"
    if state == READY:
        return Happening(reason="ClusterReady", note=f"{note}.", type=NORMAL)
    return Happening(reason=f"Cluster{state}", note=f"{note}: {ok.get('reason')}: {ok.get('message')}", type=WARNING)


def _identity(status: Mapping[str, Any], *, is_changed: bool) -> Happening:
    if not is_changed:
        return Happening(reason="IdentityRestored", note="The cluster is the one on record again.", type=NORMAL)
    note = f"Another cluster answers: {_condition(status, IDENTITY_VERIFIED).get('message')}"
    return Happening(reason="IdentityChanged", note=note, type=WARNING)


def _expiry(status: Mapping[str, Any], *, is_expiring: bool) -> Happening:
    condition = _condition(status, CERTIFICATE_EXPIRING)
    if not is_expiring:
        return Happening(reason="CertificateRenewed", note=f"The cluster: {condition.get('message')}.", type=NORMAL)
    return Happening(reason=str(condition.get("reason")), note=str(condition.get("message")), type=WARNING)


def _condition(status: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    conditions = status.get("conditions")
    found = (each for each in conditions if isinstance(each, dict)) if isinstance(conditions, list) else ()
    return next((each for each in found if each.get("type") == name), {})
