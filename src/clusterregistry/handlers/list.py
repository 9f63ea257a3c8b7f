"""GET of a collection."""

from __future__ import annotations

from clusterregistry.handlers import representations
from clusterregistry.handlers.get import wanted
from clusterregistry.handlers.query_options import list_options
from clusterregistry.handlers.requests import Request
from clusterregistry.handlers.responses import Answer
from clusterregistry.handlers.scope import Scope
from clusterregistry.registry.listing import list_objects


async def list_collection(scope: Scope, request: Request) -> Answer:
    """All objects that the user may see, or those that selectors and paging leave of them."""
    representation = wanted(scope, request)
    options = list_options(request.query, watch=False)
    options.visible = request.visible
    listed = await list_objects(scope.store, options)
    return await representations.list_response(
        scope, listed, representation, include=request.query.first("includeObject")
    )
