"""What the server measures of itself, under kube-apiserver's names where it has one.

Requests are counted in cells of our own, since a labelled counter of the library costs several
microseconds a request; the library collects and renders them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import accumulate

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.gc_collector import GCCollector
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from clusterregistry.handlers.request_info import RequestInfo
from clusterregistry.handlers.responses import Answer, Response

_VERBS = {
    "get": "GET",
    "list": "LIST",
    "watch": "WATCH",
    "create": "POST",
    "update": "PUT",
    "patch": "PATCH",
    "delete": "DELETE",
    "deletecollection": "DELETECOLLECTION",
}
_LABELS = ("verb", "group", "version", "resource", "subresource", "scope", "component")
_DURATIONS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_SIZES = (1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9)

Labels = tuple[str, ...]


class _Histogram:
    __slots__ = ("_bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self._bounds, value)] += 1
        self.total += value

    def buckets(self) -> list[tuple[str, float]]:
        """Cumulated, as the exposition format wants them."""
        names = [*(str(bound) for bound in self._bounds), "+Inf"]
        return list(zip(names, accumulate(self.counts), strict=True))


class Flight:
    """The requests of one kind: those that are worked on, and those that were turned away."""

    __slots__ = ("now", "turned_away")

    def __init__(self) -> None:
        self.now = 0
        self.turned_away = 0


class Series:
    """All requests with the same labels."""

    __slots__ = ("counts", "durations", "flight", "sizes")

    def __init__(self, flight: Flight) -> None:
        self.flight = flight
        self.counts: defaultdict[tuple[str, int], int] = defaultdict(int)
        """By dryRun and the answer's code."""
        self.durations = _Histogram(_DURATIONS)
        self.sizes = _Histogram(_SIZES)

    def observe(self, answer: Answer, *, seconds: float, query: bytes) -> None:
        self.counts["All" if query and b"dryRun=" in query else "", answer.status] += 1
        self.durations.observe(seconds)
        if isinstance(answer, Response):
            self.sizes.observe(answer.length)


class RequestMetrics(Collector):
    """Counts requests. Only what is served gets labels of its own, so that no client can add series."""

    def __init__(self, served: Collection[tuple[str, str, str]]) -> None:
        self._served = frozenset(served)
        self._series: dict[Labels, Series] = {}
        self._reading, self._mutating = Flight(), Flight()
        self._terminated = 0

    def watcher_terminated(self) -> None:
        self._terminated += 1

    def of(self, info: RequestInfo) -> Series:
        """Where requests like this one are counted."""
        series: Series | None = info.memo.get(self)
        if series is None:
            labels = self._labels(info)
            series = self._series.get(labels)
            if series is None:
                series = self._series[labels] = Series(self._mutating if info.is_mutating else self._reading)
            info.memo[self] = series
        return series

    def _labels(self, info: RequestInfo) -> Labels:
        verb = _VERBS.get(info.verb, "other")
        if (info.group, info.version, info.resource) not in self._served:
            return verb, "", "", "", "", "", "apiserver"
        scope = "resource" if info.name or verb == "POST" else "cluster"
        subresource = "status" if info.subresource == "status" else ""
        return verb, info.group, info.version, info.resource, subresource, scope, "apiserver"

    def collect(self) -> Iterable[Metric]:
        labels = (*_LABELS, "dry_run", "code")
        requests = CounterMetricFamily("apiserver_request", "Requests by verb, resource and answer.", labels=labels)
        for made, series in self._series.items():
            for (dry_run, code), count in series.counts.items():
                requests.add_metric((*made, dry_run, str(code)), count)
        yield requests
        yield from self._histograms()
        flight = GaugeMetricFamily(
            "apiserver_current_inflight_requests", "Requests being worked on.", labels=("request_kind",)
        )
        for kind, requests_of_it in self._kinds():
            flight.add_metric((kind,), requests_of_it.now)
        yield flight
        dropped = CounterMetricFamily(
            "apiserver_dropped_requests", "Requests turned away with 429.", labels=("request_kind",)
        )
        for kind, requests_of_it in self._kinds():
            dropped.add_metric((kind,), requests_of_it.turned_away)
        yield dropped
        yield CounterMetricFamily(
            "apiserver_terminated_watchers",
            "Watches that were ended because the client was too slow.",
            value=self._terminated,
        )

    def _kinds(self) -> tuple[tuple[str, Flight], ...]:
        return ("mutating", self._mutating), ("readOnly", self._reading)

    def _histograms(self) -> Iterable[Metric]:
        durations = HistogramMetricFamily(
            "apiserver_request_duration_seconds",
            "Time until the answer was ready to be sent; a watch counts until its stream begins.",
            labels=_LABELS,
        )
        sizes = HistogramMetricFamily("apiserver_response_sizes", "Bytes of answers.", labels=_LABELS)
        for labels, series in self._series.items():
            durations.add_metric(labels, series.durations.buckets(), sum_value=series.durations.total)
            sizes.add_metric(labels, series.sizes.buckets(), sum_value=series.sizes.total)
        return durations, sizes


class _Readings(Collector):
    """Gauges that are read when somebody asks."""

    def __init__(self, objects: Mapping[str, Callable[[], int]], watches: Callable[[], int]) -> None:
        self._objects, self._watches = objects, watches

    def collect(self) -> Iterable[Metric]:
        stored = GaugeMetricFamily("apiserver_storage_objects", "Objects stored, by resource.", labels=("resource",))
        for resource, count in self._objects.items():
            stored.add_metric((resource,), count())
        yield stored
        yield GaugeMetricFamily("apiserver_longrunning_requests", "Watches that are open.", value=self._watches())


def make_registry(
    requests: RequestMetrics,
    *others: Collector,
    objects: Mapping[str, Callable[[], int]],
    watches: Callable[[], int],
) -> CollectorRegistry:
    """Everything that ``/metrics`` shows: requests, what is stored and watched, and the process itself."""
    registry = CollectorRegistry()
    for collector in (requests, *others):
        registry.register(collector)
    registry.register(_Readings(objects, watches))
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    GCCollector(registry=registry)
    return registry


def rendered(registry: CollectorRegistry) -> bytes:
    return generate_latest(registry)
