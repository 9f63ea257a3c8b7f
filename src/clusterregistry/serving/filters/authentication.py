"""Establishes who is asking. Raises 401."""

from __future__ import annotations

from collections.abc import Awaitable

from clusterregistry.apis.meta import errors
from clusterregistry.authn.interface import Authenticator
from clusterregistry.handlers.requests import Request
from clusterregistry.handlers.responses import Answer
from clusterregistry.serving.interface import Filter, Handler


def filter_for(authenticator: Authenticator) -> Filter:
    def wrap(inner: Handler) -> Handler:
        def handle(request: Request) -> Awaitable[Answer]:
            user = authenticator.authenticate(request)
            if user is None:
                raise errors.unauthorized()
            request.user = user
            return inner(request)

        return handle

    return wrap
