"""DELETE of an object or of a collection."""

from __future__ import annotations

from typing import Any

from clusterregistry.apimachinery.meta import errors
from clusterregistry.apiserver.endpoints import encoding, group_access, negotiation
from clusterregistry.apiserver.endpoints.decoder import decode_body, no_object
from clusterregistry.apiserver.endpoints.options import delete_options, delete_options_from_query, list_options
from clusterregistry.apiserver.endpoints.request import Request
from clusterregistry.apiserver.endpoints.request_scope import RequestScope
from clusterregistry.apiserver.http.response import Answer
from clusterregistry.apiserver.registry.deletion import DeleteOptions
from clusterregistry.apiserver.registry.list import list_objects

_META_GROUP = "meta.k8s.io"
_TYPE = ("v1", "DeleteOptions")


async def delete(scope: RequestScope, request: Request) -> Answer:
    """Deletes an object: a Status if it is removed, the object itself while it has finalizers."""
    representation = negotiation.negotiate(request, native=scope.resource.native)
    options = await _options(scope, request)
    deleted = await scope.store.delete(request.info.key, options, check_stored=group_access.check_for(request))
    if not deleted.removed:
        return encoding.object_response(scope, deleted.kv, representation)
    resource = scope.resource
    details = {"name": request.info.name, "group": scope.group, "kind": resource.plural, "uid": deleted.uid}
    details = {name: value for name, value in details.items() if value}
    return encoding.status_response(request, errors.success(details))


async def delete_collection(scope: RequestScope, request: Request) -> Answer:
    """Deletes the objects that a list with the same parameters returns, and returns that list.

    A user without the right to all deletes the members of the groups on which the user has it.
    """
    representation = negotiation.negotiate(request, native=scope.resource.native)
    selected = list_options(request.query, watch=False, fields=scope.fields)
    selected.namespace, selected.visible = request.info.path_namespace, request.visible
    options = await _options(scope, request)
    listed = await list_objects(scope.store, selected)
    await scope.store.delete_all(listed.items, options, is_visible=group_access.visible_to(scope, request))
    return await encoding.list_response(scope, listed, representation)


async def _options(scope: RequestScope, request: Request) -> DeleteOptions:
    """The options in the body or, without a body, in the query. Raises 400, 415, 422."""
    body = request.take_buffered_body() or await request.body()
    if not body:
        return delete_options_from_query(request.query)
    media_type = negotiation.body_type(request.header("content-type"), native=scope.resource.native)
    value = (await decode_body(body, media_type, default_type=_TYPE if scope.resource.native else None)).value
    if value is None:
        return DeleteOptions()
    if not isinstance(value, dict):
        raise errors.bad_request(no_object(value))
    options = delete_options(value)
    _check_kind(scope, value)
    return options


def _check_kind(scope: RequestScope, value: dict[str, Any]) -> None:
    """DeleteOptions of any group that has them, or of none."""
    kind, api_version = value.get("kind") or "DeleteOptions", value.get("apiVersion") or "v1"
    known = {"v1", f"{_META_GROUP}/v1", scope.group_version}
    if kind != "DeleteOptions" or api_version not in known:
        raise errors.bad_request(
            f"the object provided is unrecognized (must be of type DeleteOptions): it is {kind!r} of {api_version!r}"
        )
