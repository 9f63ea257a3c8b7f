"""Asks whether the user may do this. Raises 403, before anything else is looked at."""

from __future__ import annotations

from collections.abc import Awaitable

from clusterregistry.authz.interface import Attributes, Authorizer, Decision
from clusterregistry.authz.messages import forbidden
from clusterregistry.handlers.requests import Request
from clusterregistry.handlers.responses import Answer
from clusterregistry.serving.interface import Filter, Handler


def filter_for(authorizer: Authorizer) -> Filter:
    def wrap(inner: Handler) -> Handler:
        def handle(request: Request) -> Awaitable[Answer]:
            attributes = _attributes(request)
            decision = authorizer.authorize(attributes)
            if not isinstance(decision, Decision):
                return handle_later(request, attributes, decision)
            request.decision = decision
            if not decision.allowed:
                raise forbidden(attributes, decision)
            return inner(request)

        async def handle_later(request: Request, attributes: Attributes, asked: Awaitable[Decision]) -> Answer:
            decision = request.decision = await asked
            if not decision.allowed:
                raise forbidden(attributes, decision)
            return await inner(request)

        return handle

    return wrap


def _attributes(request: Request) -> Attributes:
    info = request.info
    return Attributes(
        user=request.user,
        verb=info.verb,
        is_resource_request=info.is_resource,
        group=info.group,
        version=info.version,
        resource=info.resource,
        subresource=info.subresource,
        name=info.name,
        namespace=info.namespace,
        path=info.path,
    )
