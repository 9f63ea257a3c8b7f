"""Limits how many requests are in flight. Raises 429.

Reads and writes have slots of their own. A watch needs a slot only until its stream begins. Administrators and health
checks need none: administrators must reach an overloaded server to repair it.

A request gives up its slot while it waits for its body, and takes one again afterwards: a slow client does not occupy a
slot. The bytes received meanwhile are counted until the request is answered.
"""

from __future__ import annotations

from collections.abc import Awaitable
from http import HTTPStatus

from clusterregistry.apimachinery.meta import errors
from clusterregistry.apimachinery.meta.errors import APIError
from clusterregistry.apiserver.authn.user import MASTERS
from clusterregistry.apiserver.endpoints.request import Filter, Handler, Request
from clusterregistry.apiserver.fair_queue import FairQueue
from clusterregistry.apiserver.filters.metrics import RequestMetrics
from clusterregistry.apiserver.http.response import Answer, Reply, Response, resolve

BODY_BYTES = 96 << 20
"""Of all bodies that arrived after their heads, until their requests are answered: 32 of the largest."""

_USER_SHARE = 4
"""One user may hold one part of BODY_BYTES in so many."""

_HEALTH = ("/healthz", "/livez", "/readyz")


def filter_for(*, reading: FairQueue | None, writing: FairQueue | None, metrics: RequestMetrics) -> Filter:
    """None is no limit."""
    memory = BodyMemory()

    def wrap(inner: Handler) -> Handler:
        def handle(request: Request) -> Reply:
            queue = writing if request.info.is_mutating else reading
            if queue is None or _is_exempt(request):
                return inner(request)
            if not queue.try_acquire(request.user.name):
                return handle_in_turn(request, _Slot(queue, memory, request.user.name))
            try:
                reply = inner(request)
            except BaseException:
                queue.release_unkept()
                raise
            if not isinstance(reply, Response):
                slot = _Slot(queue, memory, request.user.name)
                slot.keep()
                return _await_in_slot(request, reply, slot, metrics)
            queue.release_unkept()
            return reply

        async def handle_in_turn(request: Request, slot: _Slot) -> Answer:
            return await _await_in_slot(request, acquire_and_handle(request, slot), slot, metrics)

        async def acquire_and_handle(request: Request, slot: _Slot) -> Answer:
            await slot.acquire()
            return await resolve(inner(request))

        return handle

    return wrap


def _is_exempt(request: Request) -> bool:
    if MASTERS in request.user.groups:
        return True
    return not request.info.is_resource and request.path.startswith(_HEALTH)


async def _await_in_slot(request: Request, reply: Awaitable[Answer], slot: _Slot, metrics: RequestMetrics) -> Answer:
    """Awaits a response, counts a 429 and frees the slot."""
    request.in_flight_slot = slot
    try:
        return await reply
    except APIError as error:
        if error.code == HTTPStatus.TOO_MANY_REQUESTS:
            metrics.of(request.info).flight.turned_away += 1
        raise
    finally:
        slot.release()


class _Slot:
    """The slot of one request that is not answered at once, and the bytes of its body received without the slot."""

    __slots__ = ("_bytes", "_is_held", "_memory", "_queue", "_user")

    def __init__(self, queue: FairQueue, memory: BodyMemory, user: str) -> None:
        self._queue, self._memory, self._user = queue, memory, user
        self._bytes = 0
        self._is_held = False

    def keep(self) -> None:
        """Keeps a slot that was free."""
        self._queue.keep(self._user)
        self._is_held = True

    async def acquire(self) -> None:
        """Raises 429."""
        await self._queue.acquire(self._user)
        self._is_held = True

    async def receive(self, request: Request) -> bytes:
        """The body of a request, awaited without the slot. Raises BodyTooLargeError, 429 and ClientGoneError."""
        self._is_held = False
        self._queue.release(self._user)
        body = await request.read_whole(self._count)
        await self.acquire()
        return body

    def release(self) -> None:
        """Frees the slot and the memory of the body."""
        if self._is_held:
            self._queue.release(self._user)
        if self._bytes:
            self._memory.release(self._user, self._bytes)

    def _count(self, piece: bytes) -> None:
        self._memory.acquire(self._user, len(piece))
        self._bytes += len(piece)


class BodyMemory:
    """Counts the bytes of bodies in memory, in all and by user."""

    __slots__ = ("_held", "_limit", "_share", "taken")

    def __init__(self, limit: int = BODY_BYTES) -> None:
        self._limit, self._share = limit, limit // _USER_SHARE
        self._held: dict[str, int] = {}
        self.taken = 0

    def acquire(self, user: str, count: int) -> None:
        """Counts received bytes. Raises 429 if they are too many, and then counts none of them."""
        held = self._held.get(user, 0) + count
        if self.taken + count > self._limit or held > self._share:
            raise errors.too_many_requests()
        self._held[user] = held
        self.taken += count

    def release(self, user: str, count: int) -> None:
        self.taken -= count
        held = self._held.get(user, 0) - count
        if held:
            self._held[user] = held
        else:
            self._held.pop(user, None)
