"""POST to a collection."""

from __future__ import annotations

from functools import partial

from clusterregistry.apiserver.endpoints import encoding, group_access, negotiation
from clusterregistry.apiserver.endpoints.decoder import check_kind, decode_object, work_size
from clusterregistry.apiserver.endpoints.options import manager_name, write_options
from clusterregistry.apiserver.endpoints.request import Request, require
from clusterregistry.apiserver.endpoints.request_scope import RequestScope
from clusterregistry.apiserver.http.response import Answer
from clusterregistry.apiserver.registry.worker_pool import LARGE, LARGE_REQUESTS, run_in_worker
from clusterregistry.apiserver.storage.interface import KeyValue


async def create(scope: RequestScope, request: Request) -> Answer:
    """Creates an object; 201 with the object as it is stored."""
    representation = negotiation.negotiate(request, native=scope.resource.native)
    media_type = negotiation.body_type(request.header("content-type"), native=scope.resource.native)
    body = request.take_buffered_body() or await request.body()
    size = work_size(body, media_type)
    if size > LARGE:
        await LARGE_REQUESTS.acquire(request.user.name)
    try:
        kv = await _created(scope, request, body, media_type=media_type, size=size)
        return encoding.object_response(scope, kv, representation, status=201)
    finally:
        if size > LARGE:
            LARGE_REQUESTS.release(request.user.name)


async def _created(scope: RequestScope, request: Request, body: bytes, *, media_type: str, size: int) -> KeyValue:
    options = write_options(request.query, "CreateOptions")
    warn = request.warnings.add
    obj = await decode_object(scope, body, media_type, size=size, field_validation=options.field_validation, warn=warn)
    check_kind(scope, obj)
    scope.place(obj, request.info)
    if request.info.name not in ("", obj["metadata"].get("name")) and request.group_rights is None:
        # The path names another object than the body, and the body counts: the right to that one name is not enough.
        await require(request, "create", name="")
    field_manager, manager = scope.field_manager_for(""), manager_name(request, options)
    if size <= LARGE:
        field_manager.record_update(None, obj, manager=manager)
    else:
        await run_in_worker(partial(field_manager.record_update, None, obj, manager=manager), size=size)
    admit, _ = group_access.for_write(scope, request)
    stored = scope.version.to_storage(obj)
    return await scope.store.create(stored, dry_run=options.dry_run, warn=warn, admit=admit, size=size)
