"""Counts and times every request."""

from __future__ import annotations

import logging
import time

from clusterregistry.handlers.requests import Request
from clusterregistry.handlers.responses import Answer
from clusterregistry.serving.interface import Filter, Handler
from clusterregistry.serving.metrics import RequestMetrics

_log = logging.getLogger(__name__)


def filter_for(metrics: RequestMetrics) -> Filter:
    def wrap(inner: Handler) -> Handler:
        async def handle(request: Request) -> Answer:
            began = time.perf_counter()
            metrics.in_flight(request.info, 1)
            try:
                answer = await inner(request)
            finally:
                metrics.in_flight(request.info, -1)
            seconds = time.perf_counter() - began
            metrics.observe(request.info, answer, seconds=seconds, query=request.query_string)
            if _log.isEnabledFor(logging.DEBUG):
                _log_request(request, answer, seconds)
            return answer

        return handle

    return wrap


def _log_request(request: Request, answer: Answer, seconds: float) -> None:
    """For those who look for a fault. The path is quoted, for clients choose it; the query may hold what is secret."""
    user = request.user.name if request.user else "nobody known"
    _log.debug("%s %r by %r: %d in %.1f ms", request.method, request.path, user, answer.status, seconds * 1000)
