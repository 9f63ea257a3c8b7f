"""Establishes who is asking. Raises 401."""

from __future__ import annotations

from collections.abc import Awaitable

from clusterregistry.apis.meta import errors
from clusterregistry.authn.interface import Authenticator, Outcome
from clusterregistry.authn.users import User
from clusterregistry.handlers.requests import Request
from clusterregistry.handlers.responses import Answer
from clusterregistry.serving.interface import Filter, Handler


def filter_for(authenticator: Authenticator) -> Filter:
    def wrap(inner: Handler) -> Handler:
        def handle(request: Request) -> Awaitable[Answer]:
            outcome = authenticator.authenticate(request)
            if isinstance(outcome, User):
                request.user = outcome
                return inner(request)
            if outcome is None:
                raise errors.unauthorized()
            return handle_later(request, outcome)

        async def handle_later(request: Request, asked: Awaitable[Outcome]) -> Answer:
            request.user = await asked
            if request.user is None:
                raise errors.unauthorized()
            return await inner(request)

        return handle

    return wrap
