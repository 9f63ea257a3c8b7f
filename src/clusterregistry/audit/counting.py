"""What is counted about the audit log, under kube-apiserver's names where it has one."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from clusterregistry.audit.levels import Level


class Counts(Collector):
    """Each field has one writer: the loop counts ``levels``, ``events`` and ``dropped``, the thread the others."""

    def __init__(self) -> None:
        self.levels = [0] * len(Level)
        """Requests, by how much of them is recorded."""
        self.events = 0
        self.dropped = 0
        """Events that found the queue full."""
        self.lost = 0
        """Events that could not be rendered, or not be written before the end."""
        self.failed_writes = 0

    def collect(self) -> Iterable[Metric]:
        yield CounterMetricFamily("apiserver_audit_event", "Audit events that were made.", value=self.events)
        errors = CounterMetricFamily(
            "apiserver_audit_error", "Audit events that are not in the log.", labels=("plugin",)
        )
        errors.add_metric(("log",), self.dropped + self.lost)
        yield errors
        yield CounterMetricFamily(
            "apiserver_audit_dropped", "Of these, events that found the queue full.", value=self.dropped
        )
        yield CounterMetricFamily(
            "apiserver_audit_failed_writes", "Attempts to write that failed and are repeated.", value=self.failed_writes
        )
        levels = CounterMetricFamily(
            "apiserver_audit_level", "Requests, by the level that the audit policy has for them.", labels=("level",)
        )
        for level in Level:
            levels.add_metric((level.shown,), self.levels[level])
        yield levels
