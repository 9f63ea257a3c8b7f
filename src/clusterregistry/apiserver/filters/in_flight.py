"""Bounds how many requests are worked on at once. Raises 429.

Reading and writing have seats of their own. A watch needs one only until its stream begins. Administrators and health
checks are never held up: a server that is overrun must still be reached by those who can help.

A request whose body is still to come gives its seat back while it waits, and takes one again: what a client has not
sent keeps nobody from a seat. Bytes that have come meanwhile are counted until the request is answered.
"""

from __future__ import annotations

from collections.abc import Awaitable
from http import HTTPStatus

from clusterregistry.apimachinery.meta.errors import APIError
from clusterregistry.apiserver.authn.user import MASTERS
from clusterregistry.apiserver.filters.fairness import Bodies, Seats
from clusterregistry.apiserver.filters.interface import Filter, Handler, answered
from clusterregistry.apiserver.http.request import Request
from clusterregistry.apiserver.http.response import Answer, Reply, Response
from clusterregistry.apiserver.metrics import RequestMetrics

_HEALTH = ("/healthz", "/livez", "/readyz")


def filter_for(*, reading: Seats | None, writing: Seats | None, metrics: RequestMetrics) -> Filter:
    """None: as many as come."""
    bodies = Bodies()

    def wrap(inner: Handler) -> Handler:
        def handle(request: Request) -> Reply:
            seats = writing if request.info.is_mutating else reading
            if seats is None or _is_exempt(request):
                return inner(request)
            if seats.take_at_once(request.user.name):
                return seated(request, seats)
            return in_turn(request, _Seat(seats, bodies, request.user.name))

        def seated(request: Request, seats: Seats) -> Reply:
            try:
                reply = inner(request)
            except BaseException:
                seats.leave()
                raise
            if not isinstance(reply, Response):
                seat = _Seat(seats, bodies, request.user.name)
                seat.keep()
                return _kept(request, reply, seat, metrics)
            seats.leave()
            return reply

        async def in_turn(request: Request, seat: _Seat) -> Answer:
            return await _kept(request, when_seated(request, seat), seat, metrics)

        async def when_seated(request: Request, seat: _Seat) -> Answer:
            await seat.take_in_turn()
            return await answered(inner(request))

        return handle

    return wrap


async def _kept(request: Request, reply: Awaitable[Answer], seat: _Seat, metrics: RequestMetrics) -> Answer:
    """The answer to a request that is worked on for longer."""
    request.seat = seat
    try:
        return await reply
    except APIError as error:
        if error.code == HTTPStatus.TOO_MANY_REQUESTS:
            metrics.of(request.info).flight.turned_away += 1
        raise
    finally:
        seat.leave()


class _Seat:
    """The seat of one request that is kept, and what has come of its body without one."""

    __slots__ = ("_bodies", "_bytes", "_seats", "_taken", "_user")

    def __init__(self, seats: Seats, bodies: Bodies, user: str) -> None:
        self._seats, self._bodies, self._user = seats, bodies, user
        self._bytes = 0
        self._taken = False

    def keep(self) -> None:
        """The seat was taken at once."""
        self._seats.keep(self._user)
        self._taken = True

    async def take_in_turn(self) -> None:
        """Raises 429."""
        await self._seats.take_in_turn(self._user)
        self._taken = True

    async def receive(self, request: Request) -> bytes:
        """The body of a request, waited for without the seat. Raises 413, 429 and ClientGoneError."""
        self._taken = False
        self._seats.leave_kept(self._user)
        body = await request.read_whole(self._count)
        if self._seats.take_at_once(self._user):
            self.keep()
        else:
            await self.take_in_turn()
        return body

    def leave(self) -> None:
        """Gives back what the request has."""
        if self._taken:
            self._seats.leave_kept(self._user)
        if self._bytes:
            self._bodies.give_back(self._user, self._bytes)

    def _count(self, piece: bytes) -> None:
        self._bodies.take(self._user, len(piece))
        self._bytes += len(piece)


def _is_exempt(request: Request) -> bool:
    if MASTERS in request.user.groups:
        return True
    return not request.info.is_resource and request.path.startswith(_HEALTH)
