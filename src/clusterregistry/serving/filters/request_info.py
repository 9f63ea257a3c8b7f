"""Says what a request asks for, before anybody else needs to know."""

from __future__ import annotations

from clusterregistry.handlers import request_info
from clusterregistry.handlers.requests import Request
from clusterregistry.handlers.responses import Reply
from clusterregistry.serving.interface import Filter, Handler


def filter_for() -> Filter:
    def wrap(inner: Handler) -> Handler:
        def handle(request: Request) -> Reply:
            request.info = request_info.parse(request.method, request.path, request.query_string)
            return inner(request)

        return handle

    return wrap
