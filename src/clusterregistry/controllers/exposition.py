"""Renders the measures of a controller for ``/metrics``, in Prometheus' text format: per state, not per cluster.

Loaded with the first request: the library takes a while to import.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from clusterregistry.controllers.observer.observation import Reason
from clusterregistry.controllers.status import CONDITIONS, NEVER, OK, STALE_REASON, STATES

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_PREFIX = "clusterregistry_controller_"
_REASONS = frozenset({*Reason, STALE_REASON, "Ready"})
_OTHER = "Other"
"""What another client has written into a status: labels are bounded in number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Readings:
    """What is measured, as it is at the moment."""

    clusters: Iterable[Mapping[str, Any]]
    is_leader: bool
    has_synced: bool
    has_access_problem: bool
    rounds: Mapping[str, int]
    """Rounds of probes by the reason of their failure; empty: none."""
    running: int
    """Rounds that run now."""
    writes: Mapping[str, int]
    write_seconds: float
    waiting: int
    events: Mapping[str, int]


def renderer_of(read: Callable[[], Readings]) -> Callable[[], bytes]:
    """A function that renders the present readings."""
    registry = CollectorRegistry()
    registry.register(_Readings(read))
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    return partial(generate_latest, registry)


class _Readings(Collector):
    def __init__(self, read: Callable[[], Readings]) -> None:
        self._read = read

    def describe(self) -> Iterable[Metric]:
        return []  # a registry would read the measures for it, before there are any

    def collect(self) -> Iterable[Metric]:
        readings = self._read()
        yield from _clusters(readings.clusters)
        yield _gauge("leader", "Whether this process observes and writes.", float(readings.is_leader))
        yield _gauge("synced", "Whether the clusters of the registry are known.", float(readings.has_synced))
        yield _gauge(
            "access_config_problem",
            "Whether the access file as it is now has mistakes, so that the former rules are in use.",
            float(readings.has_access_problem),
        )
        yield _gauge("running_rounds", "Rounds of probes that run now.", readings.running)
        yield _gauge("waiting_writes", "Clusters whose status waits to be written.", readings.waiting)
        yield _counter("rounds", "Rounds of probes, by the reason why nothing was learned.", "reason", readings.rounds)
        yield _counter("status_writes", "Writes of a status, by what became of them.", "result", readings.writes)
        yield CounterMetricFamily(
            f"{_PREFIX}status_write_seconds", "Time of all writes of a status.", value=readings.write_seconds
        )
        yield _counter("events", "Events about clusters, by what became of them.", "result", readings.events)


def _clusters(clusters: Iterable[Mapping[str, Any]]) -> Iterable[Metric]:
    states, conditions = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    states.update(dict.fromkeys(((state, "") for state in STATES), 0))
    for cluster in clusters:
        status = cluster.get("status") or {}
        by_type = {each.get("type"): each for each in status.get("conditions") or ()}
        states[_state(status), _reason(by_type.get(OK, {}))] += 1
        for name in CONDITIONS:
            conditions[name, str(by_type.get(name, {}).get("status", "Unknown"))] += 1
    found = GaugeMetricFamily(
        f"{_PREFIX}clusters", "Clusters of the registry, by state and the reason of it.", labels=("state", "reason")
    )
    for labels, count in sorted(states.items()):
        found.add_metric(labels, count)
    yield found
    shown = GaugeMetricFamily(
        f"{_PREFIX}cluster_conditions", "Clusters of the registry, by condition.", labels=("condition", "status")
    )
    for labels, count in sorted(conditions.items()):
        shown.add_metric(labels, count)
    yield shown


def _state(status: Mapping[str, Any]) -> str:
    state = status.get("state", NEVER)
    return state if state in STATES else _OTHER


def _reason(condition: Mapping[str, Any]) -> str:
    reason = condition.get("reason", Reason.NEVER_OBSERVED)
    return str(reason) if reason in _REASONS else _OTHER


def _gauge(name: str, help_text: str, value: float) -> Metric:
    return GaugeMetricFamily(f"{_PREFIX}{name}", help_text, value=value)


def _counter(name: str, help_text: str, label: str, counts: Mapping[str, int]) -> Metric:
    family = CounterMetricFamily(f"{_PREFIX}{name}", help_text, labels=(label,))
    for value, count in sorted(counts.items()):
        family.add_metric((value,), count)
    return family
