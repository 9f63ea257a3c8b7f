"""POST to a collection."""

from __future__ import annotations

from clusterregistry.handlers import negotiation, representations
from clusterregistry.handlers.authorizing import require
from clusterregistry.handlers.decoding import check_kind, decode_object
from clusterregistry.handlers.field_managers import field_manager
from clusterregistry.handlers.get import wanted
from clusterregistry.handlers.query_options import write_options
from clusterregistry.handlers.requests import Request
from clusterregistry.handlers.responses import Answer
from clusterregistry.handlers.scope import Scope


async def create(scope: Scope, request: Request) -> Answer:
    """Adds an object; 201 with the object as it is stored."""
    representation = wanted(scope, request)
    media_type = negotiation.body_type(request.header("content-type"), native=scope.resource.native)
    body = request.body_at_hand() or await request.body()
    options = write_options(request.query, "CreateOptions")
    warn = request.warnings.add
    obj = await decode_object(scope, body, media_type, field_validation=options.field_validation, warn=warn)
    check_kind(scope, obj)
    if request.info.name not in ("", obj["metadata"].get("name")):
        # The path names another object than the body, and the body counts: a right to that one name is not enough.
        await require(request, "create", name="")
    scope.ownership_for("").record_update(None, obj, manager=field_manager(request, options))
    admit = scope.admit_for(request.user, request.info.name)
    kv = await scope.store.create(scope.version.to_storage(obj), dry_run=options.dry_run, warn=warn, admit=admit)
    return representations.object_response(scope, kv, representation, status=201)
