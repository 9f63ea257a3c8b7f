"""Tries the access to clusters: which rule matches, what it resolves to, and whether the cluster accepts it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from clusterregistry.controllers.access.rules import AccessRules
from clusterregistry.controllers.access.subject import subject_of
from clusterregistry.controllers.observer.observation import Failure, Observation, Reason, Section
from clusterregistry.controllers.observer.observer import observe_once
from clusterregistry.controllers.observer.settings import ObserverSettings

_NOT_TRIED = frozenset({Reason.CREDENTIAL_MISSING, Reason.CREDENTIAL_EXPIRED, Reason.NO_ENDPOINT})
_NOT_REACHED = frozenset({Reason.NAME_NOT_RESOLVED, Reason.CONNECTION_REFUSED, Reason.TIMED_OUT})

_RIGHTS = {
    "health": "get /readyz",
    "version": "get /version",
    "kube_system_uid": "get namespaces/kube-system",
    "nodes": "list nodes",
}
"""What each probe needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What a check of one cluster found. None is what could not be tried."""

    name: str
    rule: str
    """The rule and its resolver, such as ``rule 2 (file)``; empty: none matches."""
    endpoint: str
    expires_at: float | None
    is_reachable: bool | None
    is_tls_verified: bool | None
    is_credential_accepted: bool | None
    version: str
    missing_rights: tuple[str, ...]
    failure: Failure | None
    """The first thing that is wrong."""

    @property
    def is_fine(self) -> bool:
        return self.failure is None


async def check_clusters(
    clusters: Sequence[Mapping[str, Any]],
    access: AccessRules,
    *,
    settings: ObserverSettings,
    concurrency: int,
    progress: Callable[[int, int], None],
) -> list[Checked]:
    """The findings for each cluster, in the order of the clusters. At most ``concurrency`` are tried at once."""
    places, done = asyncio.Semaphore(concurrency), 0

    async def check_one(cluster: Mapping[str, Any]) -> Checked:
        nonlocal done
        async with places:
            found = await check_cluster(cluster, access, settings=settings)
        done += 1
        if done < len(clusters):
            progress(done, len(clusters))
        return found

    return list(await asyncio.gather(*(check_one(cluster) for cluster in clusters)))


async def check_cluster(cluster: Mapping[str, Any], access: AccessRules, *, settings: ObserverSettings) -> Checked:
    """The findings for one cluster, after one round of the observer's probes."""
    rule = access.rule_for(cluster)
    observation = await observe_once(cluster, access, settings=settings)
    return _checked(subject_of(cluster).name, rule.source if rule else "", observation)


def _checked(name: str, rule: str, observation: Observation) -> Checked:
    failure, sections = observation.failure, _sections(observation)
    reason = failure.reason if failure is not None else None
    is_tried = reason not in _NOT_TRIED
    forbidden = [each for each, section in sections.items() if _has_failed(section, Reason.FORBIDDEN)]
    return Checked(
        name=name,
        rule=rule,
        endpoint=observation.endpoint,
        expires_at=observation.credential.expires_at if observation.credential is not None else None,
        is_reachable=reason not in _NOT_REACHED if is_tried else None,
        is_tls_verified=_is_tls_verified(observation) if is_tried and reason not in _NOT_REACHED else None,
        is_credential_accepted=_is_accepted(observation, sections),
        version=observation.version.value or "",
        missing_rights=tuple(_RIGHTS[each] for each in forbidden),
        failure=failure or _first_failure(sections),
    )


def _sections(observation: Observation) -> dict[str, Section[Any]]:
    return {each: getattr(observation, each) for each in _RIGHTS}


def _has_failed(section: Section[Any], reason: Reason) -> bool:
    return section.failure is not None and section.failure.reason is reason


def _is_tls_verified(observation: Observation) -> bool:
    return observation.serving is not None


def _is_accepted(observation: Observation, sections: Mapping[str, Section[Any]]) -> bool | None:
    """Whether the cluster knows the credential. Everybody may read its health and version: these say nothing."""
    if observation.failure is not None:
        return False if observation.failure.reason in {Reason.UNAUTHORIZED, Reason.CREDENTIAL_EXPIRED} else None
    identified = (sections["kube_system_uid"], sections["nodes"])
    answered = any(each.value is not None or _has_failed(each, Reason.FORBIDDEN) for each in identified)
    return True if answered else None


def _first_failure(sections: Mapping[str, Section[Any]]) -> Failure | None:
    return next((each.failure for each in sections.values() if each.failure is not None), None)
