"""Parses the verb and the resource of a request."""

from __future__ import annotations

from clusterregistry.apiserver.endpoints import request_info
from clusterregistry.apiserver.endpoints.request import Filter, Handler, Request
from clusterregistry.apiserver.http.response import Reply


def filter_for() -> Filter:
    def wrap(inner: Handler) -> Handler:
        def handle(request: Request) -> Reply:
            request.info = request_info.parse(request.method, request.path, request.query_string)
            return inner(request)

        return handle

    return wrap
