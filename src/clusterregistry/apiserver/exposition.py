"""Renders the measures for ``/metrics`` in Prometheus' text format, under kube-apiserver's names where it has them.

Loaded with the first request, see ``metrics``: nothing that every server needs may import it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from functools import partial

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.gc_collector import GCCollector
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from clusterregistry.apiserver.audit.settings import Counts, Level
from clusterregistry.apiserver.authn.token_file import Reloads
from clusterregistry.apiserver.filters.metrics import LABELS, Measures, RequestMetrics


def renderer_of(measures: Measures) -> Callable[[], bytes]:
    """Returns a function that renders the present measures."""
    registry, prefix = CollectorRegistry(), measures.program.replace("-", "_")
    registry.register(_Requests(measures.requests))
    if measures.audit is not None:
        registry.register(_AuditLog(measures.audit))
    registry.register(_TokenFile(measures.token_file, prefix))
    registry.register(_Readings(measures, prefix))
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    GCCollector(registry=registry)
    return partial(generate_latest, registry)


class _Requests(Collector):
    def __init__(self, requests: RequestMetrics) -> None:
        self._requests = requests

    def collect(self) -> Iterable[Metric]:
        yield self._counts()
        yield from self._histograms()
        yield from self._flights()
        yield CounterMetricFamily(
            "apiserver_terminated_watchers",
            "Watches that were ended because the client was too slow.",
            value=self._requests.terminated_watchers,
        )

    def _counts(self) -> Metric:
        labels = (*LABELS, "dry_run", "code")
        requests = CounterMetricFamily("apiserver_request", "Requests by verb, resource and answer.", labels=labels)
        for made, series in self._requests.series.items():
            for (dry_run, code), count in series.counts.items():
                requests.add_metric((*made, dry_run, str(code)), count)
        return requests

    def _histograms(self) -> Iterable[Metric]:
        durations = HistogramMetricFamily(
            "apiserver_request_duration_seconds",
            "Time until the answer was ready to be sent; a watch counts until its stream begins.",
            labels=LABELS,
        )
        sizes = HistogramMetricFamily("apiserver_response_sizes", "Bytes of answers.", labels=LABELS)
        for labels, series in self._requests.series.items():
            durations.add_metric(labels, series.durations.buckets(), sum_value=series.durations.total)
            sizes.add_metric(labels, series.sizes.buckets(), sum_value=series.sizes.total)
        return durations, sizes

    def _flights(self) -> Iterable[Metric]:
        labels = ("request_kind",)
        under_way = GaugeMetricFamily("apiserver_current_inflight_requests", "Requests being worked on.", labels=labels)
        dropped = CounterMetricFamily("apiserver_dropped_requests", "Requests turned away with 429.", labels=labels)
        for kind, flight in self._requests.flights.items():
            under_way.add_metric((kind,), flight.now)
            dropped.add_metric((kind,), flight.turned_away)
        return under_way, dropped


class _AuditLog(Collector):
    def __init__(self, counts: Counts) -> None:
        self._counts = counts

    def collect(self) -> Iterable[Metric]:
        counts = self._counts
        yield CounterMetricFamily("apiserver_audit_event", "Audit events that were made.", value=counts.events)
        errors = CounterMetricFamily(
            "apiserver_audit_error", "Audit events that are not in the log.", labels=("plugin",)
        )
        errors.add_metric(("log",), counts.dropped + counts.lost)
        yield errors
        yield CounterMetricFamily(
            "apiserver_audit_dropped", "Of these, events that found the queue full.", value=counts.dropped
        )
        yield CounterMetricFamily(
            "apiserver_audit_failed_writes",
            "Attempts to write that failed and are repeated.",
            value=counts.failed_writes,
        )
        levels = CounterMetricFamily(
            "apiserver_audit_level", "Requests, by the level that the audit policy has for them.", labels=("level",)
        )
        for level in Level:
            levels.add_metric((level.shown,), counts.levels[level])
        yield levels


class _TokenFile(Collector):
    def __init__(self, reloads: Reloads, prefix: str) -> None:
        self._reloads, self._prefix = reloads, prefix

    def collect(self) -> Iterable[Metric]:
        reloads = CounterMetricFamily(
            f"{self._prefix}_token_file_reloads",
            "Changes of the token file that were noticed, by whether they could be used.",
            labels=("status",),
        )
        reloads.add_metric(("success",), self._reloads.taken)
        reloads.add_metric(("failure",), self._reloads.failed)
        yield reloads


class _Readings(Collector):
    """What is stored and watched at this moment."""

    def __init__(self, measures: Measures, prefix: str) -> None:
        self._measures, self._prefix = measures, prefix

    def collect(self) -> Iterable[Metric]:
        stored = GaugeMetricFamily("apiserver_storage_objects", "Objects stored, by resource.", labels=("resource",))
        for resource, count in self._measures.objects.items():
            stored.add_metric((resource,), count())
        yield stored
        corrupt = GaugeMetricFamily(
            f"{self._prefix}_storage_corrupt_objects",
            "Stored objects that cannot be read and are set aside, by resource.",
            labels=("resource",),
        )
        for resource, count in self._measures.corrupt.items():
            corrupt.add_metric((resource,), count())
        yield corrupt
        yield GaugeMetricFamily(
            "apiserver_longrunning_requests", "Watches that are open.", value=self._measures.watches()
        )
        yield GaugeMetricFamily("python_asyncio_tasks", "Tasks of the event loop.", value=_tasks())


def _tasks() -> int:
    try:
        return len(asyncio.all_tasks())
    except RuntimeError:  # asked outside of a loop
        return 0
