"""GET of one object."""

from __future__ import annotations

from clusterregistry.apimachinery.meta import errors
from clusterregistry.apiserver.endpoints import encoding, group_access, negotiation
from clusterregistry.apiserver.endpoints.negotiation import Representation
from clusterregistry.apiserver.endpoints.request import Request
from clusterregistry.apiserver.endpoints.request_info import parse_bool
from clusterregistry.apiserver.endpoints.request_scope import RequestScope
from clusterregistry.apiserver.http.response import Answer, Reply
from clusterregistry.apiserver.registry.list import parse_revision, wait_until_fresh
from clusterregistry.apiserver.registry.worker_pool import LARGE
from clusterregistry.apiserver.storage.interface import KeyValue


def get(scope: RequestScope, request: Request) -> Reply:
    """The current object; with a resourceVersion, one that is not older than that."""
    representation = negotiation.negotiate(request, native=scope.resource.native)
    kv = None if request.query_string or request.group_rights else scope.store.get_cached(request.info.key)
    if kv is None:
        return _get_later(scope, request, representation)
    if not representation.is_plain and len(kv.value) > LARGE:
        return encoding.large_object_response(scope, kv, representation)
    return encoding.object_response(scope, kv, representation)


async def _get_later(scope: RequestScope, request: Request, representation: Representation) -> Answer:
    include = request.query.first("includeObject") if request.query_string else ""
    kv = await read_stored(scope, request)
    if not representation.is_plain and len(kv.value) > LARGE:
        return await encoding.large_object_response(scope, kv, representation, include=include)
    return encoding.object_response(scope, kv, representation, include=include)


async def read_stored(scope: RequestScope, request: Request) -> KeyValue:
    """The object that a request reads, as its parameters ask for it. Raises 400, 403, 404, 409 and 504."""
    any_version = False
    if request.query_string:
        if parse_bool(request.query.first("export", "false")):
            raise errors.bad_request("the export parameter, deprecated since v1.14, is no longer supported")
        revision = parse_revision(request.query.first("resourceVersion"))
        any_version = bool(request.query.first("resourceVersion"))
        if revision:
            await wait_until_fresh(scope.store, revision)
    kv = await scope.store.get(request.info.key, any_version=any_version)
    if request.group_rights:
        await group_access.check(request, kv)
    return kv
