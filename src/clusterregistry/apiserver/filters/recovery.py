"""Turns errors into responses: an APIError into its Status, anything else into a 500 that is logged."""

from __future__ import annotations

import logging
from collections.abc import Awaitable

from clusterregistry.apimachinery.meta import errors
from clusterregistry.apiserver.endpoints.encoding import error_response
from clusterregistry.apiserver.endpoints.request import Filter, Handler, Request
from clusterregistry.apiserver.http.request import ClientGoneError
from clusterregistry.apiserver.http.response import Answer, Reply, Response

_log = logging.getLogger(__name__)


def filter_for() -> Filter:
    def wrap(inner: Handler) -> Handler:
        def handle(request: Request) -> Reply:
            try:
                reply = inner(request)
            except Exception as error:  # noqa: BLE001 - all errors are handled
                return _recovered(request, error)
            return reply if isinstance(reply, Response) else handle_later(request, reply)

        async def handle_later(request: Request, reply: Awaitable[Answer]) -> Answer:
            try:
                return await reply
            except Exception as error:  # noqa: BLE001 - all errors are handled
                return _recovered(request, error)

        return handle

    return wrap


def _recovered(request: Request, error: Exception) -> Response:
    """The response to an error. Raises ClientGoneError again, since there is no client."""
    if isinstance(error, ClientGoneError):
        raise error
    if isinstance(error, errors.APIError):
        return error_response(request, error)
    # Any other error is a bug of this server; the client gets a response all the same.
    _log.error("request %s failed: %s %r", request.id, request.method, request.path, exc_info=error)
    return error_response(request, errors.internal(f"see the server's log for request {request.id}"))
