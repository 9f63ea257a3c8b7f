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
    """All objects, or those that selectors and paging leave."""
    representation = wanted(request)
    listed = await list_objects(scope.store, list_options(request.query, watch=False))
    return representations.list_response(scope, listed, representation, include=request.query.first("includeObject"))
