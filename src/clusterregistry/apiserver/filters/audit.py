"""Records requests in the audit log: when they are received, when a stream starts, and when they are complete.

Inside authentication, since the policy needs the user; outside everything else, so that refusals are recorded too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TYPE_CHECKING

from clusterregistry.apimachinery.meta import errors
from clusterregistry.apiserver.audit.settings import PANIC, REQUEST_RECEIVED, RESPONSE_COMPLETE, RESPONSE_STARTED
from clusterregistry.apiserver.endpoints.request import Filter, Handler, Request
from clusterregistry.apiserver.http.request import ClientGoneError
from clusterregistry.apiserver.http.response import Answer, Outlet, Reply, Response, Stream, StreamResponse

if TYPE_CHECKING:
    from clusterregistry.apiserver.audit.trail import Audit, Trail

_LEFT = errors.bad_request("the client left before its request was complete").status
_BROKEN_OFF = errors.internal("the connection was ended before the answer: the request may or may not be done").status
_PANIC = errors.internal("the request failed unexpectedly: the server's log has it under this auditID").status


def filter_for(audit: Audit | None) -> Filter:
    """Without an audit log there is no filter."""

    def wrap(inner: Handler) -> Handler:
        if audit is None:
            return inner

        def handle(request: Request) -> Reply:
            trail = audit.trail(request)
            return inner(request) if trail is None else _handle(audit, trail, inner, request)

        return handle

    return wrap


def _handle(audit: Audit, trail: Trail, inner: Handler, request: Request) -> Reply:
    audit.record(trail, REQUEST_RECEIVED)
    try:
        reply = inner(request)
    except BaseException as error:
        _failed(audit, trail, request, error)
        raise
    if not isinstance(reply, Response):
        return _handle_later(audit, trail, request, reply)
    _answered(audit, trail, request, reply)
    return reply


async def _handle_later(audit: Audit, trail: Trail, request: Request, reply: Awaitable[Answer]) -> Answer:
    try:
        answer = await reply
    except BaseException as error:
        _failed(audit, trail, request, error)
        raise
    _answered(audit, trail, request, answer)
    return answer


def _answered(audit: Audit, trail: Trail, request: Request, answer: Answer) -> None:
    trail.answered(request, answer)
    if isinstance(answer, StreamResponse):
        audit.record(trail, RESPONSE_STARTED)
        answer.stream = _recorded_stream(audit, trail, answer.stream)
    else:
        audit.record(trail, RESPONSE_COMPLETE)


def _failed(audit: Audit, trail: Trail, request: Request, error: BaseException) -> None:
    match error:
        case errors.APIError(status=status):
            _end(audit, trail, request, status)
        case ClientGoneError():
            _end(audit, trail, request, _LEFT)
        case asyncio.CancelledError():
            _end(audit, trail, request, _BROKEN_OFF)
        case Exception():
            trail.failed(request, _PANIC)
            audit.record(trail, PANIC)


def _end(audit: Audit, trail: Trail, request: Request, status: errors.Status) -> None:
    trail.failed(request, status)
    audit.record(trail, RESPONSE_COMPLETE)


def _recorded_stream(audit: Audit, trail: Trail, stream: Stream) -> Stream:
    async def recorded(outlet: Outlet) -> None:
        try:
            await stream(outlet)
        finally:
            audit.record(trail, RESPONSE_COMPLETE)

    return recorded
