"""GET of a subresource that is made from the object: an object of another kind."""

from __future__ import annotations

import orjson

from clusterregistry.apiserver.endpoints import encoding, negotiation
from clusterregistry.apiserver.endpoints.get import read_stored
from clusterregistry.apiserver.endpoints.request import Request
from clusterregistry.apiserver.endpoints.request_scope import RequestScope
from clusterregistry.apiserver.endpoints.source_addresses import source_addresses
from clusterregistry.apiserver.http.response import Answer


async def view(scope: RequestScope, request: Request) -> Answer:
    """What the view makes of the current object. Raises 406, and what reading an object does."""
    representation = negotiation.negotiate_itself(request)
    made = scope.resource.views[request.info.subresource].render
    kv = await read_stored(scope, request)
    rendered = made(orjson.loads(scope.object_bytes(kv)), _client_addresses(request))
    return encoding.ordered_response(200, rendered, representation)


def _client_addresses(request: Request) -> list[str]:
    """The address of the client itself, as the first proxy names it. A client that forges it misleads only itself."""
    return source_addresses(
        forwarded_for=request.header("x-forwarded-for"),
        real_ip=request.header("x-real-ip"),
        peer=request.client_address,
    )[:1]
