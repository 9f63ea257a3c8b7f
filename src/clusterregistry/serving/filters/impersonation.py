"""Refuses to act as somebody else: to ignore the headers would answer as the caller, which nobody asked for."""

from __future__ import annotations

from collections.abc import Awaitable

from clusterregistry.apis.meta import errors
from clusterregistry.handlers.requests import Request
from clusterregistry.handlers.responses import Answer
from clusterregistry.serving.interface import Filter, Handler

_HEADERS = frozenset({b"impersonate-user", b"impersonate-group", b"impersonate-uid"})


def filter_for() -> Filter:
    def wrap(inner: Handler) -> Handler:
        def handle(request: Request) -> Awaitable[Answer]:
            if request.has_any_header(_HEADERS):
                raise errors.forbidden_path("impersonation is not supported yet")
            return inner(request)

        return handle

    return wrap
