"""Adds the headers that every response has: the audit id, no caching, and the recorded warnings.

Ids are random: a counter would show every client how many requests others make.
"""

from __future__ import annotations

from collections.abc import Awaitable

from clusterregistry.apiserver.endpoints.request import Filter, Handler, Request
from clusterregistry.apiserver.http.response import Answer, Reply, Response
from clusterregistry.apiserver.registry.uid import new_uid

_LONGEST_ID = 64
_NO_CACHE = (b"cache-control", b"no-cache, private")


def filter_for() -> Filter:
    def wrap(inner: Handler) -> Handler:
        def handle(request: Request) -> Reply:
            given = request.headers.get("audit-id")
            request.id = given if given and _is_good_id(given) else new_uid()
            reply = inner(request)
            if not isinstance(reply, Response):
                return handle_later(request, reply)
            _add_headers(request, reply)
            return reply

        async def handle_later(request: Request, reply: Awaitable[Answer]) -> Answer:
            answer = await reply
            _add_headers(request, answer)
            return answer

        return handle

    return wrap


def _add_headers(request: Request, answer: Answer) -> None:
    headers = answer.headers
    if not headers or not any(name == b"cache-control" for name, _ in headers):
        headers.append(_NO_CACHE)
    headers.append((b"audit-id", request.id.encode()))
    warnings = request.recorded_warnings
    if warnings is not None:
        headers.extend(warnings.headers())


def _is_good_id(given: str) -> bool:
    """As in kube-apiserver a client may choose the id, to find the request in the audit log; the length is limited."""
    return len(given) <= _LONGEST_ID and given.isascii() and given.isprintable()
