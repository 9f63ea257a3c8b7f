"""PUT of an object or of its status."""

from __future__ import annotations

from typing import Any

from clusterregistry.apimachinery.meta import errors
from clusterregistry.apiserver.endpoints import encoding, group_access, negotiation
from clusterregistry.apiserver.endpoints.decoder import check_kind, decode_object, work_size
from clusterregistry.apiserver.endpoints.options import manager_name, write_options
from clusterregistry.apiserver.endpoints.request import Request
from clusterregistry.apiserver.endpoints.request_info import RequestInfo
from clusterregistry.apiserver.endpoints.request_scope import RequestScope
from clusterregistry.apiserver.http.response import Answer
from clusterregistry.apiserver.registry.store import UpdateRequest, Written
from clusterregistry.apiserver.registry.worker_pool import LARGE, LARGE_REQUESTS

Object = dict[str, Any]


async def update(scope: RequestScope, request: Request) -> Answer:
    """Replaces an object; creates it (201) where the kind allows that and the user may create."""
    representation = negotiation.negotiate(request, native=scope.resource.native)
    media_type = negotiation.body_type(request.header("content-type"), native=scope.resource.native)
    body = request.take_buffered_body() or await request.body()
    size = work_size(body, media_type)
    if size > LARGE:
        await LARGE_REQUESTS.acquire(request.user.name)
    try:
        written = await _updated(scope, request, body, media_type=media_type, size=size)
        status = 201 if written.created else 200
        return encoding.object_response(scope, written.kv, representation, status=status)
    finally:
        if size > LARGE:
            LARGE_REQUESTS.release(request.user.name)


async def _updated(scope: RequestScope, request: Request, body: bytes, *, media_type: str, size: int) -> Written:
    options = write_options(request.query, "UpdateOptions")
    warn = request.warnings.add
    sent = await decode_object(scope, body, media_type, size=size, field_validation=options.field_validation, warn=warn)
    check_name(scope, sent, request.info)
    check_kind(scope, sent)
    field_manager = scope.field_manager_for(request.info.subresource)
    manager, inherit = manager_name(request, options), scope.version.inherit

    def replaced(old: Object | None) -> Object:
        scope.store.check_uid(sent, old)
        obj = {**sent, "metadata": {**sent["metadata"]}}
        if old and inherit:
            inherit(obj, old)
        field_manager.record_update(old and scope.version.from_storage(old), obj, manager=manager)
        return scope.version.to_storage(obj)

    admit, before_create = group_access.for_write(scope, request)
    return await scope.store.update(
        request.info.key,
        UpdateRequest(
            change=replaced,
            strategy=scope.strategy_for(request.info.subresource),
            dry_run=options.dry_run,
            warn=warn,
            discard_warnings=request.warnings.checkpoint(),
            before_create=before_create,
            check_stored=group_access.check_for(request),
            admit=admit,
            size=size,
        ),
    )


async def without_name(_scope: RequestScope, _request: Request) -> Answer:
    """PUT and PATCH need a name. Raises 400."""
    raise errors.bad_request("name must be provided")


def check_name(scope: RequestScope, obj: Object, info: RequestInfo) -> None:
    """Name and namespace in a body must be those in the path; a namespace that is left out is set. Raises 400."""
    name, given = info.name, obj["metadata"].get("name")
    if not given:
        message = f"the name of the object ({name} based on URL) was undeterminable: name must be provided"
        raise errors.bad_request(message)
    if given != name:
        raise errors.bad_request(f"the name of the object ({given}) does not match the name on the URL ({name})")
    scope.place(obj, info)
