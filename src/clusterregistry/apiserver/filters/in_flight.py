"""Bounds how many requests are worked on at once. Raises 429.

Reading and writing have seats of their own. A watch needs one only until its stream begins. Administrators and health
checks are never held up: a server that is overrun must still be reached by those who can help.

A request whose body is still to come gives its seat back while it waits, and takes one again: what a client has not
sent keeps nobody from a seat. Bytes that have come meanwhile are counted until the request is answered.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable
from http import HTTPStatus

from clusterregistry.apimachinery.meta import errors
from clusterregistry.apimachinery.meta.errors import APIError
from clusterregistry.apiserver.authn.user import MASTERS
from clusterregistry.apiserver.endpoints.request import Filter, Handler, Request
from clusterregistry.apiserver.http.response import Answer, Reply, Response, resolve
from clusterregistry.apiserver.metrics import RequestMetrics

PER_USER = 50
"""Requests of one user that may wait."""

IN_ALL = 2000
"""Requests that may wait, whosever they are."""

PATIENCE = 15.0
"""Seconds to wait for a seat: a quarter of the default --request-timeout, as kube-apiserver has it."""


BODY_BYTES = 96 << 20
"""Of all bodies that came after their heads, until their requests are answered: 32 of the largest."""

_SHARE = 4
"""One user may hold one part of them in so many."""

_FEW = 8
"""Part of the seats that counts as few; with fewer than so many seats all are for everybody."""


class Bodies:
    """How many bytes of bodies are in memory, in all and by user."""

    __slots__ = ("_held", "_limit", "_share", "taken")

    def __init__(self, limit: int = BODY_BYTES) -> None:
        self._limit, self._share = limit, limit // _SHARE
        self._held: dict[str, int] = {}
        self.taken = 0

    def take(self, user: str, count: int) -> None:
        """So many bytes of a user's have come. Raises 429 when they are too many, and then counts none of them."""
        held = self._held.get(user, 0) + count
        if self.taken + count > self._limit or held > self._share:
            raise errors.too_many_requests()
        self._held[user] = held
        self.taken += count

    def give_back(self, user: str, count: int) -> None:
        self.taken -= count
        held = self._held.get(user, 0) - count
        if held:
            self._held[user] = held
        else:
            self._held.pop(user, None)


class FairQueue:
    """Taken and left by everybody; waited for only when there are none."""

    __slots__ = ("_few", "_free", "_held", "_patience", "_queues", "_reserve", "waiting")

    def __init__(self, limit: int, *, patience: float = PATIENCE) -> None:
        self._free = limit
        self._patience = patience
        self._few = limit // _FEW
        self._reserve = limit // 2 if self._few else 0
        """Seats that are only for users who hold few."""
        self._held: dict[str, int] = {}
        """By user: those that are kept for longer than a turn of the loop."""
        self._queues: dict[str, deque[asyncio.Future[None]]] = {}
        """By user, in the order of their turns. None is empty, and nobody is here who may have a seat that is free."""
        self.waiting = 0

    def take_at_once(self, user: str = "") -> bool:
        """Whether there was a seat for the user. To have it for longer than this turn of the loop takes ``keep``."""
        free = self._free
        if free > self._reserve or (free and self._held.get(user, 0) < self._few):
            self._free = free - 1
            return True
        return False

    def keep(self, user: str) -> None:
        """The seat that the user took at once is kept for a while."""
        held = self._held
        held[user] = held.get(user, 0) + 1

    async def take_in_turn(self, user: str) -> None:
        """Waits for a seat, to be kept. Raises 429."""
        seat = self._stand_in_line(user)
        try:
            async with asyncio.timeout(self._patience):
                await seat
        except TimeoutError:
            self._give_up(user, seat)
            raise errors.too_many_requests() from None
        except asyncio.CancelledError:
            self._give_up(user, seat)
            raise

    def leave(self) -> None:
        """Gives a seat that was not kept to whose turn it is."""
        self._free += 1
        if self._queues:
            self._hand_out()

    def leave_kept(self, user: str) -> None:
        """Gives a seat that the user kept to whose turn it is."""
        held = self._held
        left = held[user] - 1
        if left:
            held[user] = left
        else:
            del held[user]
        self._free += 1
        if self._queues:
            self._hand_out()

    def _hand_out(self) -> None:
        """Gives the seat that became free to the first in turn who may have it: those who may not are few."""
        for user in self._queues:
            if self.take_at_once(user):
                break
        else:
            return
        if not self._seat_next(user):
            self.leave()

    def _seat_next(self, user: str) -> bool:
        """Gives a seat that is taken to the user's first request in line; False when that has just given up."""
        queue = self._queues.pop(user)
        seat = queue.popleft()
        self.waiting -= 1
        if queue:
            self._queues[user] = queue  # at the end: the others come first
        if seat.done():
            return False
        self.keep(user)
        seat.set_result(None)
        return True

    def _stand_in_line(self, user: str) -> asyncio.Future[None]:
        queue = self._queues.get(user)
        if self.waiting >= IN_ALL or (queue is not None and len(queue) >= PER_USER):
            raise errors.too_many_requests()
        if queue is None:
            queue = self._queues[user] = deque()
        seat = asyncio.get_running_loop().create_future()
        queue.append(seat)
        self.waiting += 1
        return seat

    def _give_up(self, user: str, seat: asyncio.Future[None]) -> None:
        """Leaves the line, or the seat that was given in this very moment."""
        if seat.done() and not seat.cancelled():
            self.leave_kept(user)
            return
        queue = self._queues.get(user)
        if queue is not None and seat in queue:
            queue.remove(seat)
            self.waiting -= 1
            if not queue:
                del self._queues[user]


_HEALTH = ("/healthz", "/livez", "/readyz")


def filter_for(*, reading: FairQueue | None, writing: FairQueue | None, metrics: RequestMetrics) -> Filter:
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

        def seated(request: Request, seats: FairQueue) -> Reply:
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
            return await resolve(inner(request))

        return handle

    return wrap


async def _kept(request: Request, reply: Awaitable[Answer], seat: _Seat, metrics: RequestMetrics) -> Answer:
    """The answer to a request that is worked on for longer."""
    request.in_flight_slot = seat
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

    def __init__(self, seats: FairQueue, bodies: Bodies, user: str) -> None:
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
