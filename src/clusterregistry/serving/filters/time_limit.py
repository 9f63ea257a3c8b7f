"""Ends a request that takes too long with 504. Watches have their own time.

A client may ask for less time with ``?timeout=10s``, as kube-apiserver has it: 400 for what is no duration, no more
than the server's own limit for whatever is longer, zero or negative.
"""

from __future__ import annotations

import asyncio

from clusterregistry.apis.meta import errors
from clusterregistry.apis.meta.durations import parse_duration
from clusterregistry.handlers.requests import Request
from clusterregistry.handlers.responses import Answer, Reply
from clusterregistry.serving.interface import Filter, Handler, answered

_QUICK = frozenset({"get", "list"})
"""Verbs that answer from memory: a timer for each would cost more than it gives."""


def filter_for(seconds: float) -> Filter:
    def wrap(inner: Handler) -> Handler:
        async def limited(request: Request, allowed: float) -> Answer:
            try:
                async with asyncio.timeout(allowed):
                    return await answered(inner(request))
            except TimeoutError:
                message = "request did not complete within the allotted timeout"
                raise errors.timeout(message, retry_after=1) from None

        def handle(request: Request) -> Reply:
            verb, query_string = request.info.verb, request.query_string
            if verb == "watch" or (verb in _QUICK and not query_string):
                return inner(request)
            wished = _wished(request) if _may_wish(query_string) else 0.0
            if 0 < wished < seconds:
                return limited(request, wished)
            return inner(request) if verb in _QUICK else limited(request, seconds)

        return handle

    return wrap


def _may_wish(query_string: bytes) -> bool:
    return b"timeout=" in query_string or b"%" in query_string


def _wished(request: Request) -> float:
    """The seconds that a client asks for; 0 when it does not. Raises 400."""
    given = request.query.first("timeout")
    if not given:
        return 0.0
    try:
        return parse_duration(given)
    except ValueError as error:
        raise errors.bad_request(f"invalid timeout specified in the request URL - {error}") from None
