"""Records requests that fail authentication, and when every request was received: the user is not known here.

As in kube-apiserver, such a request has one audit event, at the stage ResponseStarted.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING

from clusterregistry.apimachinery.meta.errors import APIError
from clusterregistry.apiserver.audit.settings import RESPONSE_STARTED
from clusterregistry.apiserver.endpoints.request import Filter, Handler, Request
from clusterregistry.apiserver.http.response import Answer, Reply, Response

if TYPE_CHECKING:
    from clusterregistry.apiserver.audit.trail import Audit


def filter_for(audit: Audit | None) -> Filter:
    """Without an audit log there is no filter."""

    def wrap(inner: Handler) -> Handler:
        if audit is None:
            return inner

        def handle(request: Request) -> Reply:
            request.received_at = audit.now()
            try:
                reply = inner(request)
            except APIError as error:
                record(request, error)
                raise
            # With a user the request is authenticated, and nothing is left to do here.
            if request.user is not None or isinstance(reply, Response):
                return reply
            return handle_later(request, reply)

        async def handle_later(request: Request, reply: Awaitable[Answer]) -> Answer:
            try:
                return await reply
            except APIError as error:
                record(request, error)
                raise

        def record(request: Request, error: APIError) -> None:
            if request.user is None and (trail := audit.trail(request)):
                trail.failed(request, error.status)
                audit.record(trail, RESPONSE_STARTED)

        return handle

    return wrap
