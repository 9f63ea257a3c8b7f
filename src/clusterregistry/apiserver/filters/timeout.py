"""Ends a request that takes too long with 504. Watches have timeouts of their own.

As in kube-apiserver a client may ask for less time with ``?timeout=10s``. An invalid duration is a 400; a longer, zero
or negative one is replaced by the server's own limit.
"""

from __future__ import annotations

import asyncio
from typing import Any

from clusterregistry.apimachinery.meta import errors
from clusterregistry.apimachinery.meta.duration import parse_duration
from clusterregistry.apiserver.endpoints.request import Filter, Handler, Request
from clusterregistry.apiserver.http.response import Answer, Reply, Response, resolve

_QUICK = frozenset({"get", "list"})
"""Verbs that read from memory: a timer for each would cost more than it is worth."""


def filter_for(seconds: float) -> Filter:
    deadlines = _Deadlines(seconds)

    def wrap(inner: Handler) -> Handler:
        async def limited(request: Request) -> Answer:
            task = deadlines.begin()
            try:
                reply = inner(request)
                return reply if isinstance(reply, Response) else await reply
            except asyncio.CancelledError:
                if deadlines.cancelled(task):
                    raise _too_late() from None
                raise
            finally:
                deadlines.forget(task)

        async def limited_to(limit: float, request: Request) -> Answer:
            try:
                async with asyncio.timeout(limit):
                    return await resolve(inner(request))
            except TimeoutError:
                raise _too_late() from None

        def handle(request: Request) -> Reply:
            verb, query_string = request.info.verb, request.query_string
            if verb == "watch" or (verb in _QUICK and not query_string):
                return inner(request)
            timeout = _requested_timeout(request) if _may_have_timeout(query_string) else 0.0
            if 0 < timeout < seconds:
                return limited_to(timeout, request)
            return inner(request) if verb in _QUICK else limited(request)

        return handle

    return wrap


class _Deadlines:
    """Cancels requests that exceed the server's limit.

    All have the same limit, so they expire in the order in which they began, and one timer does for all. A timer for
    each is a twentieth of what a write costs.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._due: dict[asyncio.Task[Any], float] = {}
        """In the order in which they began."""
        self._late: set[asyncio.Task[Any]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        """Kept here: asyncio.get_running_loop is a system call before Python 3.12."""

    def begin(self) -> asyncio.Task[Any]:
        """Starts the time of the current task."""
        loop = self._loop = self._loop or asyncio.get_running_loop()
        task = asyncio.current_task(loop)
        if task is None:
            raise RuntimeError("only a task can be cancelled")
        self._due[task] = loop.time() + self._seconds
        if self._timer is None:
            self._timer = loop.call_later(self._seconds, self._cancel_expired)
        return task

    def cancelled(self, task: asyncio.Task[Any]) -> bool:
        """Whether a task was cancelled here, and not by its connection."""
        return task in self._late and task.uncancel() == 0

    def forget(self, task: asyncio.Task[Any]) -> None:
        del self._due[task]
        self._late.discard(task)

    def _cancel_expired(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = None
        for task, due in self._due.items():
            if due > loop.time():
                self._timer = loop.call_at(due, self._cancel_expired)
                return
            if task not in self._late:
                self._late.add(task)
                task.cancel()


def _too_late() -> errors.APIError:
    # Without Retry-After, as in kube-apiserver: client-go repeats whatever has it, and a write may have been done.
    return errors.timeout("request did not complete within the allotted timeout")


def _may_have_timeout(query_string: bytes) -> bool:
    return b"timeout=" in query_string or b"%" in query_string


def _requested_timeout(request: Request) -> float:
    """The ``timeout`` parameter in seconds; 0 without one. Raises 400."""
    given = request.query.first("timeout")
    if not given:
        return 0.0
    try:
        return parse_duration(given)
    except ValueError as error:
        raise errors.bad_request(f"invalid timeout specified in the request URL - {error}") from None
