"""Bounds how many requests are worked on at once. Raises 429.

Reading and writing have seats of their own. A watch needs one only until its stream begins. Administrators and health
checks are never held up: a server that is overrun must still be reached by those who can help.
"""

from __future__ import annotations

from collections.abc import Awaitable

from clusterregistry.apis.meta.errors import APIError
from clusterregistry.authn.users import MASTERS
from clusterregistry.handlers.requests import Request
from clusterregistry.handlers.responses import Answer, Reply, Response
from clusterregistry.serving.fairness import Seats
from clusterregistry.serving.interface import Filter, Handler, answered
from clusterregistry.serving.metrics import RequestMetrics

_HEALTH = ("/healthz", "/livez", "/readyz")


def filter_for(*, reading: Seats | None, writing: Seats | None, metrics: RequestMetrics) -> Filter:
    """None: as many as come."""

    def wrap(inner: Handler) -> Handler:
        def handle(request: Request) -> Reply:
            seats = writing if request.info.is_mutating else reading
            if seats is None or _is_exempt(request):
                return inner(request)
            return seated(request, seats) if seats.take_at_once() else in_turn(request, seats)

        def seated(request: Request, seats: Seats) -> Reply:
            try:
                reply = inner(request)
            except BaseException:
                seats.leave()
                raise
            if not isinstance(reply, Response):
                return until_answered(reply, seats)
            seats.leave()
            return reply

        async def until_answered(reply: Awaitable[Answer], seats: Seats) -> Answer:
            try:
                return await reply
            finally:
                seats.leave()

        async def in_turn(request: Request, seats: Seats) -> Answer:
            try:
                await seats.take_in_turn(request.user.name)
            except APIError:
                metrics.of(request.info).flight.turned_away += 1
                raise
            return await answered(seated(request, seats))

        return handle

    return wrap


def _is_exempt(request: Request) -> bool:
    if MASTERS in request.user.groups:
        return True
    return not request.info.is_resource and request.path.startswith(_HEALTH)
