"""Turns errors into answers: an APIError into its Status, anything else into a 500 that is logged."""

from __future__ import annotations

import logging

from clusterregistry.apis.meta import errors
from clusterregistry.handlers.requests import ClientGoneError, Request
from clusterregistry.handlers.responses import Answer
from clusterregistry.handlers.statuses import error_response
from clusterregistry.serving.interface import Filter, Handler

_log = logging.getLogger(__name__)


def filter_for() -> Filter:
    def wrap(inner: Handler) -> Handler:
        async def handle(request: Request) -> Answer:
            try:
                return await inner(request)
            except ClientGoneError:
                raise
            except errors.APIError as error:
                return error_response(request, error)
            except Exception:  # noqa: BLE001 - what nobody expected is our bug; the client gets an answer
                _log.exception("request %s failed: %s %r", request.id, request.method, request.path)
                return error_response(request, errors.internal(f"see the server's log for request {request.id}"))

        return handle

    return wrap
