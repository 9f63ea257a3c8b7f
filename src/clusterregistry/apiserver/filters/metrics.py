"""Counts and times every request. ``exposition`` renders the figures, under the names of kube-apiserver."""

from __future__ import annotations

import logging
import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING

from clusterregistry.apiserver.authn.token_file import Reloads
from clusterregistry.apiserver.endpoints.request import Filter, Handler, Request
from clusterregistry.apiserver.endpoints.request_info import RequestInfo
from clusterregistry.apiserver.http.response import Answer, Reply, Response

if TYPE_CHECKING:
    from clusterregistry.apiserver.audit.settings import Counts


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
LABELS = ("verb", "group", "version", "resource", "subresource", "scope", "component")
_DURATIONS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_SIZES = (1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9)

Labels = tuple[str, ...]


class Histogram:
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
        self.durations = Histogram(_DURATIONS)
        self.sizes = Histogram(_SIZES)

    def observe(self, answer: Answer, *, seconds: float, query: bytes) -> None:
        self.counts["All" if query and b"dryRun=" in query else "", answer.status] += 1
        self.durations.observe(seconds)
        if isinstance(answer, Response):
            self.sizes.observe(answer.length)


class RequestMetrics:
    """Counts requests. Only what is served gets labels of its own, so that no client can add series."""

    def __init__(self, served: Mapping[tuple[str, str, str], Collection[str]]) -> None:
        """``served`` are groups, versions and resources, each with its subresources."""
        self._served = served
        self._series: dict[Labels, Series] = {}
        self._reading, self._mutating = Flight(), Flight()
        self.terminated_watchers = 0

    @property
    def series(self) -> Mapping[Labels, Series]:
        return self._series

    @property
    def flights(self) -> Mapping[str, Flight]:
        """By the kind of request."""
        return {"mutating": self._mutating, "readOnly": self._reading}

    def watcher_terminated(self) -> None:
        self.terminated_watchers += 1

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
        subresources = self._served.get((info.group, info.version, info.resource))
        if subresources is None:
            return verb, "", "", "", "", "", "apiserver"
        scope = "namespace" if info.namespace else "cluster"
        if info.name or verb == "POST":
            scope = "resource"
        subresource = info.subresource if info.subresource in subresources else ""
        return verb, info.group, info.version, info.resource, subresource, scope, "apiserver"


@dataclass(slots=True)
class Measures:
    """Everything that ``/metrics`` shows: requests, audit log, token file, what is stored and watched, the process.

    ``objects``, ``corrupt`` and ``watches`` are read for each answer. The library that renders is loaded for the first
    one: a start does not wait for it, and many servers are never asked.
    """

    requests: RequestMetrics
    _: KW_ONLY
    program: str
    """The name of the program: what kube-apiserver has no name for begins with it."""
    objects: Mapping[str, Callable[[], int]]
    watches: Callable[[], int]
    audit: Counts | None = None
    token_file: Reloads = field(default_factory=Reloads)
    corrupt: Mapping[str, Callable[[], int]] = field(default_factory=dict)
    _render: Callable[[], bytes] | None = field(default=None, init=False)

    def rendered(self) -> bytes:
        if self._render is None:
            from clusterregistry.apiserver import exposition  # noqa: PLC0415 - it loads the library

            self._render = exposition.renderer_of(self)
        return self._render()


_log = logging.getLogger(__name__)


def filter_for(metrics: RequestMetrics) -> Filter:
    def wrap(inner: Handler) -> Handler:
        def handle(request: Request) -> Reply:
            began = time.perf_counter()
            series = metrics.of(request.info)
            series.flight.now += 1
            try:
                reply = inner(request)
            except BaseException:
                series.flight.now -= 1
                raise
            if not isinstance(reply, Response):
                return handle_later(request, reply, series, began=began)
            series.flight.now -= 1
            _observe(request, reply, series, began=began)
            return reply

        async def handle_later(request: Request, reply: Awaitable[Answer], series: Series, *, began: float) -> Answer:
            try:
                answer = await reply
            finally:
                series.flight.now -= 1
            _observe(request, answer, series, began=began)
            return answer

        return handle

    return wrap


def _observe(request: Request, answer: Answer, series: Series, *, began: float) -> None:
    seconds = time.perf_counter() - began
    series.observe(answer, seconds=seconds, query=request.query_string)
    if _log.isEnabledFor(logging.DEBUG):
        _log_request(request, answer, seconds)


def _log_request(request: Request, answer: Answer, seconds: float) -> None:
    """The path is quoted, since clients choose it. The query is left out: it may hold secrets."""
    user = request.user.name if request.user else "an unknown user"
    _log.debug("%s %r by %r: %d in %.1f ms", request.method, request.path, user, answer.status, seconds * 1000)
