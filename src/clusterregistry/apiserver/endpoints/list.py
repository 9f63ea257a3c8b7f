"""GET of a collection."""

from __future__ import annotations

from clusterregistry.apiserver.endpoints import encoding, negotiation
from clusterregistry.apiserver.endpoints.options import list_options
from clusterregistry.apiserver.endpoints.request import Request
from clusterregistry.apiserver.endpoints.request_scope import RequestScope
from clusterregistry.apiserver.http.response import Answer
from clusterregistry.apiserver.registry.list import list_objects


async def list_collection(scope: RequestScope, request: Request) -> Answer:
    """The objects that the user may see, by selectors and page."""
    representation = negotiation.negotiate(request, native=scope.resource.native)
    options = list_options(request.query, watch=False, fields=scope.fields)
    options.namespace, options.visible = request.info.path_namespace, request.visible
    listed = await list_objects(scope.store, options)
    return await encoding.list_response(scope, listed, representation, include=request.query.first("includeObject"))
