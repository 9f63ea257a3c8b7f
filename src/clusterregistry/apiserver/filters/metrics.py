"""Counts and times every request."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable

from clusterregistry.apiserver.endpoints.request import Filter, Handler, Request
from clusterregistry.apiserver.http.response import Answer, Reply, Response
from clusterregistry.apiserver.metrics import RequestMetrics, Series

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
